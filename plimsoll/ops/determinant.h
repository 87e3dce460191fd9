// determinant: of each of the square matrices in a tensor.
//
//   determinant(x)                              // x [5, 3, 3]: [5]
//
// Of f32 and f64, computed in f64. It has no gradient: to ask for it is Unsupported. Throws InvalidArgument for
// matrices that are not square.
#pragma once

#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

Tensor determinant(const Tensor& x);

}  // namespace plimsoll::internal
