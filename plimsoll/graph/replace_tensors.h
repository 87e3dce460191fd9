// replace_tensors(): replaces the tensors inside a value, in the order of visit_all_tensors().
#pragma once

#include <span>

#include "plimsoll/tensor/visit_tensors.h"

namespace plimsoll {

// Requires as many as the value has.
template <class T>
void replace_tensors(T& value, std::span<const Tensor> with) {
  std::size_t next = 0;
  visit_all_tensors(value, [&](const Tensor& tensor) { const_cast<Tensor&>(tensor) = with[next++]; });
}

}  // namespace plimsoll
