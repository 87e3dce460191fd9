// One step of training or testing: the only place where a model's forward pass, loss, gradients and update meet.
//
//   StepResult step = train_step(network, example);          // Changes weights, state and statistics, or nothing.
//   add_to_metrics(network.training, step)
//
// Everything that can fail is obtained first: a step that throws leaves weights, optimizer state, statistics, states of
// recurrent layers, random draws and metrics as they were, and no tensor behind.
#pragma once

#include <vector>

#include "plimsoll/model/dataset.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/logs.h"

namespace plimsoll {

struct StepResult {
  double loss = 0;                                 // With regularization.
  std::vector<double> losses;                      // Of each output.
  std::vector<std::vector<Metric::Sums>> metrics;  // Of each output.
  std::size_t examples = 0;
};

StepResult train_step(Network& network, const Example& example);
StepResult test_step(Network& network, const Example& example);
// Builds a chain that waits for its input; throws InvalidArgument for inputs the model does not take.
void prepare(Network& network, const std::vector<Tensor>& inputs, const char* where);

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
