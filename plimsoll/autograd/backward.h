// Walks a tape backwards.
#pragma once

#include <span>
#include <vector>

#include "plimsoll/autograd/tape_record.h"

namespace plimsoll::internal {

// A result and its incoming gradient; an empty handle: ones.
struct BackwardSeed {
  Tensor target;
  Tensor gradient;
};
// The gradients of all targets together, each weighted by its incoming gradient.
std::vector<Tensor> run_backward(TapeRecord& record, std::span<const BackwardSeed> seeds,
                                 std::span<const Tensor> sources, bool keep);
// The gradients of `target`'s sum with respect to the sources; empty handles for those it does not depend on. Without
// `keep`, what a node saved is freed as soon as its gradient is done.
std::vector<Tensor> run_backward(TapeRecord& record, const Tensor& target, std::span<const Tensor> sources, bool keep);

}  // namespace plimsoll::internal
