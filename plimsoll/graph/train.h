// train: optimizers whose steps are nodes of a graph.
//
//   Tensor step = train::AdamOptimizer(0.01f).minimize(loss);     // a node; running it changes the variables
//   session.run(step, {{x, batch}});
//
// minimize() adds the gradients, the optimizer's state of each variable (variables of the graph, "w/m", which each
// session initialises with the others) and the updates, which change everything in place. Without a list it uses all
// trainable variables that the loss depends on. Throws InvalidArgument when there are none, and as gradients() does.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/graph/graph.h"
#include "plimsoll/ops/optimizer.h"

namespace plimsoll::train {

class PLIMSOLL_API Optimizer {
 public:
  Optimizer(const OptimizerOptions& options, std::string name);

  Tensor minimize(const Tensor& loss) const;
  Tensor minimize(const Tensor& loss, const std::vector<Variable>& variables) const;
  // The second half: for gradients that were computed in another way; empty handles leave their variables alone.
  Tensor apply_gradients(const std::vector<std::pair<Tensor, Variable>>& gradients_and_variables) const;

 private:
  OptimizerOptions options_;
  std::string name_;
};

struct PLIMSOLL_API GradientDescentOptimizer : Optimizer {
  explicit GradientDescentOptimizer(double learning_rate);
};
struct PLIMSOLL_API MomentumOptimizer : Optimizer {
  MomentumOptimizer(double learning_rate, double momentum, bool use_nesterov = false);
};
struct PLIMSOLL_API AdagradOptimizer : Optimizer {
  explicit AdagradOptimizer(double learning_rate, double initial_accumulator_value = 0.1);
};
struct PLIMSOLL_API RMSPropOptimizer : Optimizer {
  explicit RMSPropOptimizer(double learning_rate, double decay = 0.9, double momentum = 0, double epsilon = 1e-10);
};
struct PLIMSOLL_API AdamOptimizer : Optimizer {
  explicit AdamOptimizer(double learning_rate = 0.001, double beta_1 = 0.9, double beta_2 = 0.999,
                         double epsilon = 1e-8);
};

}  // namespace plimsoll::train
