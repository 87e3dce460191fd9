// combine_bits(): what operators do to the bits of integers, element by element, with broadcasting.
#pragma once

#include "common.h"

namespace binding {

enum class Bits { and_, or_, xor_, left, right };

// Throws InvalidArgument for floats and for shapes that do not fit, Unsupported for tensors of a graph, OutOfMemory.
pl::Tensor combine_bits(const pl::Tensor& x, const pl::Tensor& y, Bits operation);

}  // namespace binding
