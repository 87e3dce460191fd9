// execute: runs an op now: checks the operands, takes the outputs' memory, calls the kernel, tells the tape.
//
//   Tensor y = execute(Binary(BinaryOp::add), a, b);
//   std::vector<Tensor> parts = execute_all(Split(...), {x});
//
// Throws Disposed and InvalidArgument that name the op and the operand, OutOfMemory when an output or the scratch does
// not fit; then nothing has changed. Cost: no heap allocation beside the outputs and the scratch.
#pragma once

#include <span>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/op.h"

namespace plimsoll {

// The only output of `op`. With no inputs it goes to the device of the DeviceScope.
PLIMSOLL_API Tensor execute_on(const Op& op, std::span<const Tensor* const> inputs);
PLIMSOLL_API std::vector<Tensor> execute_all(const Op& op, std::span<const Tensor* const> inputs);

template <class... Inputs>
Tensor execute(const Op& op, const Inputs&... inputs) {
  const Tensor* const list[sizeof...(inputs) + 1] = {&inputs..., nullptr};
  return execute_on(op, {list, sizeof...(inputs)});
}

// The same of a list that has `over` in it: output 0 takes its memory when the op can do so (OpFacts::overwrites),
// nobody else holds it and no tape will read it. `over` is an empty handle afterwards, also when this throws.
PLIMSOLL_API Tensor execute_over(const Op& op, Tensor&& over, std::span<const Tensor* const> inputs);
PLIMSOLL_API std::vector<Tensor> execute_all_over(const Op& op, Tensor&& over, std::span<const Tensor* const> inputs);

// The common case of an elementwise op, quickly: one or two operands (`b` may be nullptr) of one shape, dtype and
// device. Gives an empty handle, having done nothing, when it is not that case; execute() then does it, or says why
// not. `kernel` does what op.run() does, for elements that lie one after the other. `over` is one of the operands, or
// nullptr, as above, but that the caller empties it.
using FlatKernel = void (*)(const Op& op, DType dtype, const void* a, const void* b, void* out,
                            std::size_t size) noexcept;
PLIMSOLL_API Tensor execute_alike(const Op& op, const Tensor& a, const Tensor* b, DType result, FlatKernel kernel,
                                  const Tensor* over = nullptr);

// Operands in a list, for ops that take any number.
PLIMSOLL_API Tensor execute_list(const Op& op, std::span<const Tensor> inputs);

}  // namespace plimsoll
