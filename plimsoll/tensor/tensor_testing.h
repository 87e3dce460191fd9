// Tensors for tests of this folder, which has no operations to make them with.
#pragma once

#include <algorithm>
#include <initializer_list>

#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {

template <Element T>
Tensor tensor_of(const Shape& shape, std::initializer_list<T> elements, const char* op = "constant") {
  Tensor made = make_tensor({.op = op, .category = Category::kInputs}, shape, kDTypeOf<T>, current_device());
  std::copy(elements.begin(), elements.end(), HostWrite(made).span<T>().begin());
  return made;
}

// Its elements are whatever they are.
inline Tensor some(const Shape& shape = {4}, const char* op = "some") {
  return make_tensor({.op = op}, shape, f32, current_device());
}

}  // namespace plimsoll
