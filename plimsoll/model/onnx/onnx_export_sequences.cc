// Recurrent layers and attention as ONNX nodes.
#include <fmt/format.h>

#include <cmath>

#include "plimsoll/model/onnx/onnx_export.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll::internal {

// One recurrent layer: by itself, or one of the two in a Bidirectional.
struct OnnxExport::Direction {
  std::string kind;  // "LSTM", "GRU", "SimpleRNN".
  nlohmann::ordered_json config;
  std::string prefix;  // Of its weights' names, in the layer's.
  bool backwards = false;
  std::vector<std::string> states = {};  // It begins with.

  std::int64_t units() const { return config.at("units").get<std::int64_t>(); }
  std::int64_t gates() const { return kind == "LSTM" ? 4 : kind == "GRU" ? 3 : 1; }
  bool flag(const char* key) const { return config.value(key, false); }
};

OnnxExport::MultiWriter OnnxExport::find_multi_writer(const std::string& class_name) {
  if (class_name == "LSTM" || class_name == "GRU" || class_name == "SimpleRNN") return &OnnxExport::recurrent;
  return class_name == "Bidirectional" ? &OnnxExport::bidirectional : nullptr;
}

namespace {

// Columns of gates as ONNX has them: LSTM i, o, f, c instead of i, f, c, o; the others are the same.
Tensor reordered(const Tensor& x, std::int64_t gates) {
  if (gates != 4) return x;
  const std::vector<Tensor> parts = split(x, 4, -1);
  return concat({parts[0], parts[3], parts[1], parts[2]}, -1);
}

const char* activation_name(const std::string& activation) {
  if (activation == "tanh") return "Tanh";
  if (activation == "sigmoid") return "Sigmoid";
  if (activation == "relu") return "Relu";
  return activation == "hard_sigmoid" ? "HardSigmoid" : nullptr;
}

}  // namespace

// [1, gates, inputs]
std::string OnnxExport::recurrent_weights(const Step& step, const Direction& direction, const char* part) {
  const std::string name = direction.prefix + part;
  return add_weight(step, name, transpose(reordered(value_of(step, name), direction.gates())).expand_dims(0));
}

// That of the inputs, then that of the state: [1, 2 gates].
std::string OnnxExport::recurrent_bias(const Step& step, const Direction& direction) {
  const std::string name = direction.prefix + "bias";
  const Tensor bias = value_of(step, name);
  const std::int64_t size = direction.gates() * direction.units();
  const Tensor both = bias.rank() == 2 ? bias : stack({bias, zeros({size}, bias.dtype())});
  return add_weight(step, name, reordered(both, direction.gates()).reshape({1, 2 * size}));
}

// The sequence or its last step, then the states, as Keras gives them: a sequence in the order in which it was taken.
std::vector<std::string> OnnxExport::run_direction(const Step& step, const Direction& direction) {
  if (direction.flag("stateful")) refuse(step, "stateful");
  const auto name_of = [&](const char* key) {
    const std::string activation = direction.config.value(key, "tanh");
    const char* name = activation_name(activation);
    if (!name) refuse(step, fmt::format("the activation \"{}\"", activation));
    return std::string(name);
  };
  std::vector<std::string> functions = {name_of("activation")};
  if (direction.kind != "SimpleRNN") functions.insert(functions.begin(), name_of("recurrent_activation"));
  if (direction.kind == "LSTM") functions.push_back(functions.back());
  Attributes attributes = {integer("hidden_size", direction.units()), texts("activations", functions),
                           text("direction", direction.backwards ? "reverse" : "forward")};
  if (direction.kind == "GRU") attributes.push_back(integer("linear_before_reset", direction.flag("reset_after")));
  const std::string steps = node("Transpose", {step.inputs[0]}, {integers("perm", {1, 0, 2})});
  std::vector<std::string> operands = {steps, recurrent_weights(step, direction, "kernel"),
                                       recurrent_weights(step, direction, "recurrent_kernel")};
  const bool has_bias = has_weight(step, direction.prefix + "bias");
  if (has_bias || !direction.states.empty()) operands.push_back(has_bias ? recurrent_bias(step, direction) : "");
  if (!direction.states.empty()) operands.push_back("");  // Lengths.
  for (const std::string& state : direction.states)
    operands.push_back(node("Unsqueeze", {state, constant(Integers{0})}));
  const bool has_cell = direction.kind == "LSTM";
  const std::string y = node(direction.kind == "SimpleRNN" ? "RNN" : direction.kind.c_str(), operands,
                             std::move(attributes), has_cell ? 3 : 2);
  const std::string h = node("Squeeze", {y + "_1", constant(Integers{0})});
  std::vector<std::string> results = {h};
  if (direction.flag("return_sequences")) {
    std::string all = node("Squeeze", {y, constant(Integers{1})});
    if (direction.backwards)
      all = node("Slice", {all, constant(Integers{-1}), constant(Integers{-(std::int64_t{1} << 40)}),
                           constant(Integers{0}), constant(Integers{-1})});
    results[0] = node("Transpose", {all}, {integers("perm", {1, 0, 2})});
  }
  if (!direction.flag("return_state")) return results;
  results.push_back(h);
  if (has_cell) results.push_back(node("Squeeze", {y + "_2", constant(Integers{0})}));
  return results;
}

