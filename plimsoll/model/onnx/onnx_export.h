// OnnxExport: converts a model of layers to an ONNX graph: nodes and initializers, layer by layer.
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
  using Integers = std::vector<std::int64_t>;
  using Writer = std::string (OnnxExport::*)(const Step& step);  // The name of its result.
  using MultiWriter = std::vector<std::string> (OnnxExport::*)(const Step& step);

  std::vector<std::string> write(const Step& step);  // The names of its results.
  static Writer find_writer(const std::string& class_name);
  static MultiWriter find_multi_writer(const std::string& class_name);  // Of layers that may have several.

  std::string dense(const Step& step);
  std::string batch_norm(const Step& step);
  std::string layer_norm(const Step& step);
  std::string embedding(const Step& step);
  std::string merge(const Step& step);
  std::string reshape(const Step& step);
  std::string permute(const Step& step);
  std::string repeat_vector(const Step& step);
  std::string activation_layer(const Step& step);
  std::string pass(const Step& step);

  // Images and sequences, onnx_export_images.cc.
  std::string convolution(const Step& step);
  std::string depthwise(const Step& step);
  std::string separable(const Step& step);
  std::string transposed_convolution(const Step& step);
  std::string pooling(const Step& step);
  std::string global_pooling(const Step& step);
  std::string border(const Step& step);
  std::string up_sampling(const Step& step);
  std::string depthwise_product(const Step& step, const std::string& x);
  Attributes window(const Step& step, const char* size_key) const;

  // Recurrent layers and attention, onnx_export_sequences.cc.
  struct Direction;
  std::string attention(const Step& step);
  std::string projected(const Step& step, std::size_t input, const char* part, std::int64_t heads, std::int64_t size);
  std::vector<std::string> recurrent(const Step& step);
  std::vector<std::string> bidirectional(const Step& step);
  std::vector<std::string> run_direction(const Step& step, const Direction& direction);
  std::string recurrent_weights(const Step& step, const Direction& direction, const char* part);
  std::string recurrent_bias(const Step& step, const Direction& direction);

  // The name of its first result; others are that and "_1", "_2".
  std::string node(const char* op, const std::vector<std::string>& inputs, Attributes attributes = {},
                   std::size_t outputs = 1);
  std::string weight(const Step& step, const std::string& name, const Integers& order = {});
  std::string add_weight(const Step& step, const std::string& name, const Tensor& value);
  Tensor value_of(const Step& step, const std::string& name) const;
  bool has_weight(const Step& step, const std::string& name) const;
  std::string constant(const Integers& values);
  std::string constant(float value);
  std::string activated(const Step& step, const std::string& x, const std::string& activation);
  std::string channels_first(const std::string& x, std::size_t rank);
  std::string channels_last(const std::string& x, std::size_t rank);
  [[noreturn]] void refuse(const Step& step, const std::string& what) const;

  OnnxMessage graph_;
  std::size_t names_ = 0;
};

// The integers of a layer's configuration: one, a list, or lists in a list; none when it has none.
std::vector<std::int64_t> list_in(const nlohmann::ordered_json& config, const char* key);

}  // namespace plimsoll::internal
