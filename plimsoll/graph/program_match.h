// Recognizing the ops of steps: by what the functions that users call make of operands with the same specs.
//
//   const auto plain = [](const std::vector<Tensor>& in) { return in[0].argmax(-1); };
//   if (are_same(op_made_by(plain, {&list.spec(step.in[0])}, *step.device).get(), *step.op)) ...
#pragma once

#include <memory>
#include <vector>

#include "plimsoll/base/function_ref.h"
#include "plimsoll/graph/step_list.h"
#include "plimsoll/ops/matmul.h"

namespace plimsoll::internal {

// The single op that `function` makes of operands with these specs; nullptr when it makes none or several.
std::unique_ptr<Op> op_made_by(FunctionRef<Tensor(const std::vector<Tensor>&)> function,
                               const std::vector<const TensorSpec*>& specs, Device& device);

inline bool are_same(const Op* a, const Op& b) { return a && a->same_as(b); }

// Whether the step is matmul() of its two operands with these options.
bool is_product(const StepList& list, const StepList::Step& step, MatmulOptions options);

}  // namespace plimsoll::internal
