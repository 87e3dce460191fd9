#include "plimsoll/ops/sparse_tensor.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <ostream>

#include "plimsoll/kernels/sparse.h"
#include "plimsoll/ops/check_indices.h"
#include "plimsoll/ops/internal/sparse_parts.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll {
namespace {

constexpr const char* kSparse = "sparse";

void require_part(const Tensor& part, const char* name) {
  if (part.is_empty_handle() || part.is_disposed()) refuse_disposed(part, kSparse, name);
}

void require_shape(const Shape& shape) {
  if (!shape.is_known() || shape.rank() == 0)
    throw InvalidArgument(
        fmt::format("sparse: the shape is {}; give one of rank 1 or more with all sizes known", shape.to_string()));
}

// As i64, on the same buffer if it already is: the caller's tensor is not touched.
Tensor as_indices(const Tensor& x, const char* name) {
  require_part(x, name);
  require_index_dtype(x.dtype(), kSparse, name);
  return x.dtype() == i64 ? x.reshape(x.shape()) : x.cast(i64);
}

void check_coo(const Tensor& indices, const Tensor& values, const Shape& shape) {
  require_shape(shape);
  if (indices.rank() != 2 || values.rank() != 1 || indices.shape()[0] != values.shape()[0] ||
      indices.shape()[1] != static_cast<std::int64_t>(shape.rank()))
    throw InvalidArgument(
        fmt::format("sparse: indices {} and values {} for shape {}; give indices [entries, {}] and values [entries]",
                    indices.shape().to_string(), values.shape().to_string(), shape.to_string(), shape.rank()));
  const std::int64_t* at = reading(indices);
  for (std::int64_t k = 0; k < indices.shape()[0]; ++k, at += shape.rank())
    for (std::size_t axis = 0; axis < shape.rank(); ++axis)
      if (at[axis] < 0 || at[axis] >= shape[axis]) [[unlikely]]
        throw InvalidArgument(
            fmt::format("sparse: entry {} is at {}, outside of shape {}: index {} on axis {}; {}", k,
                        coordinates_text(at, shape.rank()), shape.to_string(), at[axis], axis,
                        shape[axis] == 0 ? "there is no place" : fmt::format("use 0 to {}", shape[axis] - 1)));
}

bool is_in_order(const std::int64_t* at, std::int64_t entries, std::size_t rank) {
  for (std::int64_t k = 1; k < entries; ++k, at += rank)
    if (!std::lexicographical_compare(at, at + rank, at + rank, at + 2 * rank)) return false;
  return true;
}

// The entries' numbers in row-major order of their places; equal ones keep their order.
Tensor sorted_order(const Tensor& indices, std::size_t rank) {
  const std::int64_t entries = indices.shape()[0], *at = reading(indices);
  Tensor order = new_indices({entries}, indices, kSparse);
  std::int64_t* const begin = filling(order);
  std::iota(begin, begin + entries, std::int64_t{0});
  const auto width = static_cast<std::int64_t>(rank);
  std::sort(begin, begin + entries, [&](std::int64_t a, std::int64_t b) {
    const auto [x, y] = std::mismatch(at + a * width, at + (a + 1) * width, at + b * width);
    return x == at + (a + 1) * width ? a < b : *x < *y;
  });
  return order;
}

[[noreturn]] void refuse_duplicate(std::int64_t a, std::int64_t b, const std::int64_t* at, std::size_t rank) {
  throw InvalidArgument(
      fmt::format("sparse: entries {} and {} are both at {}; give each place once, or ask for Duplicates::sum",
                  std::min(a, b), std::max(a, b), coordinates_text(at, rank)));
}

// For each entry the number of its place among the distinct ones; returns how many there are.
std::int64_t number_places(const Tensor& order, const std::int64_t* at, std::size_t rank, SparseOptions options,
                           std::int64_t* place_of) {
  const std::int64_t* const entry = reading(order);
  const auto entries = static_cast<std::int64_t>(order.size()), width = static_cast<std::int64_t>(rank);
  std::int64_t places = 0;
  for (std::int64_t i = 0; i < entries; ++i) {
    const std::int64_t *here = at + entry[i] * width, *before = i == 0 ? nullptr : at + entry[i - 1] * width;
    if (before && std::equal(here, here + width, before)) {
      if (options.duplicates == Duplicates::refuse) refuse_duplicate(entry[i - 1], entry[i], here, rank);
    } else {
      ++places;
    }
    place_of[entry[i]] = places - 1;
  }
  return places;
}

SparseTensor sorted(const Tensor& indices, const Tensor& values, const Shape& shape, SparseOptions options) {
  const std::size_t rank = shape.rank();
  const std::int64_t* const at = reading(indices);
  const Tensor order = sorted_order(indices, rank);
  const Tensor place_of = new_indices(order.shape(), indices, kSparse);
  const std::int64_t places = number_places(order, at, rank, options, filling(place_of));
  if (places == static_cast<std::int64_t>(order.size()))
    return SparseParts::coo(gather(indices, order), gather(values, order), shape);
  const Tensor different = new_indices({places, rank}, indices, kSparse);
  for (std::size_t k = 0; k < order.size(); ++k)
    std::copy_n(at + k * rank, rank, filling(different) + reading(place_of)[k] * static_cast<std::int64_t>(rank));
  return SparseParts::coo(different, sum_at(values, place_of, places), shape);
}

void check_splits(const Tensor& splits, const Tensor& columns, const Tensor& values, const Shape& shape) {
  require_shape(shape);
  if (shape.rank() != 2 || splits.rank() != 1 || splits.shape()[0] != shape[0] + 1 || columns.rank() != 1 ||
      values.rank() != 1 || columns.size() != values.size())
    throw InvalidArgument(fmt::format(
        "sparse: row splits {}, columns {} and values {} for shape {}; CSR is for matrices [rows, width] "
        "and has rows + 1 splits and as many columns as values",
        splits.shape().to_string(), columns.shape().to_string(), values.shape().to_string(), shape.to_string()));
  const std::int64_t *split = reading(splits), entries = static_cast<std::int64_t>(columns.size());
  for (std::int64_t r = 0; r <= shape[0]; ++r) {
    const std::int64_t low = r == 0 ? 0 : split[r - 1], high = r == 0 ? 0 : entries;
    if (split[r] < low || split[r] > high || (r == shape[0] && split[r] != entries))
      throw InvalidArgument(fmt::format("sparse: row split {} is {}; splits rise from 0 to the number of entries, {}",
                                        r, split[r], entries));
  }
}

// The indices [entries, 2] of compressed rows.
Tensor expanded(const Tensor& splits, const Tensor& columns) {
  Tensor indices = new_indices({columns.size(), 2}, columns, kSparse);
  const SparseRows rows = sparse_rows(splits, columns, 0);
  std::int64_t* to = filling(indices);
  for (std::int64_t r = 0; r < rows.rows; ++r)
    for (std::int64_t k = rows.splits[r]; k < rows.splits[r + 1]; ++k) {
      *to++ = r;
      *to++ = rows.columns[k];
    }
  return indices;
}

}  // namespace

