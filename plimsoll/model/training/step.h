// A step: what training or testing computes for a batch, and what it measures. Runs op by op, or traced for a plan.
//
//   Forward forward = run_forward(network, batch, context);   // Outputs and losses.
//   StepMeans means(network);                                 // Made before the steps.
//   means.add(plan->run(batch));  means.logs()["loss"];       // Neither can fail: a step that succeeded is reported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/model/data/dataset.h"
#include "plimsoll/model/layers/layer.h"
#include "plimsoll/model/training/logs.h"
#include "plimsoll/model/training/metrics.h"

namespace plimsoll::internal {

class Network;
class SpillFile;

enum class StepKind : std::uint8_t {
  kTrain,
  kTest,
  kPredict,
  kGradients,  // Training without the update: variables stay unchanged, gradients are results.
};

// Whether a step that does not fit the surrounding budgets may recompute values, how slow that may make it, and where
// it may store values instead.
constexpr double kMostSlowdown = 8;  // Slower plans are not considered.
struct Recomputing {
  bool is_allowed = false;
  double max_slowdown = kMostSlowdown;  // Predicted.
  SpillFile* spill = nullptr;
  bool parks_variables = false;  // In it, between their uses.
};

struct GradientClipping {
  double norm = 0;         // Of each gradient.
  double value = 0;        // Of each element.
  double global_norm = 0;  // Of all together.
};

struct Forward {
  std::vector<Tensor> outputs;
  std::vector<Tensor> targets, weights;  // Of each output, on its device.
  std::vector<Tensor> losses;            // Of each output.
  Tensor loss;                           // Their weighted sum, with regularization.
};

Forward run_forward(Network& network, const Example& batch, CallContext& context);
void clip_gradients(std::vector<Tensor>& gradients, const GradientClipping& clipping);

// The measurements of a step.
struct StepResult {
  double loss = 0;                                 // With regularization.
  std::vector<double> losses;                      // Of each output.
  std::vector<std::vector<Metric::Sums>> metrics;  // Of each output.
  std::size_t examples = 0;
  double recomputed = 0;          // The fraction of its work that was recomputing.
  std::size_t spilled_bytes = 0;  // Stored in the spill file.
};

StepResult measure(const Network& network, const Example& batch, const Forward& forward);

// Means over steps, weighted by their number of examples. The constructor allocates all memory that logs need, so a
// step that has succeeded never fails for lack of it.
class StepMeans {
 public:
  explicit StepMeans(Network& network, std::string_view prefix = {});
  void add(const StepResult& step) noexcept;  // The first one resets the metrics.
  const Logs& logs() & noexcept;              // Of the steps so far.
  Logs logs() && noexcept;

 private:
  Network& network_;
  double loss_ = 0, examples_ = 0;
  bool begun_ = false;
  std::vector<double> losses_;
  std::vector<Metric> metrics_;     // In the order of the logs.
  std::vector<std::string> names_;  // Of the loss, of the losses of several outputs, of the metrics.
  Logs logs_;
};

}  // namespace plimsoll::internal
