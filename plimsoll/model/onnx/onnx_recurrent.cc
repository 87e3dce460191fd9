// RNN, GRU and LSTM, with all their attributes: directions, lengths of sequences, peepholes, clipping, activations.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/recurrent.h"

namespace plimsoll::internal {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

Function activation_named(const OnnxNode& node, std::string name, double alpha, double beta, bool has_alpha,
                          bool has_beta) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto or_else = [](bool given, double value, double missing) { return given ? value : missing; };
  if (name == "tanh") return [](const Tensor& x) { return tanh(x); };
  if (name == "sigmoid") return [](const Tensor& x) { return sigmoid(x); };
  if (name == "relu") return [](const Tensor& x) { return relu(x); };
  if (name == "softsign") return [](const Tensor& x) { return softsign(x); };
  if (name == "softplus") return [](const Tensor& x) { return softplus(x); };
  const double a = or_else(has_alpha, alpha, name == "leakyrelu" ? 0.01 : name == "hardsigmoid" ? 0.2 : 1);
  const double b = or_else(has_beta, beta, name == "hardsigmoid" ? 0.5 : 0);
  if (name == "leakyrelu") return [a](const Tensor& x) { return leaky_relu(x, a); };
  if (name == "thresholdedrelu") return [a](const Tensor& x) { return where(x > a, x, zeros_like(x)); };
  if (name == "scaledtanh") return [a, b](const Tensor& x) { return a * tanh(x * (b == 0 ? 1 : b)); };
  if (name == "hardsigmoid") return [a, b](const Tensor& x) { return minimum(maximum(x * a + b, 0), 1); };
  if (name == "elu") return [a](const Tensor& x) { return maximum(x, 0) + a * expm1(minimum(x, 0)); };
  if (name == "affine") return [a, b](const Tensor& x) { return x * a + b; };
  node.unsupported(fmt::format("the activation \"{}\"", name));
}

// What both directions share.
struct Recurrence {
  OnnxNode& node;
  std::size_t gates, functions;
  std::int64_t hidden = 0, batch = 0, steps = 0;
  Tensor x;        // [time, batch, inputs]
  Tensor lengths;  // [batch, 1], or an empty handle.
  double clipping = 0;

  // Of one direction: operand `input` without that axis; an empty handle when it is left out.
  Tensor part(std::size_t input, std::int64_t direction) const {
    if (!node.has(input)) return {};
    const Tensor& all = node.in(input);
    if (all.rank() < 1 || direction >= all.shape()[0])
      node.invalid(fmt::format("operand {} has no direction {}", input, direction));
    return all.slice({direction}, {1}).squeeze({0});
  }
  // Initial states are [directions, batch, hidden], with layout 1 [batch, directions, hidden].
  Tensor state(std::size_t input, std::int64_t direction) const {
    if (!node.has(input)) return zeros({batch, hidden}, x.dtype());
    const Tensor& all = node.in(input);
    return node.integer("layout", 0) == 0 ? all.slice({direction}, {1}).squeeze({0})
                                          : all.slice({0, direction}, {-1, 1}).squeeze({1});
  }
  Tensor clipped(const Tensor& value) const { return clipping > 0 ? clip(value, -clipping, clipping) : value; }
  std::vector<Function> activations(std::int64_t direction, const std::vector<const char*>& missing) const {
    const std::vector<std::string> names = node.texts("activations");
    const std::vector<double> alphas = node.reals("activation_alpha"), betas = node.reals("activation_beta");
    std::vector<Function> result;
    for (std::size_t i = 0; i < functions; ++i) {
      const std::size_t at = static_cast<std::size_t>(direction) * functions + i;
      const std::string name = at < names.size() ? names[at] : missing[i];
      result.push_back(activation_named(node, name, at < alphas.size() ? alphas[at] : 0,
                                        at < betas.size() ? betas[at] : 0, at < alphas.size(), at < betas.size()));
    }
    return result;
  }
  std::vector<Tensor> gate_parts(const Tensor& rows) const {  // [batch, gates hidden]
    return split(rows, static_cast<std::int64_t>(gates), 1);
  }
};

struct States {
  Tensor h, c;
};
// From what the inputs give, [batch, gates hidden], and the states before, those after.
using Cell = std::function<States(const Tensor& from_input, const States& before)>;

// Both biases of a direction, [gates hidden] each; empty handles without one.
std::pair<Tensor, Tensor> biases(const Recurrence& r, std::int64_t direction) {
  const Tensor both = r.part(3, direction);
  if (both.is_empty_handle()) return {};
  const std::int64_t size = both.shape()[0] / 2;
  return {both.slice({0}, {size}), both.slice({size}, {size})};
}

Tensor added(const Tensor& x, const Tensor& bias) { return bias.is_empty_handle() ? x : x + bias; }

