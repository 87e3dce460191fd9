// OnnxAnalysis: analyses an ONNX graph when it is read: unsupported operators, values that must be known before the
// graph runs, where values end, and which tensors are weights.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "plimsoll/model/onnx/onnx_graph.h"

namespace plimsoll::internal {

class OnnxAnalysis {
 public:
  explicit OnnxAnalysis(OnnxGraph& graph) : graph_(graph) {}
  void run();  // Throws Unsupported, Corruption.

 private:
  void check_versions(const onnx::Opsets& opsets) const;
  void check(const std::vector<onnx::NodeProto>& nodes, const onnx::Opsets& opsets, const std::string& where);
  void check_tensor(const onnx::TensorProto& tensor);
  void check_values(const onnx::GraphProto& graph, bool ends);
  const OnnxGraph::Facts& find_known(const void* key, const std::vector<onnx::NodeProto>& nodes,
                                     const onnx::Opsets& opsets, OnnxGraph::Names seeds);
  void find_ends(OnnxGraph::Facts& facts, const std::vector<onnx::NodeProto>& nodes,
                 const std::vector<std::string>& outputs) const;
  void find_weights();
  const OnnxOperator* row_of(const onnx::NodeProto& node, const onnx::Opsets& opsets) const;

  OnnxGraph& graph_;
  int depth_ = 0;                                                   // Of graphs and functions that are being checked.
  std::set<const onnx::FunctionProto*> checked_;                    // Each function once, however often it is called.
  std::set<std::pair<const onnx::FunctionProto*, bool>> followed_;  // With known results, or not.
};

}  // namespace plimsoll::internal
