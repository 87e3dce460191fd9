// dropout: sets random elements to 0 and scales the others up, so that the mean stays the same.
//
//   Tensor y = dropout(x, 0.5, {.seed = 7});
//   Tensor z = dropout(x, 0.5, {.training = false});       // x itself
//
// The dropped elements are a function of the seed (see random.h); the gradient draws them again, so that tapes keep
// nothing. Takes floats. Throws InvalidArgument for a rate outside [0, 1). Scratch is bounded, whatever the size.
#pragma once

#include <cstdint>
#include <optional>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct DropoutSettings {
  std::optional<std::uint64_t> seed = {};
  bool training = true;  // Otherwise nothing is dropped.
};

PLIMSOLL_API Tensor dropout(const Tensor& x, double rate, const DropoutSettings& settings = {});

}  // namespace plimsoll
