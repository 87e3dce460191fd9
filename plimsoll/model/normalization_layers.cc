#include "plimsoll/model/normalization_layers.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/model/internal/config.h"
#include "plimsoll/model/internal/layer_check.h"
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
    return {in[0]};
  }
  void build(const Shapes& in) override {
    const Shape channels = {require_known_last(*this, in)};
    if (options_.scale)
      gamma_ = add_weight("gamma", channels, {.initializer = "ones", .regularizer = options_.gamma_regularizer});
    if (options_.center)
      beta_ = add_weight("beta", channels, {.initializer = "zeros", .regularizer = options_.beta_regularizer});
    mean_ = add_weight("moving_mean", channels, {.initializer = "zeros", .trainable = false});
    variance_ = add_weight("moving_variance", channels, {.initializer = "ones", .trainable = false});
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
    out.put("axis", std::int64_t{-1});
    out.put("momentum", options_.momentum);
    out.put("epsilon", options_.epsilon);
    out.put("center", options_.center);
    out.put("scale", options_.scale);
    out.put("beta_initializer", Initializer("zeros"));
    out.put("gamma_initializer", Initializer("ones"));
    out.put("moving_mean_initializer", Initializer("zeros"));
    out.put("moving_variance_initializer", Initializer("ones"));
    out.put("beta_regularizer", options_.beta_regularizer);
    out.put("gamma_regularizer", options_.gamma_regularizer);
    out.put_null("beta_constraint");
    out.put_null("gamma_constraint");
  }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    return std::make_shared<BatchNormalizationLayer>(
        BatchNormalizationOptions{.momentum = in.number("momentum", 0.99),
                                  .epsilon = in.number("epsilon", 1e-3),
                                  .center = in.flag("center", true),
                                  .scale = in.flag("scale", true),
                                  .gamma_regularizer = in.regularizer("gamma_regularizer"),
                                  .beta_regularizer = in.regularizer("beta_regularizer")});
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
    return {in[0]};
  }
  void build(const Shapes& in) override {
    const Shape features = {require_known_last(*this, in)};
    if (options_.scale) gamma_ = add_weight("gamma", features, {.initializer = "ones"});
    if (options_.center) beta_ = add_weight("beta", features, {.initializer = "zeros"});
  }
  Tensor call(const Tensor& x, CallContext&) override {
    return layer_norm(x, value_or_none(gamma_), value_or_none(beta_), {.epsilon = options_.epsilon});
  }
  void config(ConfigWriter& out) const override {
    out.put("axis", std::int64_t{-1});
    out.put("epsilon", options_.epsilon);
    out.put("center", options_.center);
    out.put("scale", options_.scale);
    out.put("beta_initializer", Initializer("zeros"));
    out.put("gamma_initializer", Initializer("ones"));
    out.put_null("beta_regularizer");
    out.put_null("gamma_regularizer");
  }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    return std::make_shared<LayerNormalizationLayer>(LayerNormalizationOptions{
        .epsilon = in.number("epsilon", 1e-3), .center = in.flag("center", true), .scale = in.flag("scale", true)});
  }

 private:
  const LayerNormalizationOptions options_;
  std::optional<Variable> gamma_, beta_;
};

// Only the last axis is offered. Files name it as -1, or by its number, which is then checked where the rank is known:
// a positive one is left to the model's shapes, since channels last is what all other layers have.
template <class L>
std::shared_ptr<LayerBase> read_last_axis(const ConfigReader& in) {
  const std::vector<std::int64_t> axes = in.integers("axis", 1, -1);
  if (axes.size() != 1 || axes[0] == 0)
    throw Unsupported(fmt::format("{}: normalization over other axes than the last is not offered", in.path()));
  return L::read(in);
}

}  // namespace

LayerReader normalization_layer_reader(std::string_view class_name) {
  if (class_name == "BatchNormalization") return read_last_axis<BatchNormalizationLayer>;
  if (class_name == "LayerNormalization") return read_last_axis<LayerNormalizationLayer>;
  return nullptr;
}

namespace layers {

BatchNormalization::BatchNormalization(const BatchNormalizationOptions& options)
    : Layer(std::make_shared<BatchNormalizationLayer>(options)) {}
LayerNormalization::LayerNormalization(const LayerNormalizationOptions& options)
    : Layer(std::make_shared<LayerNormalizationLayer>(options)) {}

}  // namespace layers
}  // namespace plimsoll
