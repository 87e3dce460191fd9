#include "plimsoll/model/onnx/onnx_export.h"

#include <fmt/format.h>

#include <map>

#include "plimsoll/base/error.h"
#include "plimsoll/model/keras/config.h"
#include "plimsoll/model/onnx/onnx_proto.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll::internal {
namespace {

using Integers = std::vector<std::int64_t>;

OnnxMessage attribute(const char* name, std::int64_t type) {
  OnnxMessage message;
  message.text(1, name);
  message.integer(20, type);
  return message;
}
OnnxMessage real(const char* name, double value) {
  OnnxMessage message = attribute(name, 1);
  message.single(2, static_cast<float>(value));
  return message;
}
OnnxMessage integer(const char* name, std::int64_t value) {
  OnnxMessage message = attribute(name, 2);
  message.integer(3, value);
  return message;
}
OnnxMessage text(const char* name, const std::string& value) {
  OnnxMessage message = attribute(name, 3);
  message.text(4, value);
  return message;
}
OnnxMessage integers(const char* name, const Integers& values) {
  OnnxMessage message = attribute(name, 7);
  for (const std::int64_t value : values) message.integer(8, value);
  return message;
}

Integers list_in(const nlohmann::ordered_json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return {};
  return found->is_array() ? found->get<Integers>() : Integers{found->get<std::int64_t>()};
}

}  // namespace

OnnxExport::OnnxExport(const Model& model) {
  const Network& network = model.network();
  if (!network.is_connected())
    throw FailedPrecondition(
        fmt::format("save_onnx: model \"{}\" has no shapes yet; give its first layer an input_shape", model.name()));
  graph_.text(2, model.name());
  std::map<std::size_t, std::string> values;  // By slot.
  const std::vector<std::string> input_names = model.input_names();
  const std::vector<DType> dtypes = model.input_dtypes();
  const Shapes input_shapes = model.input_shapes(), output_shapes = model.output_shapes();
  for (std::size_t i = 0; i < input_names.size(); ++i) {
    values[network.input_slots()[i]] = input_names[i];
    graph_.message(11, onnx_value_info(input_names[i], dtypes[i], input_shapes[i]));
  }
  for (const Network::Call& call : network.calls()) {
    if (call.inputs.empty()) continue;
    Step step{*call.layer, write_layer(*call.layer, call.layer->name())["config"], {}, {}, call.shapes.at(0)};
    for (const std::size_t slot : call.inputs) {
      const Network::Call& from = network.call_of(slot);
      step.inputs.push_back(values.at(slot));
      step.input_shapes.push_back(from.shapes.at(slot - from.first_output));
    }
    if (call.shapes.size() != 1) refuse(step, "several outputs");
    values[call.first_output] = write(step);
  }
  const std::vector<std::string> output_names = model.output_names();
  for (std::size_t i = 0; i < output_names.size(); ++i) {
    OnnxMessage last;  // The output under its own name.
    last.text(1, values.at(network.output_slots()[i]));
    const std::string name =
        output_names.size() == 1 ? output_names[i] + "_output" : fmt::format("{}_output_{}", output_names[i], i);
    last.text(2, name);
    last.text(4, "Identity");
    graph_.message(1, std::move(last));
    graph_.message(12, onnx_value_info(name, f32, output_shapes[i]));
  }
}

void OnnxExport::refuse(const Step& step, const std::string& what) const {
  throw Unsupported(fmt::format("save_onnx: layer \"{}\" of class {}: unsupported: {}", step.layer.name(),
                                step.layer.class_name(), what));
}

std::string OnnxExport::node(const char* op, const std::vector<std::string>& inputs, Attributes attributes) {
  OnnxMessage message;
  const std::string name = fmt::format("{}_{}", op, names_++);
  for (const std::string& input : inputs) message.text(1, input);
  message.text(2, name);
  message.text(3, name + "_node");
  message.text(4, op);
  for (OnnxMessage& each : attributes) message.message(5, std::move(each));
  graph_.message(1, std::move(message));
  return name;
}

bool OnnxExport::has_weight(const Step& step, const char* name) const {
  for (const LayerBase::Weight& weight : step.layer.own_weights())
    if (weight.variable.name() == step.layer.name() + "/" + name) return true;
  return false;
}

std::string OnnxExport::weight(const Step& step, const char* name, const Integers& order) {
  for (const LayerBase::Weight& weight : step.layer.own_weights()) {
    if (weight.variable.name() != step.layer.name() + "/" + name) continue;
    const Tensor value = weight.variable.value();
    const std::string full = fmt::format("{}_{}", weight.variable.name(), names_++);
    graph_.message(5, onnx_tensor(full, order.empty() ? value : transpose(value, order)));
    return full;
  }
  refuse(step, fmt::format("a weight \"{}\" that is not there", name));
}