std::vector<std::string> OnnxExport::recurrent(const Step& step) {
  Direction direction{step.layer.class_name(), step.config, ""};
  direction.backwards = direction.flag("go_backwards");
  direction.states.assign(step.inputs.begin() + 1, step.inputs.end());
  return run_direction(step, direction);
}

std::vector<std::string> OnnxExport::bidirectional(const Step& step) {
  if (step.inputs.size() > 1) refuse(step, "initial states");
  const nlohmann::ordered_json& inner = step.config.at("layer");
  const std::string name = inner.at("config").at("name").get<std::string>();
  Direction ahead{inner.at("class_name").get<std::string>(), inner.at("config"), "forward_" + name + "/"};
  ahead.backwards = ahead.flag("go_backwards");
  Direction back = ahead;
  back.prefix = "backward_" + name + "/";
  back.backwards = !ahead.backwards;
  std::vector<std::string> first = run_direction(step, ahead), second = run_direction(step, back);
  if (ahead.flag("return_sequences"))
    second[0] = node("Slice", {second[0], constant(Integers{-1}), constant(Integers{-(std::int64_t{1} << 40)}),
                               constant(Integers{1}), constant(Integers{-1})});
  const auto mode = step.config.find("merge_mode");
  std::vector<std::string> results;
  if (mode == step.config.end() || mode->is_null())
    results = {first[0], second[0]};
  else if (*mode == "concat")
    results = {node("Concat", {first[0], second[0]}, {integer("axis", -1)})};
  else
    results = {node(*mode == "sum" ? "Sum" : *mode == "mul" ? "Mul" : "Mean", {first[0], second[0]})};
  results.insert(results.end(), first.begin() + 1, first.end());
  results.insert(results.end(), second.begin() + 1, second.end());
  return results;
}

// [batch, heads, places, size]
std::string OnnxExport::projected(const Step& step, std::size_t input, const char* part, std::int64_t heads,
                                  std::int64_t size) {
  const std::string name = part;
  const Tensor kernel = value_of(step, name + "/kernel").reshape({-1, heads * size});
  std::string y = node("MatMul", {step.inputs[input], add_weight(step, name + "/kernel", kernel)});
  if (has_weight(step, name + "/bias"))
    y = node("Add", {y, add_weight(step, name + "/bias", value_of(step, name + "/bias").reshape({-1}))});
  return node("Transpose", {node("Reshape", {y, constant(Integers{0, -1, heads, size})})},
              {integers("perm", {0, 2, 1, 3})});
}

std::string OnnxExport::attention(const Step& step) {
  const auto number = [&](const char* key) { return step.config.at(key).get<std::int64_t>(); };
  const std::int64_t heads = number("num_heads"), key_size = number("key_dim"), value_size = number("value_dim");
  const std::string q = projected(step, 0, "query", heads, key_size);
  const std::string k = projected(step, step.inputs.size() == 3 ? 2 : 1, "key", heads, key_size);
  const std::string v = projected(step, 1, "value", heads, value_size);
  const std::string scaled = node("Mul", {q, constant(static_cast<float>(1 / std::sqrt(double(key_size))))});
  std::string scores = node("MatMul", {scaled, node("Transpose", {k}, {integers("perm", {0, 1, 3, 2})})});
  if (step.config.value("use_causal_mask", false)) {
    const std::int64_t queries = step.input_shapes[0][1], keys = step.input_shapes[1][1];
    if (queries < 0 || keys < 0) refuse(step, "use_causal_mask of sequences whose lengths are not known");
    const Tensor allowed = arange(keys).reshape({1, keys}) <= arange(queries).reshape({queries, 1});
    scores = node("Where", {add_weight(step, "mask", allowed), scores, constant(-1e30f)});
  }
  const std::string mixed = node("MatMul", {node("Softmax", {scores}, {integer("axis", -1)}), v});
  const std::string joined = node("Reshape", {node("Transpose", {mixed}, {integers("perm", {0, 2, 1, 3})}),
                                              constant(Integers{0, -1, heads * value_size})});
  const Tensor kernel = value_of(step, "attention_output/kernel").reshape({heads * value_size, -1});
  std::string y = node("MatMul", {joined, add_weight(step, "attention_output/kernel", kernel)});
  if (!has_weight(step, "attention_output/bias")) return y;
  return node("Add", {y, weight(step, "attention_output/bias")});
}

}  // namespace plimsoll::internal
