// combine_bits(): what operators do to the bits of integers, element by element, with broadcasting.
// broadcast_shape(): the shape in which two others meet.
#pragma once

#include "common.h"

namespace binding {

enum class Bits { and_, or_, xor_, left, right };

// Throws InvalidArgument for floats and for shapes that do not fit, Unsupported for tensors of a graph, OutOfMemory.
pl::Tensor combine_bits(const pl::Tensor& x, const pl::Tensor& y, Bits operation);

// Of shapes that do not fit it gives one that pl::broadcast_to() refuses.
pl::Shape broadcast_shape(const pl::Shape& a, const pl::Shape& b);

}  // namespace binding
