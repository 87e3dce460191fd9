#include "plimsoll/ops/tensor_array.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/check_indices.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 24;

struct ArrayElement {
  Tensor tensor;
  bool was_written = false;
  bool was_read = false;  // And removed.
};

// The sizes that both know; unset when they contradict each other.
Shape merged(const Shape& a, const Shape& b) {
  if (!a.is_set()) return b;
  if (a.rank() != b.rank()) return {};
  std::vector<std::int64_t> sizes(a.begin(), a.end());
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] != kUnknownSize && sizes[axis] != b[axis]) return {};
    sizes[axis] = b[axis];
  }
  return Shape(sizes);
}

std::vector<std::int64_t> index_list(const Tensor& indices) {
  require_tensor(indices, "TensorArray", "indices");
  require_index_dtype(indices.dtype(), "TensorArray");
  if (indices.rank() != 1)
    throw InvalidArgument(
        fmt::format("TensorArray: indices are {}; give a vector of them", indices.shape().to_string()));
  return indices.cast(i64).to_vector<std::int64_t>();
}

}  // namespace

struct TensorArray::State {
  const DType dtype;
  const TensorArrayOptions options;
  Shape shape;  // Of elements, as far as known.
  std::vector<ArrayElement> elements;

  void check_index(std::int64_t index, std::int64_t size, const char* where) const {
    if (index < 0 || index >= size)
      throw InvalidArgument(fmt::format("TensorArray: {} index {} of an array of size {}{}", where, index, size,
                                        index >= size && !options.dynamic_size ? "; give a size that holds it, or "
                                                                                 "dynamic_size"
                                                                               : ""));
  }

  // The shape of elements once `value` is at `index`. Changes nothing.
  Shape check_write(std::int64_t index, const Tensor& value, const Shape& known) const {
    require_tensor(value, "TensorArray", "the value");
    const auto size = static_cast<std::int64_t>(elements.size());
    check_index(index, options.dynamic_size ? kMaxSize : size, "write to");
    if (value.dtype() != dtype)
      throw InvalidArgument(fmt::format("TensorArray: a value of {} at index {} of an array of {}; cast it",
                                        dtype_name(value.dtype()), index, dtype_name(dtype)));
    const Shape together = merged(known, value.shape());
    if (!together.is_set())
      throw InvalidArgument(fmt::format("TensorArray: a value of shape {} at index {} of an array of elements {}{}",
                                        value.shape().to_string(), index, known.to_string(),
                                        options.element_shape.is_set() ? "" : "; turn infer_shape off to mix shapes"));
    if (options.clear_after_read && index < size && elements[static_cast<std::size_t>(index)].was_written)
      throw FailedPrecondition(
          fmt::format("TensorArray: index {} was written{} before; write each once, or turn clear_after_read off",
                      index, elements[static_cast<std::size_t>(index)].was_read ? " and read" : ""));
    return options.infer_shape ? together : known;
  }

  // Writes all of them or none.
  void write(const std::vector<std::int64_t>& indices, const std::vector<Tensor>& values) {
    Shape known = shape;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      known = check_write(indices[i], values[i], known);
      if (options.clear_after_read &&
          std::count(indices.begin(), indices.begin() + static_cast<std::ptrdiff_t>(i), indices[i]) > 0)
        throw FailedPrecondition(fmt::format("TensorArray: index {} is given twice; write each once", indices[i]));
    }
    std::vector<Tensor> own;
    std::size_t size = elements.size();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      own.push_back(keep(values[i].reshape(values[i].shape())));
      size = std::max(size, static_cast<std::size_t>(indices[i]) + 1);
    }
    elements.resize(size);
    for (std::size_t i = 0; i < indices.size(); ++i)
      elements[static_cast<std::size_t>(indices[i])] = {std::move(own[i]), true, false};
    shape = known;
  }

  // The element without removing it; zeros where nothing was written.
  Tensor look(std::int64_t index) const {
    check_index(index, static_cast<std::int64_t>(elements.size()), "read of");
    const ArrayElement& element = elements[static_cast<std::size_t>(index)];
    if (element.was_read)
      throw FailedPrecondition(fmt::format(
          "TensorArray: index {} was read before, which cleared it; read each once, or turn clear_after_read off",
          index));
    if (element.was_written) return element.tensor;
    if (!shape.is_known())
      throw FailedPrecondition(
          fmt::format("TensorArray: index {} was never written, and elements are of shape {}; write it, or give an "
                      "element_shape to have zeros",
                      index, shape.to_string()));
    return zeros(shape, dtype);
  }

  std::vector<Tensor> look_at(const std::vector<std::int64_t>& indices) const {
    std::vector<Tensor> all;
    for (const std::int64_t index : indices) all.push_back(look(index));
    return all;
  }
  std::vector<std::int64_t> all_indices() const {
    std::vector<std::int64_t> indices(elements.size());
    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
    return indices;
  }
  // The result of stacking or joining no elements.
  Tensor nothing(const char* where, bool stacked) const {
    if (!shape.is_known() || (!stacked && shape.rank() == 0))
      throw FailedPrecondition(
          fmt::format("TensorArray: {} of no elements of shape {}; give an element_shape", where, shape.to_string()));
    std::vector<std::int64_t> sizes(shape.begin(), shape.end());
    if (stacked)
      sizes.insert(sizes.begin(), 0);
    else
      sizes[0] = 0;
    return zeros(Shape(sizes), dtype);
  }
};