std::string OnnxExport::constant(const Integers& values) {
  const std::string name = fmt::format("constant_{}", names_++);
  graph_.message(5, onnx_tensor(name, from_vector(values, {static_cast<std::int64_t>(values.size())})));
  return name;
}

std::string OnnxExport::activated(const Step& step, const std::string& x, const std::string& activation) {
  if (activation.empty() || activation == "linear") return x;
  static const std::map<std::string, const char*> kSame = {
      {"relu", "Relu"}, {"tanh", "Tanh"},         {"sigmoid", "Sigmoid"},   {"elu", "Elu"},
      {"selu", "Selu"}, {"softplus", "Softplus"}, {"softsign", "Softsign"}, {"exponential", "Exp"}};
  const auto found = kSame.find(activation);
  if (found != kSame.end()) return node(found->second, {x});
  if (activation == "hard_sigmoid") return node("HardSigmoid", {x}, {real("alpha", 0.2), real("beta", 0.5)});
  if (activation == "softmax") return node("Softmax", {x}, {integer("axis", -1)});
  if (activation == "swish" || activation == "silu") return node("Mul", {x, node("Sigmoid", {x})});
  refuse(step, fmt::format("the activation \"{}\"", activation));
}

std::string OnnxExport::channels_first(const std::string& x) {
  return node("Transpose", {x}, {integers("perm", {0, 3, 1, 2})});
}
std::string OnnxExport::channels_last(const std::string& x) {
  return node("Transpose", {x}, {integers("perm", {0, 2, 3, 1})});
}

std::string OnnxExport::write(const Step& step) {
  static const std::map<std::string, Writer> kWriters = {
      {"Dense", &OnnxExport::dense},
      {"Conv2D", &OnnxExport::convolution},
      {"DepthwiseConv2D", &OnnxExport::depthwise},
      {"MaxPooling2D", &OnnxExport::pooling},
      {"AveragePooling2D", &OnnxExport::pooling},
      {"GlobalAveragePooling2D", &OnnxExport::global_pooling},
      {"GlobalMaxPooling2D", &OnnxExport::global_pooling},
      {"BatchNormalization", &OnnxExport::batch_norm},
      {"LayerNormalization", &OnnxExport::layer_norm},
      {"Embedding", &OnnxExport::embedding},
      {"Add", &OnnxExport::merge},
      {"Multiply", &OnnxExport::merge},
      {"Maximum", &OnnxExport::merge},
      {"Minimum", &OnnxExport::merge},
      {"Average", &OnnxExport::merge},
      {"Concatenate", &OnnxExport::merge},
      {"Flatten", &OnnxExport::reshape},
      {"Reshape", &OnnxExport::reshape},
      {"Activation", &OnnxExport::activation_layer},
      {"ReLU", &OnnxExport::activation_layer},
      {"Softmax", &OnnxExport::activation_layer},
      {"Dropout", &OnnxExport::pass},
      {"GaussianNoise", &OnnxExport::pass},
      {"GaussianDropout", &OnnxExport::pass},
      {"InputLayer", &OnnxExport::pass},
  };
  const auto found = kWriters.find(step.layer.class_name());
  if (found == kWriters.end()) refuse(step, "there is no ONNX form of it here");
  return (this->*found->second)(step);
}

std::string OnnxExport::dense(const Step& step) {
  std::string y = node("MatMul", {step.inputs[0], weight(step, "kernel")});
  if (has_weight(step, "bias")) y = node("Add", {y, weight(step, "bias")});
  return activated(step, y, step.config.value("activation", "linear"));
}

OnnxExport::Attributes OnnxExport::window(const Step& step, const char* size_key) const {
  Attributes attributes = {integers("kernel_shape", list_in(step.config, size_key))};
  Integers strides = list_in(step.config, "strides");
  if (strides.empty()) strides = list_in(step.config, size_key);
  attributes.push_back(integers("strides", strides));
  const std::string padding = step.config.value("padding", "valid");
  if (padding == "same") attributes.push_back(text("auto_pad", "SAME_UPPER"));
  if (padding != "same" && padding != "valid") refuse(step, fmt::format("the padding \"{}\"", padding));
  return attributes;
}

std::string OnnxExport::convolution(const Step& step) {
  Attributes attributes = window(step, "kernel_size");
  attributes.push_back(integers("dilations", list_in(step.config, "dilation_rate")));
  attributes.push_back(integer("group", step.config.value("groups", 1)));
  std::vector<std::string> operands = {channels_first(step.inputs[0]), weight(step, "kernel", {3, 2, 0, 1})};
  if (has_weight(step, "bias")) operands.push_back(weight(step, "bias"));
  return activated(step, channels_last(node("Conv", operands, std::move(attributes))),
                   step.config.value("activation", "linear"));
}

