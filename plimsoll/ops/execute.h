// execute: runs an op now: checks the operands, allocates the outputs, calls the kernel, records on the tape.
//
//   Tensor y = execute(Binary(BinaryOp::add), a, b);
//   std::vector<Tensor> parts = execute_all(Split(...), {x});
//
// Throws Disposed and InvalidArgument that name the op and the operand, OutOfMemory when an output or the scratch does
// not fit; then nothing has changed. Cost: no heap allocation besides the outputs and the scratch.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/op.h"

namespace plimsoll {

// The only output of `op`. Without inputs it is on the device of the DeviceScope.
PLIMSOLL_API Tensor execute_on(const Op& op, std::span<const Tensor* const> inputs);
PLIMSOLL_API std::vector<Tensor> execute_all(const Op& op, std::span<const Tensor* const> inputs);

template <class... Inputs>
Tensor execute(const Op& op, const Inputs&... inputs) {
  const Tensor* const list[sizeof...(inputs) + 1] = {&inputs..., nullptr};
  return execute_on(op, {list, sizeof...(inputs)});
}

// The same for a list that contains `over`: output 0 takes its memory when the op supports that (OpFacts::overwrites),
// nobody else holds it and no tape will read it. `over` is an empty handle afterwards, also when this throws.
PLIMSOLL_API Tensor execute_over(const Op& op, Tensor&& over, std::span<const Tensor* const> inputs);
PLIMSOLL_API std::vector<Tensor> execute_all_over(const Op& op, Tensor&& over, std::span<const Tensor* const> inputs);

// The fast path of elementwise ops: one or two operands (`b` may be nullptr) of one shape and dtype, on the host.
// Returns nothing, having done nothing, for other operands; execute() then runs the op or says why it cannot.
// `kernel` does what op.run() does, for contiguous elements. `over` is one of the operands or nullptr, as above, except
// that the caller empties it.
using FlatKernel = void (*)(const Op& op, DType dtype, const void* a, const void* b, void* out,
                            std::size_t size) noexcept;
PLIMSOLL_API std::optional<Tensor> execute_flat(const Op& op, const Tensor& a, const Tensor* b, DType result,
                                                FlatKernel kernel, const Tensor* over = nullptr);

// Operands in a list, for ops that take any number.
PLIMSOLL_API Tensor execute_list(const Op& op, std::span<const Tensor> inputs);

}  // namespace plimsoll
