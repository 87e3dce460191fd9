#include "plimsoll/ops/internal/layer_norm_operands.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

bool fits(const Shape& shape, const Shape& wanted) {
  if (shape.rank() != wanted.rank()) return false;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] != wanted[axis] && shape[axis] != kUnknownSize && wanted[axis] != kUnknownSize) return false;
  return true;
}

}  // namespace

void require_epsilon(double epsilon, const char* where) {
  if (!(epsilon >= 0)) throw InvalidArgument(fmt::format("{}: epsilon is {}; give 0 or more", where, epsilon));
}

void require_parameters(const Op& op, const Specs& in, const NormInputs& inputs, const Shape& wanted) {
  for (std::size_t i = inputs.first; i < in.size(); ++i)
    if (!fits(in.shape(i), wanted))
      throw InvalidArgument(fmt::format("{}: {} is {}, x {}; give it as {}", op.name(), op.input_name(i),
                                        in.shape(i).to_string(), in.shape(0).to_string(), wanted.to_string()));
}

}  // namespace plimsoll::internal
