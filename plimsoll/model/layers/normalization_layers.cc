#include "plimsoll/model/layers/normalization_layers.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/model/keras/config.h"
#include "plimsoll/model/layers/layer_check.h"
#include "plimsoll/ops/batch_norm.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/layer_norm.h"

namespace plimsoll {
namespace {

void check_numbers(const char* where, double epsilon, double momentum) {
  if (!(epsilon >= 0) || !(momentum >= 0 && momentum <= 1))
    throw InvalidArgument(
        fmt::format("{}: epsilon {} and momentum {}; give an epsilon of 0 or more, a momentum of 0 to 1", where,
                    epsilon, momentum));
}

// Only the last axis is supported; when the shapes are known, so is its number.
void require_last_axis(const LayerBase& layer, std::int64_t axis, const Shape& input) {
  const auto rank = static_cast<std::int64_t>(input.rank());
  if (axis != -1 && axis != rank - 1)
    throw Unsupported(fmt::format("{} \"{}\": axis {} of an input of shape {}; only the last, -1 or {}, is offered",
                                  layer.class_name(), layer.name(), axis, input.to_string(), rank - 1));
}

template <class Options>
WeightOptions gamma_weight(const Options& options) {
  return {.initializer = options.gamma_initializer,
          .regularizer = options.gamma_regularizer,
          .constraint = options.gamma_constraint};
}

template <class Options>
WeightOptions beta_weight(const Options& options) {
  return {.initializer = options.beta_initializer,
          .regularizer = options.beta_regularizer,
          .constraint = options.beta_constraint};
}

// The settings that both have in files.
template <class Options>
void put_common(ConfigWriter& out, const Options& options) {
  out.put("axis", options.axis);
  out.put("epsilon", options.epsilon);
  out.put("center", options.center);
  out.put("scale", options.scale);
  out.put("beta_initializer", options.beta_initializer);
  out.put("gamma_initializer", options.gamma_initializer);
  out.put("beta_regularizer", options.beta_regularizer);
  out.put("gamma_regularizer", options.gamma_regularizer);
  out.put("beta_constraint", options.beta_constraint);
  out.put("gamma_constraint", options.gamma_constraint);
}

template <class Options>
Options read_common(const ConfigReader& in) {
  const std::vector<std::int64_t> axes = in.integers("axis", 1, -1);
  if (axes.size() != 1) in.refuse("axis", "is not offered; only the last axis is");
  Options options;
  options.epsilon = in.number("epsilon", 1e-3);
  options.center = in.flag("center", true);
  options.scale = in.flag("scale", true);
  options.gamma_regularizer = in.regularizer("gamma_regularizer");
  options.beta_regularizer = in.regularizer("beta_regularizer");
  options.gamma_constraint = in.constraint("gamma_constraint");
  options.beta_constraint = in.constraint("beta_constraint");
  options.gamma_initializer = in.initializer("gamma_initializer").or_else("ones");
  options.beta_initializer = in.initializer("beta_initializer").or_else("zeros");
  options.axis = axes[0];
  return options;
}

Tensor value_or_none(const std::optional<Variable>& variable) { return variable ? Tensor(*variable) : Tensor(); }

class BatchNormalizationLayer final : public LayerBase {
 public:
  explicit BatchNormalizationLayer(const BatchNormalizationOptions& options) : options_(options) {
    check_numbers("BatchNormalization", options.epsilon, options.momentum);
    give_name(options.name);
    set_input_shape(options.input_shape);
  }
  const char* class_name() const override { return "BatchNormalization"; }
  bool supports_masking() const override { return true; }
  Shapes output_shapes(const Shapes& in) const override {
    require_min_rank(*this, in, 2);
    require_last_axis(*this, options_.axis, in[0]);
    return {in[0]};
  }
  void build(const Shapes& in) override {
    const Shape channels = {require_known_last(*this, in)};
    if (options_.scale) gamma_ = add_weight("gamma", channels, gamma_weight(options_));
    if (options_.center) beta_ = add_weight("beta", channels, beta_weight(options_));
    mean_ = add_weight("moving_mean", channels, {.initializer = options_.moving_mean_initializer, .trainable = false});
    variance_ = add_weight("moving_variance", channels,
                           {.initializer = options_.moving_variance_initializer, .trainable = false});
  }
  Tensor call(const Tensor& x, CallContext& context) override {
    const BatchNormOptions options{.momentum = options_.momentum, .epsilon = options_.epsilon};
    const Tensor gamma = value_or_none(gamma_), beta = value_or_none(beta_);
    if (!context.training() || !trainable())
      return batch_norm_inference(x, gamma, beta, mean_->value(), variance_->value(), options);
    const BatchNormResult result = batch_norm_training(x, gamma, beta, options);
    if (x.size() > 0) {
      context.assign_later(*mean_, moved(*mean_, result.mean));
      context.assign_later(*variance_, moved(*variance_, result.variance));
    }
    return result.y;
  }
  void config(ConfigWriter& out) const override {
    put_common(out, options_);
    out.put("momentum", options_.momentum);
    out.put("moving_mean_initializer", options_.moving_mean_initializer);
    out.put("moving_variance_initializer", options_.moving_variance_initializer);
  }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    auto options = read_common<BatchNormalizationOptions>(in);
    options.momentum = in.number("momentum", 0.99);
    options.moving_mean_initializer = in.initializer("moving_mean_initializer").or_else("zeros");
    options.moving_variance_initializer = in.initializer("moving_variance_initializer").or_else("ones");
    return std::make_shared<BatchNormalizationLayer>(options);
  }

