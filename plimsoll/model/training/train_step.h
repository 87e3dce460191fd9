// One step of training or testing: the only place where a model's forward pass, loss, gradients and update meet.
//
//   StepResult step = train_step(network, example);          // Changes weights, state and statistics, or nothing.
//   means.add(step);  means.logs()["loss"]                   // Cannot fail: `means` was made before the step.
//
// A step runs as one planned program, made at the first of its kind (planned_step.h), or directly where that cannot be.
// Everything that can fail is obtained first: a step that throws leaves weights, optimizer state, statistics, states of
// recurrent layers, random draws and metrics as they were, and no tensor behind.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/model/data/dataset.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/training/logs.h"
#include "plimsoll/model/training/planned_step.h"
#include "plimsoll/model/training/step_result.h"

namespace plimsoll {

StepResult train_step(Network& network, const Example& example);
StepResult test_step(Network& network, const Example& example);
std::vector<Tensor> predict_step(Network& network, const std::vector<Tensor>& inputs);
// Builds a chain that waits for its input; throws InvalidArgument for inputs the model does not take.
void prepare(Network& network, const std::vector<Tensor>& inputs, const char* where);

// What inputs of this dtype become for the model's input: its own dtype, as in Keras. Integers that only embeddings
// read stay what they are.
DType input_dtype_for(const Network& network, std::size_t input, DType given);
// Casts inputs of other dtypes, on the caller's budget; those that fit stay as they are.
void cast_inputs(const Network& network, std::vector<Tensor>& inputs);

// The plan that such a step would run; nullptr when it would be run directly. Of a prediction: without targets.
std::shared_ptr<PlannedStep> plan_step(Network& network, StepKind kind, const Example& example);

// Means over steps, by number of examples, and the logs that tell them. Made before the steps, with room for all that
// will be told: a step that has happened does not fail for want of it.
class StepMeans {
 public:
  explicit StepMeans(Network& network, std::string_view prefix = {});
  void add(const StepResult& step) noexcept;  // The first begins the metrics anew.
  const Logs& logs() & noexcept;              // Of the steps so far.
  Logs logs() && noexcept;

 private:
  Network& network_;
  double loss_ = 0, examples_ = 0;
  bool begun_ = false;
  std::vector<double> losses_;
  std::vector<Metric> metrics_;     // Those that are told.
  std::vector<std::string> names_;  // Of the loss, of those of several outputs, of the metrics.
  Logs logs_;
};

}  // namespace plimsoll
