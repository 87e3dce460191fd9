// The gradient of a loop: goes backwards through its iterations and recomputes their states.
//
// Some states are kept (32 of them, where they help most), so that time grows linearly with the number of iterations,
// not quadratically, and memory does not depend on it.
#pragma once

#include <memory>
#include <vector>

#include "plimsoll/graph/body.h"

namespace plimsoll::internal {

struct LoopOperands {
  std::vector<Tensor> initial;   // The state.
  std::vector<Tensor> tested;    // The condition's captures.
  std::vector<Tensor> captured;  // The body's captures.
  std::vector<Tensor> upstream;  // Gradients of the final state, for the floats in it.
};

// The gradients of the state and of the body's captures, for the floats among them.
std::vector<Tensor> loop_gradients(const std::shared_ptr<Body>& condition, const std::shared_ptr<Body>& body,
                                   const LoopOperands& operands);

}  // namespace plimsoll::internal