 private:
  Tensor moved(const Variable& average, const Tensor& batch) const {
    return average.value() * options_.momentum + batch * (1 - options_.momentum);
  }
  const BatchNormalizationOptions options_;
  std::optional<Variable> gamma_, beta_, mean_, variance_;
};

class LayerNormalizationLayer final : public LayerBase {
 public:
  explicit LayerNormalizationLayer(const LayerNormalizationOptions& options) : options_(options) {
    check_numbers("LayerNormalization", options.epsilon, 0);
    give_name(options.name);
    set_input_shape(options.input_shape);
  }
  const char* class_name() const override { return "LayerNormalization"; }
  bool supports_masking() const override { return true; }
  Shapes output_shapes(const Shapes& in) const override {
    require_min_rank(*this, in, 2);
    require_last_axis(*this, options_.axis, in[0]);
    return {in[0]};
  }
  void build(const Shapes& in) override {
    const Shape features = {require_known_last(*this, in)};
    if (options_.scale) gamma_ = add_weight("gamma", features, gamma_weight(options_));
    if (options_.center) beta_ = add_weight("beta", features, beta_weight(options_));
  }
  Tensor call(const Tensor& x, CallContext&) override {
    return layer_norm(x, value_or_none(gamma_), value_or_none(beta_), {.epsilon = options_.epsilon});
  }
  void config(ConfigWriter& out) const override { put_common(out, options_); }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    return std::make_shared<LayerNormalizationLayer>(read_common<LayerNormalizationOptions>(in));
  }

 private:
  const LayerNormalizationOptions options_;
  std::optional<Variable> gamma_, beta_;
};

}  // namespace

LayerReader internal::normalization_layer_reader(std::string_view class_name) {
  if (class_name == "BatchNormalization") return BatchNormalizationLayer::read;
  if (class_name == "LayerNormalization") return LayerNormalizationLayer::read;
  return nullptr;
}

namespace layers {

BatchNormalization::BatchNormalization(const BatchNormalizationOptions& options)
    : Layer(std::make_shared<BatchNormalizationLayer>(options)) {}
LayerNormalization::LayerNormalization(const LayerNormalizationOptions& options)
    : Layer(std::make_shared<LayerNormalizationLayer>(options)) {}

}  // namespace layers
}  // namespace plimsoll