SparseTensor::SparseTensor(const Tensor& indices, const Tensor& values, const Shape& shape, SparseOptions options) {
  require_part(values, "values");
  const Tensor wide = as_indices(indices, "indices");
  check_coo(wide, values, shape);
  if (is_in_order(reading(wide), wide.shape()[0], shape.rank()))
    *this = SparseParts::coo(wide, values.reshape(values.shape()), shape);
  else
    *this = sorted(wide, values, shape, options);
}

SparseTensor SparseTensor::from_csr(const Tensor& row_splits, const Tensor& columns, const Tensor& values,
                                    const Shape& shape, SparseOptions options) {
  require_part(values, "values");
  const Tensor splits = as_indices(row_splits, "row splits"), wide = as_indices(columns, "columns");
  check_splits(splits, wide, values, shape);
  const Tensor indices = expanded(splits, wide);
  check_coo(indices, values, shape);
  if (is_in_order(reading(indices), indices.shape()[0], 2))
    return SparseParts::csr(splits, wide, values.reshape(values.shape()), shape);
  return sorted(indices, values, shape, options).to_csr();
}

Tensor SparseTensor::indices() const { return format() == SparseFormat::coo ? first_ : expanded(first_, columns_); }

Tensor SparseTensor::row_splits() const {
  require_matrix(*this, "row_splits");
  if (format() == SparseFormat::csr) return first_;
  Tensor splits = new_indices({shape_[0] + 1}, values_, kSparse);
  sparse_row_splits(reading(first_), num_entries(), 2, shape_[0], filling(splits));
  return splits;
}

Tensor SparseTensor::columns() const {
  require_matrix(*this, "columns");
  if (format() == SparseFormat::csr) return columns_;
  Tensor columns = new_indices({num_entries()}, values_, kSparse);
  const std::int64_t* from = reading(first_);
  std::int64_t* to = filling(columns);
  for (std::int64_t k = 0; k < num_entries(); ++k) to[k] = from[2 * k + 1];
  return columns;
}

SparseTensor SparseTensor::to_coo() const {
  return format() == SparseFormat::coo ? *this : SparseParts::coo(indices(), values_, shape_);
}

