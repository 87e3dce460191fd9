// TensorView and ConstTensorView: the address, dtype and shape of a dense row-major tensor. They own nothing.
//
//   TensorView y(block.data(), 0, f32, {2, 3});
//   std::span<float> values = y.span<float>();          // 6 elements
//   for (float v : ConstTensorView(y).span<float>()) ...
//   y.rows(1, 2)                                        // [1, 3], at the second row
//
// An address is a base and an offset in bytes: on a device whose memory cannot be dereferenced, the base is the
// device's handle and only that device's kernels understand it; data() and span() are for memory that can.
// Thread safety: a value; the bytes are the owner's. Cost: copies without allocating; all functions are a few
// instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "plimsoll/base/api.h"
#include "plimsoll/base/dtype.h"
#include "plimsoll/base/shape.h"

namespace plimsoll {

namespace tensor_view_detail {
[[noreturn]] PLIMSOLL_API void refuse_dtype(DType asked, DType actual);
[[noreturn]] PLIMSOLL_API void refuse_reshape(const Shape& from, const Shape& to);
[[noreturn]] PLIMSOLL_API void refuse_rows(const Shape& shape, std::int64_t begin, std::int64_t end);
PLIMSOLL_API Shape with_rows(const Shape& shape, std::int64_t rows);
}  // namespace tensor_view_detail

// `Void` is void for a writable view, const void for a read-only one.
template <class Void>
class BasicTensorView {
  template <class T>
  using Pointee = std::conditional_t<std::is_const_v<Void>, const T, T>;

 public:
  BasicTensorView() noexcept = default;  // No address; shape unset.

  // Requires a known shape, and `offset` aligned for the dtype relative to `base`.
  BasicTensorView(Void* base, std::size_t offset, DType dtype, Shape shape) noexcept
      : base_(base), offset_(offset), shape_(std::move(shape)), dtype_(dtype) {}

  // A writable view can be read. (A template, so that it never counts as the copy constructor.)
  template <class Other>
  requires(std::is_const_v<Void>&& std::is_same_v<Other, void>) BasicTensorView(const BasicTensorView<Other>& other)
  noexcept : BasicTensorView(other.base(), other.offset(), other.dtype(), other.shape()) {}

  Void* base() const noexcept { return base_; }
  std::size_t offset() const noexcept { return offset_; }  // In bytes.
  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  std::size_t rank() const noexcept { return shape_.rank(); }
  std::size_t size() const { return shape_.size(); }                      // Elements.
  std::size_t nbytes() const { return shape_.size() * size_of(dtype_); }  // Bytes.

  // The first byte. Requires memory that can be dereferenced.
  Pointee<std::byte>* bytes() const noexcept { return static_cast<Pointee<std::byte>*>(base_) + offset_; }

  // The elements. Throws InvalidArgument when T is not the element type.
  template <Element T>
  Pointee<T>* data() const {
    if (kDTypeOf<T> != dtype_) tensor_view_detail::refuse_dtype(kDTypeOf<T>, dtype_);
    return static_cast<Pointee<T>*>(static_cast<Void*>(bytes()));
  }
  template <Element T>
  std::span<Pointee<T>> span() const {
    return {data<T>(), size()};
  }

  // The same elements under another shape. Throws InvalidArgument when the numbers of elements differ.
  BasicTensorView reshaped(const Shape& shape) const {
    if (shape.size() != size()) tensor_view_detail::refuse_reshape(shape_, shape);
    return {base_, offset_, dtype_, shape};
  }

  // Indices [begin, end) of the outermost axis. Throws InvalidArgument for a scalar and outside the axis.
  BasicTensorView rows(std::int64_t begin, std::int64_t end) const {
    if (rank() == 0 || begin < 0 || begin > end || end > shape_[0]) tensor_view_detail::refuse_rows(shape_, begin, end);
    const std::size_t row_bytes = shape_[0] == 0 ? 0 : nbytes() / static_cast<std::size_t>(shape_[0]);
    return {base_, offset_ + static_cast<std::size_t>(begin) * row_bytes, dtype_,
            tensor_view_detail::with_rows(shape_, end - begin)};
  }

 private:
  Void* base_ = nullptr;
  std::size_t offset_ = 0;
  Shape shape_;
  DType dtype_ = f32;
};

using TensorView = BasicTensorView<void>;
using ConstTensorView = BasicTensorView<const void>;

}  // namespace plimsoll
