// Shape: the sizes of a tensor's axes, outermost first.
//
//   Shape s = {2, 3};                 // s.rank() == 2, s[1] == 3, s.size() == 6
//   Shape scalar = Shape::scalar();   // rank 0, one element, prints "[]"
//   Shape batch = {kUnknownSize, 4};  // -1: not known yet; prints "[?, 4]", size() throws
//   Shape unset;                      // "not given", which is not a scalar: is_set() is false
//
// `{}` in braces is the unset shape too; functions that need a shape treat it as a scalar.
// Thread safety: as any value. Cost: 64 bytes, copied without allocating. Up to kInlineRank axes are kept inside the
// object, more (up to kMaxRank) in one shared, counted, immutable array.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/api.h"

namespace plimsoll {

inline constexpr std::size_t kMaxRank = 32;
inline constexpr std::int64_t kUnknownSize = -1;

// The size of one axis, from any integer. It exists so that `{batch, 4}` compiles when `batch` is a std::size_t.
class Dimension {
 public:
  template <std::integral T>
  requires(!std::same_as<T, bool>) constexpr Dimension(T size)
      : value_(std::in_range<std::int64_t>(size) ? static_cast<std::int64_t>(size) : INT64_MIN) {}
  constexpr std::int64_t value() const noexcept { return value_; }

 private:
  std::int64_t value_;  // INT64_MIN: too large for any shape; the shape that gets it reports it.
};

class PLIMSOLL_API Shape {
 public:
  static constexpr std::size_t kInlineRank = 6;
  static constexpr std::int64_t kMostElements = std::int64_t{1}
                                                << 59;  // Their size in bytes fits 64 bits for any dtype.

  // Unset: no shape was given. rank() is 0 and sizes() empty, but it equals only another unset shape.
  Shape() noexcept = default;

  // Every size is >= 0 or kUnknownSize. Throws InvalidArgument for other sizes, for more than kMaxRank of them, and
  // when the known ones (zeros aside) multiply to more than kMostElements.
  Shape(std::initializer_list<Dimension> sizes);
  explicit Shape(std::span<const std::int64_t> sizes) { assign(sizes); }
  Shape(const std::vector<std::int64_t>& sizes) { assign(sizes); }
  Shape(const std::vector<int>& sizes);
  static Shape scalar();

  Shape(const Shape& other) noexcept { copy(other); }
  Shape(Shape&& other) noexcept { move(other); }
  Shape& operator=(const Shape& other) noexcept {
    if (is_spilled() || other.is_spilled()) [[unlikely]]
      return assign_spilled(other);
    copy(other);
    return *this;
  }
  Shape& operator=(Shape&& other) noexcept {
    if (is_spilled()) [[unlikely]]
      return move_spilled(other);
    move(other);
    return *this;
  }
  ~Shape() {
    if (is_spilled()) release();
  }

  bool is_set() const noexcept { return rank_ >= 0; }
  bool is_known() const noexcept { return rank_ >= 0 && count_ >= 0; }  // Set, and without unknown sizes.
  bool is_scalar() const noexcept { return rank_ == 0; }
  std::size_t rank() const noexcept { return rank_ < 0 ? 0 : static_cast<std::size_t>(rank_); }

  // Elements: the product of the sizes, 1 for a scalar. Throws InvalidArgument when unset or a size is unknown.
  std::size_t size() const { return is_known() ? static_cast<std::size_t>(count_) : refuse_size(); }
  std::size_t num_elements() const { return size(); }

  std::int64_t operator[](std::size_t axis) const noexcept { return data()[axis]; }  // Requires axis < rank().
  std::int64_t at(std::int64_t axis) const;  // Negative axes count from the end. Throws InvalidArgument when outside.
  std::int64_t back() const noexcept { return data()[rank() - 1]; }  // Requires rank() > 0.
  std::span<const std::int64_t> sizes() const noexcept { return {data(), rank()}; }
  const std::int64_t* begin() const noexcept { return data(); }
  const std::int64_t* end() const noexcept { return data() + rank(); }

  // This shape, or a scalar when unset.
  Shape or_scalar() const { return is_set() ? *this : scalar(); }

  // "[2, 3]", "[]", "[?, 4]", "unset".
  std::string to_string() const;
  // "(2, 3)", "()", "(3,)", "(None, 4)": as TensorFlow prints the shape of a tensor.
  std::string to_tuple_string() const;

  friend bool operator==(const Shape& a, const Shape& b) noexcept {
    if (a.rank_ != b.rank_ || a.count_ != b.count_) return false;
    if (a.is_spilled()) [[unlikely]]
      return a.equal_sizes(b);
    for (int axis = 0; axis < a.rank_; ++axis)
      if (a.sizes_[static_cast<std::size_t>(axis)] != b.sizes_[static_cast<std::size_t>(axis)]) return false;
    return true;
  }

 private:
  struct Spilled;  // A count of users and the sizes.

  bool is_spilled() const noexcept { return rank_ > static_cast<std::int8_t>(kInlineRank); }
  const std::int64_t* data() const noexcept { return is_spilled() ? spilled_sizes() : sizes_.data(); }
  Spilled* spilled() const noexcept { return std::bit_cast<Spilled*>(sizes_[0]); }
  const std::int64_t* spilled_sizes() const noexcept;
  void assign(std::span<const std::int64_t> sizes);
  void copy(const Shape& other) noexcept;
  void move(Shape& other) noexcept;
  void retain() const noexcept;
  void release() noexcept;
  bool equal_sizes(const Shape& other) const noexcept;
  Shape& assign_spilled(const Shape& other) noexcept;
  Shape& move_spilled(Shape& other) noexcept;
  [[noreturn]] std::size_t refuse_size() const;

  std::array<std::int64_t, kInlineRank> sizes_ = {};  // When spilled, the first is the address of the Spilled.
  std::int64_t count_ = -1;                           // Elements, or -1 when unset or a size is unknown.
  std::int8_t rank_ = -1;                             // -1: unset.
};

inline void Shape::copy(const Shape& other) noexcept {
  sizes_ = other.sizes_;
  count_ = other.count_;
  rank_ = other.rank_;
  if (is_spilled()) retain();
}

inline void Shape::move(Shape& other) noexcept {
  sizes_ = other.sizes_;
  count_ = std::exchange(other.count_, -1);
  rank_ = std::exchange(other.rank_, static_cast<std::int8_t>(-1));
}

PLIMSOLL_API std::ostream& operator<<(std::ostream& out, const Shape& shape);  // to_string().

// The shape of an elementwise result, by NumPy's rule: aligned at the last axis, sizes equal or 1. An unknown size
// stays unknown against 1 or another unknown one, else it takes the known size. Throws InvalidArgument that begins with
// `where` and names both shapes.
PLIMSOLL_API Shape broadcast_shapes(const Shape& a, const Shape& b, const char* where = "broadcast");

// Elements to step over for each axis of a dense row-major tensor: {12, 4, 1} for [2, 3, 4]. The first rank()
// entries are meaningful. Requires a known shape.
using Strides = std::array<std::int64_t, kMaxRank>;
PLIMSOLL_API Strides row_major_strides(const Shape& shape);

// An axis from -rank to rank-1 as one from 0 to rank-1. Throws InvalidArgument that begins with `where`.
PLIMSOLL_API std::size_t resolve_axis(std::int64_t axis, std::size_t rank, const char* where);

}  // namespace plimsoll

template <>
struct std::hash<plimsoll::Shape> {
  PLIMSOLL_API std::size_t operator()(const plimsoll::Shape& shape) const noexcept;
};
