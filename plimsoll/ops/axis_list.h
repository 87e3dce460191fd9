// AxisList: one number per axis, as an attribute of an op; needs no heap for up to six.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/shape.h"

namespace plimsoll::internal {

class AxisList {
 public:
  AxisList() = default;
  explicit AxisList(std::span<const std::int64_t> values) : size_(values.size()) {
    if (size_ > near_.size())
      far_.assign(values.begin(), values.end());
    else
      std::copy(values.begin(), values.end(), near_.begin());
  }

  std::size_t size() const noexcept { return size_; }
  std::int64_t operator[](std::size_t axis) const noexcept { return data()[axis]; }  // Requires axis < size().
  std::int64_t& operator[](std::size_t axis) noexcept { return far_.empty() ? near_[axis] : far_[axis]; }
  std::span<const std::int64_t> span() const noexcept { return {data(), size_}; }
  // In the notation of shapes: "[2, -1]".
  std::string to_string() const {
    std::string text = "[";
    for (std::size_t axis = 0; axis < size_; ++axis) text += (axis == 0 ? "" : ", ") + std::to_string((*this)[axis]);
    return text + "]";
  }
  bool operator==(const AxisList&) const = default;

 private:
  const std::int64_t* data() const noexcept { return far_.empty() ? near_.data() : far_.data(); }

  std::size_t size_ = 0;
  std::array<std::int64_t, Shape::kInlineRank> near_ = {};
  std::vector<std::int64_t> far_;
};

// The sizes of a shape under construction, one per axis.
class SizeList {
 public:
  explicit SizeList(const Shape& shape) : rank_(shape.rank()) { std::copy(shape.begin(), shape.end(), sizes_.begin()); }
  SizeList() = default;
  void add(std::int64_t size) noexcept { sizes_[rank_++] = size; }  // Up to twice kMaxRank of them.
  void add(std::span<const std::int64_t> sizes) noexcept {
    for (const std::int64_t size : sizes) add(size);
  }
  std::int64_t& operator[](std::size_t axis) noexcept { return sizes_[axis]; }
  // Throws InvalidArgument for more axes or elements than shapes can have.
  Shape shape() const { return Shape(std::span<const std::int64_t>(sizes_.data(), rank_)); }

 private:
  std::size_t rank_ = 0;
  std::array<std::int64_t, 2 * kMaxRank> sizes_;
};

// Whether two sizes are or may turn out equal.
constexpr bool may_equal(std::int64_t a, std::int64_t b) noexcept {
  return a == b || a == kUnknownSize || b == kUnknownSize;
}

}  // namespace plimsoll::internal
