// One step of training or testing: the only place where a model's forward pass, loss, gradients and update meet.
//
//   StepResult step = train_step(network, example);          // Changes weights, state and statistics, or nothing.
//   add_to_metrics(network.training, step)
//
// A step runs as one planned program, made at the first of its kind (planned_step.h), or directly where that cannot be.
// Everything that can fail is obtained first: a step that throws leaves weights, optimizer state, statistics, states of
// recurrent layers, random draws and metrics as they were, and no tensor behind.
#pragma once

#include <vector>

#include "plimsoll/model/dataset.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/internal/planned_step.h"
#include "plimsoll/model/internal/step_result.h"
#include "plimsoll/model/logs.h"

namespace plimsoll {

StepResult train_step(Network& network, const Example& example);
StepResult test_step(Network& network, const Example& example);
std::vector<Tensor> predict_step(Network& network, const std::vector<Tensor>& inputs);
// Builds a chain that waits for its input; throws InvalidArgument for inputs the model does not take.
void prepare(Network& network, const std::vector<Tensor>& inputs, const char* where);

// The plan that such a step would run; nullptr when it would be run directly.
std::shared_ptr<PlannedStep> plan_step(Network& network, StepKind kind, const Example& example);

// Means over steps, by number of examples.
class StepMeans {
 public:
  explicit StepMeans(Network& network);  // Begins the metrics anew.
  void add(const StepResult& step);
  Logs logs(const char* prefix = "") const;

 private:
  Network& network_;
  double loss_ = 0, examples_ = 0;
  std::vector<double> losses_;
};

}  // namespace plimsoll
