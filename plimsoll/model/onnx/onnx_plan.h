// OnnxPlan: a planned run of an ONNX graph on inputs of known shapes: its memory is known before it runs.
//
//   OnnxPlan plan(layer, {{{1, 3, 224, 224}, f32}}, known);
//   plan.smallest_bytes();  plan.run(inputs);
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "plimsoll/graph/program.h"
#include "plimsoll/model/onnx/onnx_layer.h"
#include "plimsoll/model/training/forecast.h"

namespace plimsoll::internal {

class OnnxPlan {
 public:
  // `known`: elements of the inputs that decide shapes; empty handles for the others. Throws FailedPrecondition when
  // elements of others decide them, and what the operations throw.
  OnnxPlan(const OnnxLayer& layer, const std::vector<TensorSpec>& inputs, const std::vector<Tensor>& known);

  std::vector<Tensor> run(const std::vector<Tensor>& inputs);
  const Program& program() const noexcept { return *program_; }
  MemoryForecast forecast(std::size_t beside) const;  // With this many bytes held besides it.

 private:
  std::vector<bool> is_fed_;  // By input.
  std::unique_ptr<Program> program_;
  std::vector<Variable> variables_;
};

// The last few plans of a layer, by the shapes and dtypes of its inputs: predictions of the same shapes plan once.
// Thread safety: any thread.
class OnnxPlans {
 public:
  static constexpr std::size_t kMost = 4;

  // nullptr when elements decide shapes. Throws what making a plan throws.
  std::shared_ptr<OnnxPlan> get(const OnnxLayer& layer, const std::vector<TensorSpec>& inputs);

 private:
  struct Entry {
    std::vector<TensorSpec> inputs;
    std::shared_ptr<OnnxPlan> plan;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;  // The last one used is last.
};

}  // namespace plimsoll::internal
