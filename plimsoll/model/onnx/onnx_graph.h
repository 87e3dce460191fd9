// OnnxGraph: a parsed ONNX model, checked and ready to be computed node by node.
//
//   const auto graph = OnnxGraph::read(OnnxFile::open("model.onnx"));
//   std::vector<OnnxValue> outputs = graph->run(inputs, weights, false);      // Through our operations.
//
// Reading refuses (Unsupported) what cannot be computed, naming operator, version and node. Weights are the tensors of
// the file that a model may train or save: initializers and large constants. Values that decide shapes are known in
// advance: constants, shapes, and what is computed from them (`is_known`); they are computed at once while the rest may
// be traced. Thread safety: const, any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "plimsoll/model/onnx/onnx_file.h"
#include "plimsoll/model/onnx/onnx_operators.h"

namespace plimsoll::internal {

// A tensor of the file that is kept.
struct OnnxWeight {
  std::string name;
  const onnx::TensorProto* proto = nullptr;  // Or
  const onnx::SparseTensorProto* sparse = nullptr;
  bool trainable = false;
  bool is_constant = false;  // Decides shapes: never trained.
  AxisOrder order = {};      // As it is held.
};

class OnnxGraph {
 public:
  // Throws Corruption, Unsupported.
  static std::shared_ptr<const OnnxGraph> read(std::shared_ptr<const OnnxFile> file);

  const OnnxFile& file() const noexcept { return *file_; }
  const onnx::ModelProto& model() const noexcept { return model_; }
  const std::vector<onnx::ValueInfo>& inputs() const noexcept { return inputs_; }  // Without initializers.
  const std::vector<onnx::ValueInfo>& outputs() const noexcept { return model_.graph.outputs; }
  const std::vector<OnnxWeight>& weights() const noexcept { return weights_; }
  // Whether the elements of this input decide shapes, so that a plan is valid only for these elements.
  bool is_known_input(std::size_t input) const { return is_known(model_.graph, inputs_[input].name); }

  // Values for inputs() and weights(), in their order.
  std::vector<OnnxValue> run(const std::vector<OnnxValue>& inputs, const std::vector<OnnxValue>& weights,
                             bool training) const;

 private:
  friend class OnnxFrame;
  friend class OnnxAnalysis;
  friend class OnnxNode;
  using Names = std::unordered_set<std::string>;
  struct Facts {
    Names known;                                  // Values that must be known.
    std::vector<std::vector<std::string>> ended;  // By node: values that no later one reads.
  };

  explicit OnnxGraph(std::shared_ptr<const OnnxFile> file);
  bool is_known(const onnx::GraphProto& graph, const std::string& name) const;
  const onnx::FunctionProto* function(const onnx::NodeProto& node) const;

  std::shared_ptr<const OnnxFile> file_;
  onnx::ModelProto model_;
  std::vector<onnx::ValueInfo> inputs_;
  std::vector<OnnxWeight> weights_;
  std::unordered_map<const void*, Facts> facts_;                           // By graph or function.
  std::unordered_map<const onnx::TensorProto*, Tensor> tensors_;           // Of attributes and subgraphs.
  std::unordered_map<std::string, const onnx::FunctionProto*> functions_;  // By "domain:name".
};

// The values of one run of a graph, by name; those of enclosing graphs are visible.
class OnnxFrame {
 public:
  OnnxFrame(const OnnxGraph& graph, const OnnxGraph::Facts& facts, const onnx::Opsets& opsets, OnnxFrame* outer)
      : graph_(graph), facts_(facts), opsets_(opsets), outer_(outer), training_(outer && outer->training_) {
    if (outer) attributes_ = outer->attributes_;
  }

  const OnnxValue* find(const std::string& name) const;
  void set(const std::string& name, OnnxValue value) { values_[name] = std::move(value); }
  void run(const std::vector<onnx::NodeProto>& nodes);

 private:
  friend class OnnxNode;
  friend class OnnxGraph;
  static constexpr int kMostCalls = 64;  // Of functions by functions.
  void run(const onnx::NodeProto& node);
  void call(const onnx::NodeProto& node, const onnx::FunctionProto& function);
  std::vector<OnnxValue> run_inside(const onnx::GraphProto& graph, std::vector<OnnxValue> inputs);
  bool is_folded(const onnx::NodeProto& node, const OnnxOperator& row) const;

  const OnnxGraph& graph_;
  const OnnxGraph::Facts& facts_;
  const onnx::Opsets& opsets_;
  OnnxFrame* const outer_;
  bool training_ = false;
  int calls_ = 0;
  std::unordered_map<std::string, OnnxValue> values_;
  std::unordered_map<std::string, const onnx::AttributeProto*> attributes_;  // Of the function that runs.
};

}  // namespace plimsoll::internal