Cell rnn_cell(const Recurrence& r, std::int64_t direction, const Tensor& recurrent, const Tensor& bias) {
  const std::vector<Function> f = r.activations(direction, {"Tanh"});
  return [=, &r](const Tensor& from_input, const States& before) {
    const Tensor sum = from_input + added(matmul(before.h, recurrent, {.transpose_b = true}), bias);
    return States{f[0](r.clipped(sum)), {}};
  };
}

Cell gru_cell(const Recurrence& r, std::int64_t direction, const Tensor& recurrent, const Tensor& bias) {
  const std::vector<Function> f = r.activations(direction, {"Sigmoid", "Tanh"});
  const bool reset_after = r.node.integer("linear_before_reset", 0) != 0;
  const std::int64_t n = r.hidden;
  return [=, &r](const Tensor& from_input, const States& before) {
    const std::vector<Tensor> x = r.gate_parts(from_input);
    const auto product = [&](const Tensor& h, std::int64_t gate) {
      const Tensor rows = recurrent.slice({gate * n}, {n});
      return added(matmul(h, rows, {.transpose_b = true}), bias.is_empty_handle() ? bias : bias.slice({gate * n}, {n}));
    };
    const Tensor z = f[0](r.clipped(x[0] + product(before.h, 0))), reset = f[0](r.clipped(x[1] + product(before.h, 1)));
    const Tensor candidate =
        f[1](r.clipped(x[2] + (reset_after ? reset * product(before.h, 2) : product(reset * before.h, 2))));
    return States{(1 - z) * candidate + z * before.h, {}};
  };
}

Cell lstm_cell(const Recurrence& r, std::int64_t direction, const Tensor& recurrent, const Tensor& bias) {
  const std::vector<Function> f = r.activations(direction, {"Sigmoid", "Tanh", "Tanh"});
  const Tensor peepholes = r.part(7, direction);
  const bool coupled = r.node.integer("input_forget", 0) != 0;
  const std::int64_t n = r.hidden;
  return [=, &r](const Tensor& from_input, const States& before) {
    const Tensor sum = from_input + added(matmul(before.h, recurrent, {.transpose_b = true}), bias);
    const std::vector<Tensor> gates = r.gate_parts(sum);  // i, o, f, c.
    const auto peeped = [&](const Tensor& gate, std::int64_t which, const Tensor& c) {
      return r.clipped(peepholes.is_empty_handle() ? gate : gate + peepholes.slice({which * n}, {n}) * c);
    };
    const Tensor i = f[0](peeped(gates[0], 0, before.c));
    const Tensor forget = coupled ? 1 - i : f[0](peeped(gates[2], 2, before.c));
    const Tensor c = forget * before.c + i * f[1](r.clipped(gates[3]));
    const Tensor o = f[0](peeped(gates[1], 1, c));
    return States{o * f[2](c), c};
  };
}

struct Result {
  Tensor sequence;  // [time, batch, hidden]
  States last;
};

// Step by step. Examples that have ended keep their state, and give zeros.
Result run_cell(const Recurrence& r, const Cell& cell, const Tensor& from_input, States state, bool backwards) {
  std::vector<Tensor> outputs(static_cast<std::size_t>(r.steps));
  for (std::int64_t i = 0; i < r.steps; ++i) {
    const std::int64_t t = backwards ? r.steps - 1 - i : i;
    States next = cell(from_input.slice({t}, {1}).squeeze({0}), state);
    Tensor output = next.h;
    if (!r.lengths.is_empty_handle()) {
      const Tensor running = t < r.lengths;
      next.h = where(running, next.h, state.h);
      if (!next.c.is_empty_handle()) next.c = where(running, next.c, state.c);
      output = where(running, output, zeros_like(output));
    }
    state = std::move(next);
    outputs[static_cast<std::size_t>(t)] = std::move(output);
  }
  return {stack(outputs), state};
}

// Whether one operation of ours does it: the usual functions, nothing unusual.
bool is_usual(const Recurrence& r) {
  if (!r.node.texts("activations").empty()) {
    const std::vector<std::string> names = r.node.texts("activations");
    for (std::size_t i = 0; i < names.size(); ++i) {
      const bool first = i % r.functions == 0;
      if (names[i] != (first && r.functions > 1 ? "Sigmoid" : "Tanh")) return false;
    }
  }
  return r.lengths.is_empty_handle() && r.clipping == 0 && !r.node.has(7) && r.node.integer("input_forget", 0) == 0 &&
         (r.x.dtype() == f32 || r.x.dtype() == f64) && r.steps > 0;
}

