// ScratchViews: an op's scratch cut into tensors, each aligned to 64 bytes.
//
//   std::size_t workspace_bytes(...) const override { return scratch_bytes(f32, n) + scratch_bytes(f32, m); }
//   void run(const OpRun& run) const noexcept override {
//     ScratchViews scratch(run.scratch);
//     const TensorView wide = scratch.take(f32, shape);
#pragma once

#include <cstddef>
#include <span>

#include "plimsoll/base/error.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

// What take() uses up for this many elements.
constexpr std::size_t scratch_bytes(DType dtype, std::size_t elements) noexcept {
  return (elements * size_of(dtype) + 63) / 64 * 64;
}

class ScratchViews {
 public:
  explicit ScratchViews(std::span<std::byte> scratch) noexcept : left_(scratch) {}

  TensorView take(DType dtype, const Shape& shape) noexcept {
    return {cut(dtype, shape.size()).data(), 0, dtype, shape};
  }
  std::span<std::byte> rest() const noexcept { return left_; }

 private:
  std::span<std::byte> cut(DType dtype, std::size_t elements) noexcept {
    const std::size_t bytes = scratch_bytes(dtype, elements);
    PLIMSOLL_CHECK(bytes <= left_.size());
    const std::span<std::byte> piece = left_.first(bytes);
    left_ = left_.subspan(bytes);
    return piece;
  }

  std::span<std::byte> left_;
};

// The dtype in which ops made of several kernels compute: halves in f32, so that they are rounded once.
constexpr DType compute_dtype(DType dtype) noexcept { return is_half(dtype) ? f32 : dtype; }

}  // namespace plimsoll::internal
