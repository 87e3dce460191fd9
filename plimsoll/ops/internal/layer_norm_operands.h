// NormInputs: the positions of a normalization's optional gamma and beta among its inputs; and shared checks.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/ops/execute.h"
#include "plimsoll/tensor/op.h"

namespace plimsoll::internal {

// `first` other inputs, then gamma and beta if present.
struct NormInputs {
  bool has_gamma, has_beta;
  std::size_t first = 1;

  std::size_t gamma() const noexcept { return first; }
  std::size_t beta() const noexcept { return first + (has_gamma ? 1 : 0); }
  std::string name(std::size_t input) const { return has_gamma && input == gamma() ? "gamma" : "beta"; }
  bool operator==(const NormInputs&) const = default;
};

// Requires an epsilon of 0 or more. Throws InvalidArgument.
void require_epsilon(double epsilon, const char* where);
// Requires that gamma and beta, if present, have this shape (unknown sizes match). Throws InvalidArgument.
void require_parameters(const Op& op, const Specs& in, const NormInputs& inputs, const Shape& wanted);

// The inputs, without those that are empty handles.
class NormList {
 public:
  NormList(std::initializer_list<const Tensor*> inputs) {
    for (const Tensor* input : inputs) list_[size_++] = input;
  }
  void add_if_any(const Tensor& input) {
    if (!input.is_empty_handle()) list_[size_++] = &input;
  }
  std::span<const Tensor* const> span() const noexcept { return {list_, size_}; }

 private:
  const Tensor* list_[8];
  std::size_t size_ = 0;
};

// f16 and bf16 become f32; others, and an empty handle, stay as they are.
inline Tensor widened(const Tensor& x) { return x.is_empty_handle() || !is_half(x.dtype()) ? x : x.cast(f32); }

// The sizes from `begin` on, up to `end`.
inline Shape part_of(const Shape& shape, std::size_t begin, std::size_t end) {
  return Shape(shape.sizes().subspan(begin, end - begin));
}

// Elements of the first `axes` axes together; unknown when one of them is, which makes reshape() compute it.
inline std::int64_t rows_of(const Shape& shape, std::size_t axes) {
  std::int64_t rows = 1;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    if (shape[axis] == kUnknownSize) return kUnknownSize;
    rows *= shape[axis];
  }
  return rows;
}

}  // namespace plimsoll::internal
