// The gradient of a loop: backwards through its iterations, whose states are recomputed.
//
// Some states are kept on the way (32 of them, wherever they help most), so that time grows with the number of
// iterations and not with its square, and memory does not depend on it.
#pragma once

#include <memory>
#include <vector>

#include "plimsoll/graph/body.h"

namespace plimsoll::internal {

struct LoopOperands {
  std::vector<Tensor> initial;   // The state.
  std::vector<Tensor> tested;    // What the condition captured.
  std::vector<Tensor> captured;  // What the body captured.
  std::vector<Tensor> upstream;  // Gradients of the end state, as far as it is floats.
};

// The gradients of the state and of what the body captured, as far as they are floats.
std::vector<Tensor> loop_gradients(const std::shared_ptr<Body>& condition, const std::shared_ptr<Body>& body,
                                   const LoopOperands& operands);

}  // namespace plimsoll::internal
