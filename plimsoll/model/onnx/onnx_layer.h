// OnnxLayer: the graph of an ONNX file as a layer of a model: it has the file's weights, and its call computes the
// graph.
//
// In training, float tensors are trained, except for the statistics of BatchNormalization, which stay fixed, as does
// the graph itself: training uses the graph that predicts. Thread safety: as a layer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/model/layers/layer.h"
#include "plimsoll/model/onnx/onnx_graph.h"

namespace plimsoll::internal {

class OnnxPlans;

class OnnxLayer final : public LayerBase {
 public:
  // `with_values` false: weights are zeros that take memory when they are used.
  OnnxLayer(std::shared_ptr<const OnnxGraph> graph, bool with_values);

  const char* class_name() const override { return "Onnx"; }
  Shapes output_shapes(const Shapes& inputs) const override;
  std::vector<Tensor> call_all(const std::vector<Tensor>& inputs, CallContext& context) override;

  const OnnxGraph& graph() const noexcept { return *graph_; }
  // The same, where elements of some inputs are known (not empty handles) although the inputs are not.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, const std::vector<Tensor>& known, bool training) const;
  std::size_t held_bytes() const;  // Of weights and constants that are charged, in blocks of a budget.
  void leave_file() const;         // Weights on a file's pages move into memory that is charged.
  OnnxPlans& plans() const noexcept { return *plans_; }
  // What the file's tensor i is now, in the file's order of axes.
  Tensor weight_value(std::size_t i) const;

 private:
  void make_weights();

  bool will_be_mapped(std::size_t i) const;  // Once values are read.

  const std::shared_ptr<const OnnxGraph> graph_;
  const bool with_values_;
  std::vector<std::optional<Variable>> variables_;  // One for each weight of the graph, or
  std::vector<Tensor> constants_;                   // a tensor.
  const std::shared_ptr<OnnxPlans> plans_;
};

// Gives an output of the graph its name.
class OnnxOutput final : public LayerBase {
 public:
  explicit OnnxOutput(const std::string& name) { set_name(name); }
  const char* class_name() const override { return "OnnxOutput"; }
  Shapes output_shapes(const Shapes& inputs) const override { return inputs; }
  Tensor call(const Tensor& x, CallContext&) override { return x; }
};

}  // namespace plimsoll::internal