SparseTensor SparseTensor::to_csr() const {
  return format() == SparseFormat::csr ? *this : SparseParts::csr(row_splits(), columns(), values_, shape_);
}

SparseTensor SparseTensor::with_values(const Tensor& values) const {
  require_part(values, "values");
  if (!(values.shape() == values_.shape()))
    throw InvalidArgument(fmt::format("with_values: values are {}, for {} entries; give one for each",
                                      values.shape().to_string(), num_entries()));
  SparseTensor result = *this;
  result.values_ = values;
  return result;
}

SparseTensor SparseTensor::slice_rows(std::int64_t begin, std::int64_t count) const {
  const std::int64_t rows = shape_[0];
  if (begin < 0 || begin > rows || count < -1 || count > rows - begin)
    throw InvalidArgument(
        fmt::format("slice_rows: begin {} and count {} are outside of the {} rows of shape {}; use 0 "
                    "<= begin, and count -1 for the rest",
                    begin, count, rows, shape_.to_string()));
  if (count == -1) count = rows - begin;
  std::vector<std::int64_t> sizes(shape_.begin(), shape_.end());
  sizes[0] = count;
  if (format() == SparseFormat::csr) {
    const std::int64_t *split = reading(first_), first = split[begin], entries = split[begin + count] - first;
    const Tensor splits = new_indices({count + 1}, values_, "slice_rows");
    for (std::int64_t r = 0; r <= count; ++r) filling(splits)[r] = split[begin + r] - first;
    return SparseParts::csr(splits, columns_.slice({first}, {entries}), values_.slice({first}, {entries}),
                            Shape(sizes));
  }
  const std::int64_t *at = reading(first_), width = static_cast<std::int64_t>(rank());
  const auto below = [&](std::int64_t row) {
    std::int64_t low = 0, high = num_entries();
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      (at[middle * width] < row ? low : high) = at[middle * width] < row ? middle + 1 : middle;
    }
    return low;
  };
  const std::int64_t first = below(begin), entries = below(begin + count) - first;
  const Tensor indices = new_indices({entries, width}, values_, "slice_rows");
  std::int64_t* const to = filling(indices);
  std::copy_n(at + first * width, entries * width, to);
  for (std::int64_t k = 0; k < entries; ++k) to[k * width] -= begin;
  return SparseParts::coo(indices, values_.slice({first}, {entries}), Shape(sizes));
}

SparseTensor SparseTensor::transpose(const std::vector<std::int64_t>& permutation) const {
  std::vector<std::int64_t> axes = permutation, sizes, seen(rank(), 0);
  if (axes.empty())
    for (std::size_t axis = rank(); axis-- > 0;) axes.push_back(static_cast<std::int64_t>(axis));
  for (std::int64_t& axis : axes) {
    axis = static_cast<std::int64_t>(resolve_axis(axis, rank(), "transpose"));
    sizes.push_back(shape_[static_cast<std::size_t>(axis)]);
    if (seen[static_cast<std::size_t>(axis)]++ > 0 || axes.size() != rank())
      throw InvalidArgument(fmt::format("transpose: axes [{}] for shape {}; give each axis once",
                                        fmt::join(permutation, ", "), shape_.to_string()));
  }
  if (std::is_sorted(axes.begin(), axes.end())) return *this;
  if (format() == SparseFormat::coo) {
    const Tensor chosen = new_indices({rank()}, values_, "transpose");
    std::copy(axes.begin(), axes.end(), filling(chosen));
    return sorted(gather(first_, chosen, 1), values_, Shape(sizes), {});
  }
  const Tensor splits = new_indices({shape_[1] + 1}, values_, "transpose"),
               columns = new_indices({num_entries()}, values_, "transpose"),
               order = new_indices({num_entries()}, values_, "transpose");
  sparse_transpose(sparse_rows(first_, columns_, shape_[1]), filling(splits), filling(columns), filling(order));
  return SparseParts::csr(splits, columns, gather(values_, order), Shape(sizes));
}

void SparseTensor::dispose() const noexcept {
  first_.dispose();
  columns_.dispose();
  values_.dispose();
}

std::string to_string(const SparseTensor& sparse) {
  return fmt::format("<SparseTensor: shape={}, dtype={}, device={}, format={}, entries={}>",
                     sparse.shape().to_tuple_string(), dtype_name(sparse.dtype()), sparse.device(),
                     sparse.format() == SparseFormat::coo ? "coo" : "csr", sparse.num_entries());
}

std::ostream& operator<<(std::ostream& out, const SparseTensor& sparse) { return out << to_string(sparse); }

}  // namespace plimsoll
