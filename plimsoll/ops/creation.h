// Making tensors out of values, fills and random numbers.
//
//   Tensor a = constant(2);                                              // i32 scalar
//   Tensor b = constant({{1.f, 2.f}, {3.f, 4.f}}, {.name = "matrix"});   // f32 [2, 2]
//   Tensor c = zeros({2, 3}); Tensor d = full({2}, 7.f); Tensor e = random_normal({64, 10}, {.seed = 7});
//
// New tensors are on the device of the DeviceScope. zeros, ones and full allocate their memory at first use when
// config::set_lazy_allocation is on. Throws InvalidArgument for shapes with unknown sizes and for values that do not
// fill the shape; OutOfMemory when it does not fit.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct ConstantOptions {
  Shape shape = {};  // Default: the shape of the values.
  std::string name = {};
  std::optional<DType> dtype = {};  // Default: the dtype of the values.
};

namespace creation_detail {
PLIMSOLL_API Tensor from_elements(const void* elements, std::size_t count, DType dtype, const Shape& shape,
                                  const ConstantOptions& options);
// The fill as a node of the graph that is being built. `name` lives as long as the program.
Tensor fill_node(const char* name, const Shape& shape, DType dtype, const Number& value);
// The elements of nested braces in order, and the sizes of the braces. Throws InvalidArgument for ragged ones.
[[noreturn]] PLIMSOLL_API void refuse_ragged(std::size_t first, std::size_t other);
template <class T, class List>
void collect(const List& list, std::size_t depth, std::vector<std::int64_t>& sizes, std::vector<T>& elements) {
  if (sizes.size() == depth) sizes.push_back(static_cast<std::int64_t>(list.size()));
  if (sizes[depth] != static_cast<std::int64_t>(list.size()))
    refuse_ragged(static_cast<std::size_t>(sizes[depth]), list.size());
  for (const auto& item : list) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(item)>, T>)
      elements.push_back(item);
    else
      collect(item, depth + 1, sizes, elements);
  }
}
template <class T, class List>
Tensor from_nested(const List& list, const ConstantOptions& options) {
  using Kept = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;  // vector<bool> has no elements.
  std::vector<std::int64_t> sizes;
  std::vector<T> elements;
  collect(list, 0, sizes, elements);
  const std::vector<Kept> flat(elements.begin(), elements.end());
  return from_elements(flat.data(), flat.size(), kDTypeOf<T>, Shape(sizes), options);
}
}  // namespace creation_detail

// A value, or nested braces of values up to four deep. The C++ type determines the dtype.
template <Element T>
Tensor constant(T value, const ConstantOptions& options = {}) {
  return creation_detail::from_elements(&value, 1, kDTypeOf<T>, Shape::scalar(), options);
}
template <Element T>
Tensor constant(std::initializer_list<T> values, const ConstantOptions& options = {}) {
  return creation_detail::from_elements(values.begin(), values.size(), kDTypeOf<T>, {values.size()}, options);
}
template <Element T>
Tensor constant(std::initializer_list<std::initializer_list<T>> values, const ConstantOptions& options = {}) {
  return creation_detail::from_nested<T>(values, options);
}
template <Element T>
Tensor constant(std::initializer_list<std::initializer_list<std::initializer_list<T>>> values,
                const ConstantOptions& options = {}) {
  return creation_detail::from_nested<T>(values, options);
}
template <Element T>
Tensor constant(std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>> values,
                const ConstantOptions& options = {}) {
  return creation_detail::from_nested<T>(values, options);
}

// Copies the elements. Throws InvalidArgument unless the shape has as many.
template <Element T>
requires(!std::same_as<T, bool>) Tensor from_vector(const std::vector<T>& values, const Shape& shape = {}) {
  return creation_detail::from_elements(values.data(), values.size(), kDTypeOf<T>, {values.size()}, {.shape = shape});
}
PLIMSOLL_API Tensor from_vector(const std::vector<bool>& values, const Shape& shape = {});
template <Element T>
Tensor from_span(std::span<const T> values, const Shape& shape = {}) {
  return creation_detail::from_elements(values.data(), values.size(), kDTypeOf<T>, {values.size()}, {.shape = shape});
}

// A tensor on the caller's memory, without a copy: it must stay valid and unchanged until `deleter` is called with it.
// Throws InvalidArgument for a null pointer unless the tensor has no elements, and for one that is not aligned for the
// dtype.
PLIMSOLL_API Tensor wrap(void* memory, const Shape& shape, DType dtype, std::function<void(void*)> deleter = {});

PLIMSOLL_API Tensor zeros(const Shape& shape, DType dtype = f32);
PLIMSOLL_API Tensor ones(const Shape& shape, DType dtype = f32);
PLIMSOLL_API Tensor full(const Shape& shape, const Number& value);  // With the number's dtype.
PLIMSOLL_API Tensor full(const Shape& shape, const Number& value, DType dtype);
PLIMSOLL_API Tensor zeros_like(const Tensor& x);
PLIMSOLL_API Tensor ones_like(const Tensor& x);
PLIMSOLL_API Tensor full_like(const Tensor& x, const Number& value);

// begin, begin + step, ... excluding end; with the numbers' dtype.
PLIMSOLL_API Tensor arange(const Number& end);
PLIMSOLL_API Tensor arange(const Number& begin, const Number& end, const Number& step = 1);
PLIMSOLL_API Tensor linspace(double begin, double end, std::int64_t count, DType dtype = f32);  // Both ends included.
PLIMSOLL_API Tensor eye(std::int64_t rows, std::int64_t columns = -1, DType dtype = f32);

}  // namespace plimsoll
