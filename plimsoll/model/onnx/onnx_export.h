// OnnxExport: a model of layers as an ONNX graph: nodes and initializers, layer by layer.
//
//   OnnxExport graph(model);  OnnxMessage message = graph.take();      // Of GraphProto.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/model.h"
#include "plimsoll/model/onnx/onnx_writer.h"

namespace plimsoll::internal {

class OnnxExport {
 public:
  static constexpr std::int64_t kOpset = 17, kIrVersion = 8;

  // Throws Unsupported, FailedPrecondition.
  explicit OnnxExport(const Model& model);
  OnnxMessage take() && { return std::move(graph_); }

 private:
  using Json = nlohmann::ordered_json;
  // One call of a layer, while it is written.
  struct Step {
    const LayerBase& layer;
    Json config;
    std::vector<std::string> inputs;
    Shapes input_shapes;
    Shape output_shape;
  };
  using Attributes = std::vector<OnnxMessage>;
  using Writer = std::string (OnnxExport::*)(const Step& step);

  std::string write(const Step& step);  // The name of its result.
  std::string dense(const Step& step);
  std::string convolution(const Step& step);
  std::string depthwise(const Step& step);
  std::string pooling(const Step& step);
  std::string global_pooling(const Step& step);
  std::string batch_norm(const Step& step);
  std::string layer_norm(const Step& step);
  std::string embedding(const Step& step);
  std::string merge(const Step& step);
  std::string reshape(const Step& step);
  std::string activation_layer(const Step& step);
  std::string pass(const Step& step);

  std::string node(const char* op, const std::vector<std::string>& inputs, Attributes attributes = {});
  std::string weight(const Step& step, const char* name, const std::vector<std::int64_t>& order = {});
  bool has_weight(const Step& step, const char* name) const;
  std::string constant(const std::vector<std::int64_t>& values);
  std::string activated(const Step& step, const std::string& x, const std::string& activation);
  std::string channels_first(const std::string& x);
  std::string channels_last(const std::string& x);
  Attributes window(const Step& step, const char* size_key) const;
  [[noreturn]] void refuse(const Step& step, const std::string& what) const;

  OnnxMessage graph_, initializers_;
  std::size_t names_ = 0;
};

}  // namespace plimsoll::internal