// Rows of gates in another order, and transposed: [inputs, gates hidden].
Tensor ordered(const Recurrence& r, const Tensor& weights, const std::vector<std::size_t>& order) {
  const std::vector<Tensor> parts = split(weights, static_cast<std::int64_t>(r.gates), 0);
  std::vector<Tensor> result;
  for (const std::size_t gate : order) result.push_back(parts[gate]);
  return concat(result, 0);
}

Result run_whole(const Recurrence& r, std::int64_t direction, const Tensor& kernel, const Tensor& recurrent,
                 const std::pair<Tensor, Tensor>& bias, bool backwards) {
  const std::vector<std::size_t> order = r.gates == 4 ? std::vector<std::size_t>{0, 2, 3, 1}
                                         // i, o, f, c to i, f, c, o.
                                         : r.gates == 3 ? std::vector<std::size_t>{0, 1, 2}
                                                        : std::vector<std::size_t>{0};
  const Tensor w = transpose(ordered(r, kernel, order)), u = transpose(ordered(r, recurrent, order));
  SequenceOptions options{.return_sequences = true, .go_backwards = backwards};
  options.initial_h = r.state(5, direction);
  if (r.gates == 4) options.initial_c = r.state(6, direction);
  options.reset_after = r.node.integer("linear_before_reset", 0) != 0;
  Tensor b;
  if (!bias.first.is_empty_handle())
    b = r.gates == 3 && options.reset_after ? stack({bias.first, bias.second})
                                            : ordered(r, bias.first + bias.second, order);
  const Tensor x = transpose(r.x, {1, 0, 2});
  const Sequence s = r.gates == 4   ? lstm(x, w, u, b, options)
                     : r.gates == 3 ? gru(x, w, u, b, options)
                                    : simple_rnn(x, w, u, b, options);
  Tensor sequence = transpose(s.output, {1, 0, 2});
  if (backwards) sequence = reverse(sequence, {0});
  return {sequence, {s.h, s.c}};
}

using MakeCell = Cell (*)(const Recurrence&, std::int64_t, const Tensor&, const Tensor&);

template <std::size_t kGates, std::size_t kFunctions, MakeCell kCell>
void recurrent(OnnxNode& node) {
  Recurrence r{node, kGates, kFunctions};
  const bool batch_first = node.integer("layout", 0) != 0;
  if (node.rank(0) != 3 || node.rank(1) != 3 || node.rank(2) != 3) node.invalid("X, W and R have three axes each");
  r.x = batch_first ? transpose(node.in(0), {1, 0, 2}) : node.in(0);
  r.steps = r.x.shape()[0], r.batch = r.x.shape()[1];
  r.hidden = node.shape(2).back();
  r.clipping = node.real("clip", 0);
  if (node.has(4)) r.lengths = node.in(4).cast(i64).reshape({r.batch, 1});
  const std::string direction = node.text("direction", "forward");
  const std::int64_t directions = direction == "bidirectional" ? 2 : 1;
  if (r.steps > 65536) node.unsupported(fmt::format("{} steps", r.steps));
  std::vector<Tensor> sequences, last_h, last_c;
  for (std::int64_t d = 0; d < directions; ++d) {
    const bool backwards = direction == "reverse" || d == 1;
    const Tensor w = r.part(1, d), u = r.part(2, d);
    const std::pair<Tensor, Tensor> bias = biases(r, d);
    Result result;
    if (is_usual(r)) {
      result = run_whole(r, d, w, u, bias, backwards);
    } else {
      const Tensor from_input = added(matmul(r.x, w, {.transpose_b = true}), bias.first);
      const States first{r.state(5, d), kGates == 4 ? r.state(6, d) : Tensor()};
      result = run_cell(r, kCell(r, d, u, bias.second), from_input, first, backwards);
    }
    sequences.push_back(result.sequence);
    last_h.push_back(result.last.h);
    if (kGates == 4) last_c.push_back(result.last.c);
  }
  const std::int64_t at =
      batch_first ? 2 : 1;  // [time, directions, batch, hidden], or [batch, time, directions, hidden].
  if (batch_first)
    for (Tensor& sequence : sequences) sequence = transpose(sequence, {1, 0, 2});
  node.give(0, stack(sequences, at));
  if (node.wants(1)) node.give(1, stack(last_h, batch_first ? 1 : 0));
  if (kGates == 4 && node.wants(2)) node.give(2, stack(last_c, batch_first ? 1 : 0));
}

constexpr OnnxOperator kRecurrentRows[] = {
    {"GRU", 1, kNewest, recurrent<3, 2, gru_cell>},
    {"LSTM", 1, kNewest, recurrent<4, 3, lstm_cell>},
    {"RNN", 1, kNewest, recurrent<1, 1, rnn_cell>},
};

}  // namespace

OnnxOperators onnx_recurrent_operators() { return kRecurrentRows; }

}  // namespace plimsoll::internal
