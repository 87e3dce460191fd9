#include "plimsoll/model/onnx/onnx_export.h"

#include <fmt/format.h>

#include <map>

#include "plimsoll/base/error.h"
#include "plimsoll/model/keras/config.h"
#include "plimsoll/model/onnx/onnx_proto.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll::internal {
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
    const std::vector<std::string> results = write(step);
    for (std::size_t i = 0; i < call.shapes.size(); ++i) values[call.first_output + i] = results.at(i);
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

std::string OnnxExport::node(const char* op, const std::vector<std::string>& inputs, Attributes attributes,
                             std::size_t outputs) {
  OnnxMessage message;
  std::string name = fmt::format("{}_{}", op, names_++);
  for (const std::string& input : inputs) message.text(1, input);
  for (std::size_t i = 0; i < outputs; ++i) message.text(2, i == 0 ? name : fmt::format("{}_{}", name, i));
  message.text(3, name + "_node");
  message.text(4, op);
  for (OnnxMessage& each : attributes) message.message(5, std::move(each));
  graph_.message(1, std::move(message));
  return name;
}

bool OnnxExport::has_weight(const Step& step, const std::string& name) const {
  for (const LayerBase::Weight& weight : step.layer.weights())
    if (weight.variable.name() == step.layer.name() + "/" + name) return true;
  return false;
}

Tensor OnnxExport::value_of(const Step& step, const std::string& name) const {
  for (const LayerBase::Weight& weight : step.layer.weights())
    if (weight.variable.name() == step.layer.name() + "/" + name) return weight.variable.value();
  refuse(step, fmt::format("a weight \"{}\" that is not there", name));
}

std::string OnnxExport::add_weight(const Step& step, const std::string& name, const Tensor& value) {
  std::string full = fmt::format("{}/{}_{}", step.layer.name(), name, names_++);
  graph_.message(5, onnx_tensor(full, value));
  return full;
}

std::string OnnxExport::weight(const Step& step, const std::string& name, const Integers& order) {
  const Tensor value = value_of(step, name);
  return add_weight(step, name, order.empty() ? value : transpose(value, order));
}

std::string OnnxExport::constant(float value) {
  std::string name = fmt::format("constant_{}", names_++);
  graph_.message(5, onnx_tensor(name, plimsoll::constant(value)));
  return name;
}

std::string OnnxExport::constant(const Integers& values) {
  std::string name = fmt::format("constant_{}", names_++);
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
  if (activation == "log_softmax") return node("LogSoftmax", {x}, {integer("axis", -1)});
  if (activation == "swish" || activation == "silu") return node("Mul", {x, node("Sigmoid", {x})});
  if (activation == "relu6") return node("Clip", {x, constant(0.f), constant(6.f)});
  if (activation == "mish") return node("Mul", {x, node("Tanh", {node("Softplus", {x})})});
  if (activation == "gelu") {  // Halves of 1 + erf(x / sqrt(2)): the operator itself is newer than this version.
    const std::string wave = node("Erf", {node("Mul", {x, constant(0.70710678f)})});
    return node("Mul", {node("Mul", {x, constant(0.5f)}), node("Add", {wave, constant(1.f)})});
  }
  refuse(step, fmt::format("the activation \"{}\"", activation));
}

// Channels of values [batch, places ..., channels] second, and last again.
std::string OnnxExport::channels_first(const std::string& x, std::size_t rank) {
  Integers order = {0, static_cast<std::int64_t>(rank) - 1};
  for (std::size_t axis = 1; axis + 1 < rank; ++axis) order.push_back(static_cast<std::int64_t>(axis));
  return node("Transpose", {x}, {integers("perm", order)});
}
std::string OnnxExport::channels_last(const std::string& x, std::size_t rank) {
  Integers order = {0};
  for (std::size_t axis = 2; axis < rank; ++axis) order.push_back(static_cast<std::int64_t>(axis));
  order.push_back(1);
  return node("Transpose", {x}, {integers("perm", order)});
}

std::vector<std::string> OnnxExport::write(const Step& step) {
  if (const MultiWriter writer = find_multi_writer(step.layer.class_name())) return (this->*writer)(step);
  const Writer writer = find_writer(step.layer.class_name());
  if (!writer) refuse(step, "there is no ONNX form of it here");
  return {(this->*writer)(step)};
}