TensorArray::TensorArray(DType dtype, const TensorArrayOptions& options) {
  if (options.size < 0 || options.size > kMaxSize)
    throw InvalidArgument(fmt::format("TensorArray: the size is {}; give 0 to {}", options.size, kMaxSize));
  state_ = std::make_shared<State>(State{dtype, options, options.element_shape, {}});
  state_->elements.resize(static_cast<std::size_t>(options.size));
}

TensorArray& TensorArray::write(std::int64_t index, const Tensor& value) {
  state_->write({index}, {value});
  return *this;
}

Tensor TensorArray::read(std::int64_t index) {
  const Tensor element = state_->look(index);
  Tensor result = element.reshape(element.shape());  // Belongs to the scope in which it is read.
  if (state_->options.clear_after_read) state_->elements[static_cast<std::size_t>(index)] = {{}, true, true};
  return result;
}

Tensor TensorArray::stack() const { return gather(state_->all_indices()); }

Tensor TensorArray::gather(const std::vector<std::int64_t>& indices) const {
  if (indices.empty()) return state_->nothing("a stack", true);
  return plimsoll::stack(state_->look_at(indices));
}
Tensor TensorArray::gather(const Tensor& indices) const { return gather(index_list(indices)); }

Tensor TensorArray::concat() const {
  if (state_->elements.empty()) return state_->nothing("a concat", false);
  return plimsoll::concat(state_->look_at(state_->all_indices()));
}

TensorArray& TensorArray::scatter(const std::vector<std::int64_t>& indices, const Tensor& value) {
  require_tensor(value, "TensorArray", "the value");
  if (value.rank() == 0 || value.shape()[0] != static_cast<std::int64_t>(indices.size()))
    throw InvalidArgument(fmt::format("TensorArray: a value of shape {} for {} indices; give a row for each",
                                      value.shape().to_string(), indices.size()));
  state_->write(indices, plimsoll::unstack(value));
  return *this;
}
TensorArray& TensorArray::scatter(const Tensor& indices, const Tensor& value) {
  return scatter(index_list(indices), value);
}

TensorArray& TensorArray::unstack(const Tensor& value) {
  require_tensor(value, "TensorArray", "the value");
  std::vector<std::int64_t> indices(value.rank() == 0 ? 0 : static_cast<std::size_t>(value.shape()[0]));
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
  return scatter(indices, value);
}

TensorArray& TensorArray::split(const Tensor& value, const std::vector<std::int64_t>& lengths) {
  require_tensor(value, "TensorArray", "the value");
  const std::vector<Tensor> pieces = plimsoll::split(value, lengths);
  std::vector<std::int64_t> indices(pieces.size());
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
  state_->write(indices, pieces);
  return *this;
}

std::int64_t TensorArray::size() const noexcept { return static_cast<std::int64_t>(state_->elements.size()); }
DType TensorArray::dtype() const noexcept { return state_->dtype; }
Shape TensorArray::element_shape() const { return state_->shape; }

void TensorArray::dispose() const noexcept {
  for (const ArrayElement& element : state_->elements) element.tensor.dispose();
}

std::vector<Tensor> TensorArray::elements() const {
  std::vector<Tensor> there;
  for (const ArrayElement& element : state_->elements)
    if (!element.tensor.is_empty_handle()) there.push_back(element.tensor);
  return there;
}

}  // namespace plimsoll