std::string OnnxExport::depthwise(const Step& step) {
  if (step.config.value("depth_multiplier", 1) != 1) refuse(step, "a depth_multiplier");
  Attributes attributes = window(step, "kernel_size");
  attributes.push_back(integers("dilations", list_in(step.config, "dilation_rate")));
  attributes.push_back(integer("group", step.input_shapes[0].back()));
  std::vector<std::string> operands = {channels_first(step.inputs[0]), weight(step, "depthwise_kernel", {2, 3, 0, 1})};
  if (has_weight(step, "bias")) operands.push_back(weight(step, "bias"));
  return activated(step, channels_last(node("Conv", operands, std::move(attributes))),
                   step.config.value("activation", "linear"));
}

std::string OnnxExport::pooling(const Step& step) {
  const bool largest = step.layer.class_name() == std::string("MaxPooling2D");
  return channels_last(
      node(largest ? "MaxPool" : "AveragePool", {channels_first(step.inputs[0])}, window(step, "pool_size")));
}

std::string OnnxExport::global_pooling(const Step& step) {
  const bool largest = step.layer.class_name() == std::string("GlobalMaxPooling2D");
  return node(largest ? "ReduceMax" : "ReduceMean", {step.inputs[0]},
              {integers("axes", {1, 2}), integer("keepdims", step.config.value("keepdims", false))});
}

// Of the last axis: as a scale and a shift, which are computed in the file.
std::string OnnxExport::batch_norm(const Step& step) {
  const std::string variance = weight(step, "moving_variance"), mean = weight(step, "moving_mean");
  const std::string epsilon = fmt::format("epsilon_{}", names_++);
  graph_.message(5, onnx_tensor(epsilon, plimsoll::constant(static_cast<float>(step.config.value("epsilon", 1e-3)))));
  const std::string deviation = node("Sqrt", {node("Add", {variance, epsilon})});
  std::string y = node("Div", {node("Sub", {step.inputs[0], mean}), deviation});
  if (has_weight(step, "gamma")) y = node("Mul", {y, weight(step, "gamma")});
  if (has_weight(step, "beta")) y = node("Add", {y, weight(step, "beta")});
  return y;
}

std::string OnnxExport::layer_norm(const Step& step) {
  if (!has_weight(step, "gamma")) refuse(step, "scale = false");
  const Integers axis = list_in(step.config, "axis");
  const auto last = static_cast<std::int64_t>(step.input_shapes[0].rank()) - 1;
  if (axis.size() != 1 || (axis[0] != -1 && axis[0] != last)) refuse(step, "axes other than the last");
  std::vector<std::string> operands = {step.inputs[0], weight(step, "gamma")};
  if (has_weight(step, "beta")) operands.push_back(weight(step, "beta"));
  return node("LayerNormalization", operands,
              {integer("axis", -1), real("epsilon", step.config.value("epsilon", 1e-3))});
}

std::string OnnxExport::embedding(const Step& step) {
  return node("Gather", {weight(step, "embeddings"), node("Cast", {step.inputs[0]}, {integer("to", onnx::kInt64)})});
}

std::string OnnxExport::merge(const Step& step) {
  const std::string kind = step.layer.class_name();
  if (kind == "Concatenate") return node("Concat", step.inputs, {integer("axis", step.config.value("axis", -1))});
  if (kind == "Multiply") {
    std::string y = step.inputs[0];
    for (std::size_t i = 1; i < step.inputs.size(); ++i) y = node("Mul", {y, step.inputs[i]});
    return y;
  }
  return node(kind == "Add" ? "Sum" : kind == "Average" ? "Mean" : kind == "Maximum" ? "Max" : "Min", step.inputs);
}

std::string OnnxExport::reshape(const Step& step) {
  Integers sizes(step.output_shape.begin(), step.output_shape.end());
  sizes[0] = 0;  // As many as there are.
  return node("Reshape", {step.inputs[0], constant(sizes)});
}

std::string OnnxExport::activation_layer(const Step& step) {
  const std::string kind = step.layer.class_name();
  if (kind == "Activation") return activated(step, step.inputs[0], step.config.value("activation", "linear"));
  if (kind == "Softmax") return node("Softmax", {step.inputs[0]}, {integer("axis", step.config.value("axis", -1))});
  for (const char* key : {"max_value", "negative_slope", "threshold"})
    if (step.config.contains(key) && !step.config[key].is_null() && step.config[key] != 0) refuse(step, key);
  return node("Relu", {step.inputs[0]});
}

std::string OnnxExport::pass(const Step& step) { return step.inputs[0]; }

}  // namespace plimsoll::internal