OnnxExport::Writer OnnxExport::find_writer(const std::string& class_name) {
  static const std::map<std::string, Writer> kWriters = {
      {"Dense", &OnnxExport::dense},
      {"Conv1D", &OnnxExport::convolution},
      {"Conv2D", &OnnxExport::convolution},
      {"DepthwiseConv2D", &OnnxExport::depthwise},
      {"SeparableConv2D", &OnnxExport::separable},
      {"Conv2DTranspose", &OnnxExport::transposed_convolution},
      {"MaxPooling1D", &OnnxExport::pooling},
      {"MaxPooling2D", &OnnxExport::pooling},
      {"AveragePooling1D", &OnnxExport::pooling},
      {"AveragePooling2D", &OnnxExport::pooling},
      {"GlobalAveragePooling1D", &OnnxExport::global_pooling},
      {"GlobalAveragePooling2D", &OnnxExport::global_pooling},
      {"GlobalMaxPooling1D", &OnnxExport::global_pooling},
      {"GlobalMaxPooling2D", &OnnxExport::global_pooling},
      {"ZeroPadding2D", &OnnxExport::border},
      {"Cropping2D", &OnnxExport::border},
      {"UpSampling1D", &OnnxExport::up_sampling},
      {"UpSampling2D", &OnnxExport::up_sampling},
      {"BatchNormalization", &OnnxExport::batch_norm},
      {"LayerNormalization", &OnnxExport::layer_norm},
      {"MultiHeadAttention", &OnnxExport::attention},
      {"Embedding", &OnnxExport::embedding},
      {"Add", &OnnxExport::merge},
      {"Subtract", &OnnxExport::merge},
      {"Multiply", &OnnxExport::merge},
      {"Maximum", &OnnxExport::merge},
      {"Minimum", &OnnxExport::merge},
      {"Average", &OnnxExport::merge},
      {"Concatenate", &OnnxExport::merge},
      {"Flatten", &OnnxExport::reshape},
      {"Reshape", &OnnxExport::reshape},
      {"Permute", &OnnxExport::permute},
      {"RepeatVector", &OnnxExport::repeat_vector},
      {"Activation", &OnnxExport::activation_layer},
      {"ReLU", &OnnxExport::activation_layer},
      {"LeakyReLU", &OnnxExport::activation_layer},
      {"ELU", &OnnxExport::activation_layer},
      {"ThresholdedReLU", &OnnxExport::activation_layer},
      {"PReLU", &OnnxExport::activation_layer},
      {"Softmax", &OnnxExport::activation_layer},
      {"Dropout", &OnnxExport::pass},
      {"SpatialDropout1D", &OnnxExport::pass},
      {"SpatialDropout2D", &OnnxExport::pass},
      {"AlphaDropout", &OnnxExport::pass},
      {"GaussianNoise", &OnnxExport::pass},
      {"GaussianDropout", &OnnxExport::pass},
      {"InputLayer", &OnnxExport::pass},
  };
  const auto found = kWriters.find(class_name);
  return found == kWriters.end() ? nullptr : found->second;
}

std::string OnnxExport::dense(const Step& step) {
  std::string y = node("MatMul", {step.inputs[0], weight(step, "kernel")});
  if (has_weight(step, "bias")) y = node("Add", {y, weight(step, "bias")});
  return activated(step, y, step.config.value("activation", "linear"));
}

// Of the last axis: as a scale and a shift, which are computed in the file.
std::string OnnxExport::batch_norm(const Step& step) {
  const Integers axis = list_in(step.config, "axis");
  const auto last = static_cast<std::int64_t>(step.input_shapes[0].rank()) - 1;
  if (axis.size() != 1 || (axis[0] != -1 && axis[0] != last)) refuse(step, "an axis other than the last");
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
  if (step.config.value("mask_zero", false)) refuse(step, "mask_zero: files have no masks");
  return node("Gather", {weight(step, "embeddings"), node("Cast", {step.inputs[0]}, {integer("to", onnx::kInt64)})});
}

std::string OnnxExport::merge(const Step& step) {
  const std::string kind = step.layer.class_name();
  if (kind == "Concatenate") return node("Concat", step.inputs, {integer("axis", step.config.value("axis", -1))});
  if (kind == "Multiply" || kind == "Subtract") {
    std::string y = step.inputs[0];
    for (std::size_t i = 1; i < step.inputs.size(); ++i)
      y = node(kind == "Multiply" ? "Mul" : "Sub", {y, step.inputs[i]});
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
  const auto number = [&](const char* key, double missing) {
    return step.config.contains(key) && step.config[key].is_number() ? step.config[key].get<double>() : missing;
  };
  if (kind == "LeakyReLU") {
    const char* key = step.config.contains("negative_slope") ? "negative_slope" : "alpha";
    return node("LeakyRelu", {step.inputs[0]}, {real("alpha", number(key, 0.3))});
  }
  if (kind == "ELU") return node("Elu", {step.inputs[0]}, {real("alpha", number("alpha", 1))});
  if (kind == "ThresholdedReLU") return node("ThresholdedRelu", {step.inputs[0]}, {real("alpha", number("theta", 1))});
  if (kind == "PReLU") return node("PRelu", {step.inputs[0], weight(step, "alpha")});
  for (const char* key : {"negative_slope", "threshold"})
    if (number(key, 0) != 0) refuse(step, key);
  const double most = number("max_value", -1);
  if (most < 0) return node("Relu", {step.inputs[0]});
  return node("Clip", {step.inputs[0], constant(0.f), constant(static_cast<float>(most))});
}

std::string OnnxExport::permute(const Step& step) {
  Integers order = list_in(step.config, "dims");
  order.insert(order.begin(), 0);
  return node("Transpose", {step.inputs[0]}, {integers("perm", order)});
}

std::string OnnxExport::repeat_vector(const Step& step) {
  const std::string row = node("Unsqueeze", {step.inputs[0], constant(Integers{1})});
  return node("Tile", {row, constant(Integers{1, step.config.at("n").get<std::int64_t>(), 1})});
}

std::string OnnxExport::pass(const Step& step) { return step.inputs[0]; }

}  // namespace plimsoll::internal
