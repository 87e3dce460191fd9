#include "plimsoll/base/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <ostream>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

std::string join(std::span<const std::int64_t> sizes, const char* unknown) {
  std::string text;
  for (const std::int64_t size : sizes) {
    if (!text.empty()) text += ", ";
    text += size == kUnknownSize ? std::string(unknown) : fmt::format("{}", size);
  }
  return text;
}

// Elements of a shape with these sizes, -1 when one is unknown. Zeros are left out of the test for overflow, so that
// whether a shape is accepted does not depend on the order of its axes, nor on a batch being empty.
std::int64_t count_elements(std::span<const std::int64_t> sizes) {
  std::int64_t product = 1;
  bool empty = false, unknown = false;
  for (const std::int64_t size : sizes) {
    if (size == INT64_MIN)
      throw InvalidArgument(fmt::format("shape: a size is larger than {}; no memory holds that", INT64_MAX));
    if (size < kUnknownSize)
      throw InvalidArgument(fmt::format("shape [{}]: size {} is negative; use sizes of 0 and more, or -1 for unknown",
                                        join(sizes, "-1"), size));
    empty |= size == 0;
    unknown |= size == kUnknownSize;
    if (size > 0 && (__builtin_mul_overflow(product, size, &product) || product > Shape::kMostElements))
      throw InvalidArgument(
          fmt::format("shape [{}]: more than {} elements; use smaller sizes", join(sizes, "-1"), Shape::kMostElements));
  }
  return unknown ? -1 : empty ? 0 : product;
}

}  // namespace

struct Shape::Spilled {
  explicit Spilled(std::span<const std::int64_t> from) { std::copy(from.begin(), from.end(), sizes.begin()); }
  std::atomic<std::uint32_t> users{1};
  std::array<std::int64_t, kMaxRank> sizes{};
};

Shape::Shape(std::initializer_list<Dimension> sizes) {
  static_assert(sizeof(Shape) == 64 && sizeof(Dimension) == sizeof(std::int64_t));
  std::array<std::int64_t, kMaxRank + 1>
      plain;  // One more than allowed, so that assign() sees when there are too many.
  const std::size_t rank = std::min(sizes.size(), plain.size());
  std::transform(sizes.begin(), sizes.begin() + rank, plain.begin(), [](Dimension d) { return d.value(); });
  assign({plain.data(), rank});
}

Shape::Shape(const std::vector<int>& sizes) { assign(std::vector<std::int64_t>(sizes.begin(), sizes.end())); }

Shape Shape::scalar() { return Shape(std::span<const std::int64_t>()); }

void Shape::assign(std::span<const std::int64_t> sizes) {
  if (sizes.size() > kMaxRank)
    throw InvalidArgument(fmt::format("shape: more than {} axes; join some of them with reshape", kMaxRank));
  count_ = count_elements(sizes);
  if (sizes.size() > kInlineRank)
    sizes_[0] = std::bit_cast<std::int64_t>(new Spilled(sizes));
  else
    std::copy(sizes.begin(), sizes.end(), sizes_.begin());
  rank_ = static_cast<std::int8_t>(sizes.size());
}

Shape& Shape::assign_spilled(const Shape& other) noexcept {
  if (this == &other) return *this;
  if (is_spilled()) release();
  copy(other);
  return *this;
}

Shape& Shape::move_spilled(Shape& other) noexcept {
  if (this == &other) return *this;
  release();
  move(other);
  return *this;
}

const std::int64_t* Shape::spilled_sizes() const noexcept { return spilled()->sizes.data(); }

void Shape::retain() const noexcept { spilled()->users.fetch_add(1, std::memory_order_relaxed); }

void Shape::release() noexcept {
  if (spilled()->users.fetch_sub(1, std::memory_order_acq_rel) == 1) delete spilled();
}

std::size_t Shape::refuse_size() const {
  if (!is_set()) throw InvalidArgument("shape: not given, so it has no element count");
  throw InvalidArgument(fmt::format("shape {}: has a size that is not known yet, so no element count", to_string()));
}

std::int64_t Shape::at(std::int64_t axis) const { return data()[resolve_axis(axis, rank(), "shape")]; }

std::string Shape::to_string() const { return is_set() ? "[" + join(sizes(), "?") + "]" : "unset"; }

std::string Shape::to_tuple_string() const {
  if (!is_set()) return "unset";
  return "(" + join(sizes(), "None") + (rank() == 1 ? ",)" : ")");
}

bool Shape::equal_sizes(const Shape& other) const noexcept { return std::equal(begin(), end(), other.begin()); }

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.to_string(); }

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* where) {
  if (a == b && a.is_known()) return a;
  const std::size_t rank = std::max(a.rank(), b.rank());
  std::array<std::int64_t, kMaxRank> sizes;
  for (std::size_t i = 0; i < rank; ++i) {  // From the last axis.
    const std::int64_t left = i < a.rank() ? a[a.rank() - 1 - i] : 1;
    const std::int64_t right = i < b.rank() ? b[b.rank() - 1 - i] : 1;
    std::int64_t& size = sizes[rank - 1 - i];
    if (left == right || right == 1 || (right == kUnknownSize && left != 1))
      size = left;
    else if (left == 1 || left == kUnknownSize)
      size = right;
    else
      throw InvalidArgument(
          fmt::format("{}: shapes {} and {} do not fit: {} against {} on axis {}; sizes must be equal or 1", where,
                      a.to_string(), b.to_string(), left, right, rank - 1 - i));
  }
  return Shape(std::span<const std::int64_t>(sizes.data(), rank));
}

Strides row_major_strides(const Shape& shape) {
  Strides strides{};
  std::int64_t step = 1;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    strides[axis] = step;
    step *= std::max<std::int64_t>(shape[axis], 1);
  }
  return strides;
}

std::size_t resolve_axis(std::int64_t axis, std::size_t rank, const char* where) {
  const auto count = static_cast<std::int64_t>(rank);
  if (axis < -count || axis >= count)
    throw InvalidArgument(rank == 0 ? fmt::format("{}: axis {} of a scalar; a scalar has no axes", where, axis)
                                    : fmt::format("{}: axis {} is outside of -{} to {}", where, axis, rank, rank - 1));
  return static_cast<std::size_t>(axis < 0 ? axis + count : axis);
}

}  // namespace plimsoll

std::size_t std::hash<plimsoll::Shape>::operator()(const plimsoll::Shape& shape) const noexcept {
  std::uint64_t hash = shape.is_set() ? 0x9e3779b97f4a7c15u + shape.rank() : 0;
  for (const std::int64_t size : shape) {
    hash ^= static_cast<std::uint64_t>(size);
    hash *= 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return static_cast<std::size_t>(hash);
}
