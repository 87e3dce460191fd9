#include "plimsoll/model/layers/recurrent_layers.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/model/layers/kernel_and_bias.h"
#include "plimsoll/model/layers/layer_check.h"
#include "plimsoll/model/layers/lazy_zero_weights.h"
#include "plimsoll/model/layers/recurrent_layer.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/dropout.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll {
namespace {

constexpr const char* kNames[] = {"SimpleRNN", "LSTM", "GRU"};
constexpr std::int64_t kMostStepsOneByOne = 100'000;
const char* name_of(RecurrentKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

void require_elementwise(const LayerActivation& activation, RecurrentKind kind) {
  if (!activation.is_elementwise())
    throw InvalidArgument(fmt::format("{}: activation \"{}\"; use linear, relu, tanh, sigmoid or hard_sigmoid",
                                      name_of(kind), activation.name()));
}

}  // namespace

RecurrentLayer::RecurrentLayer(RecurrentKind kind, std::int64_t units, const RecurrentOptions& options)
    : kind_(kind),
      units_(require_positive(name_of(kind), "units", units)),
      options_(options),
      activation_(options.activation, name_of(kind)),
      recurrent_activation_(options.recurrent_activation, name_of(kind)) {
  require_elementwise(activation_, kind);
  require_elementwise(recurrent_activation_, kind);
  for (const double rate : {options.dropout, options.recurrent_dropout})
    if (!(rate >= 0 && rate < 1))
      throw InvalidArgument(fmt::format("{}: dropout {} and recurrent_dropout {}; give 0 or more, and less than 1",
                                        name_of(kind), options.dropout, options.recurrent_dropout));
  give_name(options.name);
  set_input_shape(options.input_shape);
}

const char* RecurrentLayer::class_name() const { return name_of(kind_); }

Shapes RecurrentLayer::output_shapes(const Shapes& in) const {
  if (in.size() != 1 && in.size() != 1 + num_states())
    throw InvalidArgument(fmt::format("{} \"{}\": takes 1 input or {} with its states, was given {}", class_name(),
                                      name(), 1 + num_states(), in.size()));
  require_rank(*this, {in[0]}, 3);
  const std::int64_t batch = in[0][0];
  Shapes result = {options_.return_sequences ? Shape{batch, in[0][1], units_} : Shape{batch, units_}};
  if (options_.return_state)
    for (std::size_t i = 0; i < num_states(); ++i) result.push_back({batch, units_});
  return result;
}

void RecurrentLayer::make_bias() {
  const bool two_rows = kind_ == RecurrentKind::kGRU && options_.reset_after;
  const Shape shape = two_rows ? Shape{2, 3 * units_} : Shape{gates() * units_};
  bias_ = add_weight("bias", shape, bias_weight(options_));
  if (kind_ != RecurrentKind::kLSTM || !options_.unit_forget_bias || LazyZeroWeights::is_on()) return;
  const Tensor drawn = bias_->value();
  bias_->assign(concat({drawn.slice({0}, {units_}), ones({units_}), drawn.slice({2 * units_}, {-1})}, 0));
}

void RecurrentLayer::build(const Shapes& in) {
  const std::int64_t features = require_known_last(*this, {in[0]});
  kernel_ = add_weight("kernel", {features, gates() * units_}, kernel_weight(options_));
  recurrent_kernel_ = add_weight("recurrent_kernel", {units_, gates() * units_},
                                 {.initializer = options_.recurrent_initializer,
                                  .regularizer = options_.recurrent_regularizer,
                                  .constraint = options_.recurrent_constraint,
                                  .seed = options_.seed});
  if (options_.use_bias) make_bias();
}

void RecurrentLayer::check_state(const Tensor& x, const std::vector<Tensor>& inputs) {
  if (!options_.stateful || inputs.size() > 1) return;
  const Shape shape = {x.shape()[0], units_};
  const TraceWith nobody(nullptr);
  if (states_.empty()) {
    std::vector<Variable> made;  // All or none.
    for (std::size_t i = 0; i < num_states(); ++i)
      made.emplace_back(zeros(shape, x.dtype()),
                        VariableOptions{.name = fmt::format("{}/state_{}", name(), i), .trainable = false});
    note_change();
    states_ = std::move(made);
    states_are_new_.store(true, std::memory_order_relaxed);
  }
  if (!(states_[0].shape() == shape))
    throw InvalidArgument(fmt::format("{} \"{}\": is stateful for batches of {}, was given one of {}; reset its states",
                                      class_name(), name(), states_[0].shape()[0], shape[0]));
}

Sequence RecurrentLayer::run(const Tensor& x, const SequenceOptions& options) const {
  const auto op = kind_ == RecurrentKind::kSimpleRNN ? simple_rnn : kind_ == RecurrentKind::kGRU ? gru : lstm;
  return op(x, *kernel_, *recurrent_kernel_, bias_ ? Tensor(*bias_) : Tensor(), options);
}

// Step by step: each starts with the previous state, of which the same units are always dropped.
Sequence RecurrentLayer::run_with_dropout(const Tensor& x, const SequenceOptions& options) {
  const std::int64_t batch = x.shape()[0], time = x.shape()[1];
  if (time > kMostStepsOneByOne)
    throw InvalidArgument(
        fmt::format("{} \"{}\": {} steps with recurrent_dropout, which run one by one; give at most {}", class_name(),
                    name(), time, kMostStepsOneByOne));
  const Tensor none = zeros({batch, units_}, x.dtype());
  Sequence now{.output = {}, .h = none, .c = none};
  if (!options.initial_h.is_empty_handle()) now.h = options.initial_h;
  if (!options.initial_c.is_empty_handle()) now.c = options.initial_c;
  const Tensor kept =
      dropout(ones({batch, units_}, x.dtype()), options_.recurrent_dropout, {.seed = next_seed(options_.seed)});
  std::vector<Tensor> outputs;
  for (std::int64_t i = 0; i < time; ++i) {
    const std::int64_t t = options_.go_backwards ? time - 1 - i : i;
    SequenceOptions step = options;
    step.mask = {};
    step.return_sequences = step.go_backwards = false;
    step.initial_h = now.h * kept;
    if (kind_ == RecurrentKind::kLSTM) step.initial_c = now.c;
    Sequence next = run(x.slice({0, t}, {-1, 1}), step);
    if (!options.mask.is_empty_handle()) {  // A skipped step leaves everything unchanged.
      const Tensor here = options.mask.slice({0, t}, {-1, 1});
      next.h = where(here, next.h, now.h);
      if (kind_ == RecurrentKind::kLSTM) next.c = where(here, next.c, now.c);
    }
    now = next;
    if (options_.return_sequences) outputs.push_back(now.h);
  }
  now.output = options_.return_sequences ? stack(outputs, 1) : now.h;
  return now;
}

std::vector<Tensor> RecurrentLayer::call_all(const std::vector<Tensor>& inputs, CallContext& context) {
  Tensor x = inputs.at(0);
  check_state(x, inputs);
  if (context.training() && options_.dropout > 0)
    x = x *
        dropout(ones({x.shape()[0], 1, x.shape()[2]}, x.dtype()), options_.dropout, {.seed = next_seed(options_.seed)});
  SequenceOptions options{.return_sequences = options_.return_sequences,
                          .go_backwards = options_.go_backwards,
                          .activation = activation_.elementwise(),
                          .recurrent_activation = recurrent_activation_.elementwise(),
                          .reset_after = options_.reset_after,
                          .mask = context.mask(0)};
  const auto state = [&](std::size_t i) {
    if (inputs.size() > 1) return inputs.at(1 + i);
    return states_.empty() ? Tensor() : states_[i].value();
  };
  options.initial_h = state(0);
  if (kind_ == RecurrentKind::kLSTM) options.initial_c = state(1);
  const bool drops = context.training() && options_.recurrent_dropout > 0;
  const Sequence result = drops ? run_with_dropout(x, options) : run(x, options);
  if (!states_.empty() && inputs.size() == 1) {
    context.assign_later(states_[0], result.h);
    if (kind_ == RecurrentKind::kLSTM) context.assign_later(states_[1], result.c);
  }
  std::vector<Tensor> outputs = {result.output};
  if (options_.zero_output_for_mask && options_.return_sequences && !options.mask.is_empty_handle()) {
    const Tensor mask = options_.go_backwards ? reverse(options.mask, {1}) : options.mask;
    outputs[0] = outputs[0] * cast(mask, x.dtype()).reshape({x.shape()[0], x.shape()[1], 1});
  }
  if (options_.return_state) outputs.push_back(result.h);
  if (options_.return_state && kind_ == RecurrentKind::kLSTM) outputs.push_back(result.c);
  return outputs;
}

std::shared_ptr<RecurrentLayer> RecurrentLayer::copy(bool go_backwards) const {
  RecurrentOptions options = options_;
  options.go_backwards = go_backwards;
  options.input_shape = {};
  options.name = {};
  return std::make_shared<RecurrentLayer>(kind_, units_, options);
}

void RecurrentLayer::reset_states() {
  states_.clear();
  note_change();
}

void RecurrentLayer::config(ConfigWriter& out) const {
  out.put("units", units_);
  out.put("activation", activation_.name());
  if (kind_ != RecurrentKind::kSimpleRNN) out.put("recurrent_activation", recurrent_activation_.name());
  put_kernel(out, options_);
  put_bias(out, options_);
  out.put("recurrent_initializer", options_.recurrent_initializer);
  out.put("recurrent_regularizer", options_.recurrent_regularizer);
  out.put("recurrent_constraint", options_.recurrent_constraint);
  if (kind_ == RecurrentKind::kLSTM) out.put("unit_forget_bias", options_.unit_forget_bias);
  if (kind_ == RecurrentKind::kGRU) out.put("reset_after", options_.reset_after);
  out.put_null("activity_regularizer");
  out.put("dropout", options_.dropout);
  out.put("recurrent_dropout", options_.recurrent_dropout);
  out.put("return_sequences", options_.return_sequences);
  out.put("return_state", options_.return_state);
  out.put("go_backwards", options_.go_backwards);
  out.put("stateful", options_.stateful);
  out.put("unroll", false);
  if (options_.seed) out.put("seed", options_.seed);
  if (options_.zero_output_for_mask) out.put("zero_output_for_mask", true);
}

namespace {

// Absent settings have the defaults of TF.js.
template <RecurrentKind kKind>
std::shared_ptr<LayerBase> read_recurrent(const ConfigReader& in) {
  RecurrentOptions options{.activation = in.text("activation", "tanh"),
                           .recurrent_activation = in.text("recurrent_activation", "hard_sigmoid"),
                           .return_sequences = in.flag("return_sequences", false),
                           .return_state = in.flag("return_state", false),
                           .go_backwards = in.flag("go_backwards", false),
                           .stateful = in.flag("stateful", false),
                           .seed = in.seed(),
                           .dropout = in.number("dropout", 0),
                           .recurrent_dropout = in.number("recurrent_dropout", 0),
                           .unit_forget_bias = in.flag("unit_forget_bias", true),
                           .reset_after = in.flag("reset_after", false),
                           .recurrent_initializer = in.initializer("recurrent_initializer").or_else("orthogonal"),
                           .recurrent_regularizer = in.regularizer("recurrent_regularizer"),
                           .recurrent_constraint = in.constraint("recurrent_constraint"),
                           .zero_output_for_mask = in.flag("zero_output_for_mask", false)};
  read_kernel_and_bias(in, options);
  return std::make_shared<RecurrentLayer>(kKind, in.integer("units"), options);
}

}  // namespace

LayerReader internal::recurrent_layer_reader(std::string_view class_name) {
  if (class_name == "SimpleRNN") return read_recurrent<RecurrentKind::kSimpleRNN>;
  if (class_name == "LSTM") return read_recurrent<RecurrentKind::kLSTM>;
  if (class_name == "GRU") return read_recurrent<RecurrentKind::kGRU>;
  return nullptr;
}

namespace layers {

SimpleRNN::SimpleRNN(std::int64_t units, const RecurrentOptions& options)
    : Layer(std::make_shared<RecurrentLayer>(RecurrentKind::kSimpleRNN, units, options)) {}
LSTM::LSTM(std::int64_t units, const RecurrentOptions& options)
    : Layer(std::make_shared<RecurrentLayer>(RecurrentKind::kLSTM, units, options)) {}
GRU::GRU(std::int64_t units, const RecurrentOptions& options)
    : Layer(std::make_shared<RecurrentLayer>(RecurrentKind::kGRU, units, options)) {}

}  // namespace layers
}  // namespace plimsoll
