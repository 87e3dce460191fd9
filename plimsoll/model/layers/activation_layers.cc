#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/model/keras/config.h"
#include "plimsoll/model/layers/layer_check.h"
#include "plimsoll/model/layers/merge_layers.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/softmax.h"

namespace plimsoll {
namespace {

class ReLULayer final : public LayerBase {
 public:
  explicit ReLULayer(const layers::ReLUOptions& options) : options_(options) { give_name(options.name); }
  const char* class_name() const override { return "ReLU"; }
  bool supports_masking() const override { return true; }
  Tensor call(const Tensor& x, CallContext&) override {
    const double threshold = options_.threshold, slope = options_.negative_slope, top = options_.max_value;
    if (threshold == 0 && slope == 0) return top > 0 ? clip(x, 0, top) : relu(x);
    const Tensor above = where(x >= threshold, x, (x - threshold) * slope);
    return top > 0 ? minimum(above, top) : above;
  }
  void config(ConfigWriter& out) const override {
    if (options_.max_value > 0)
      out.put("max_value", options_.max_value);
    else
      out.put_null("max_value");
    out.put("negative_slope", options_.negative_slope);
    out.put("threshold", options_.threshold);
  }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    if (in.has("max_value") && !(in.number("max_value", 0) > 0)) in.refuse("max_value", "is not above 0");
    return std::make_shared<ReLULayer>(layers::ReLUOptions{.max_value = in.number("max_value", 0),
                                                           .negative_slope = in.number("negative_slope", 0),
                                                           .threshold = in.number("threshold", 0)});
  }

 private:
  const layers::ReLUOptions options_;
};

// Activations with one parameter.
class CurveLayer final : public LayerBase {
 public:
  enum class Kind : unsigned char { kLeakyReLU, kELU, kThresholdedReLU, kSoftmax };
  CurveLayer(Kind kind, double number, const PlainLayerOptions& options) : kind_(kind), number_(number) {
    give_name(options.name);
    set_input_shape(options.input_shape);
  }
  const char* class_name() const override {
    constexpr const char* kNames[] = {"LeakyReLU", "ELU", "ThresholdedReLU", "Softmax"};
    return kNames[static_cast<std::size_t>(kind_)];
  }
  bool supports_masking() const override { return true; }
  Tensor call(const Tensor& x, CallContext&) override {
    switch (kind_) {
      case Kind::kLeakyReLU:
        return leaky_relu(x, static_cast<float>(number_));
      case Kind::kELU:
        return number_ == 1 ? elu(x) : where(x > 0, x, expm1(minimum(x, 0)) * number_);
      case Kind::kThresholdedReLU:
        return x * (x > number_).cast(x.dtype());
      case Kind::kSoftmax:
        break;
    }
    return softmax(x, static_cast<std::int64_t>(number_));
  }
  void config(ConfigWriter& out) const override {
    if (kind_ == Kind::kSoftmax)
      out.put("axis", static_cast<std::int64_t>(number_));
    else
      out.put(kind_ == Kind::kThresholdedReLU ? "theta" : "alpha", number_);
  }

 private:
  const Kind kind_;
  const double number_;
};

class PReLULayer final : public LayerBase {
 public:
  PReLULayer(const PlainLayerOptions& options, std::vector<std::int64_t> shared, const WeightOptions& alpha)
      : shared_(std::move(shared)), alpha_options_(alpha) {
    give_name(options.name);
    set_input_shape(options.input_shape);
  }
  const char* class_name() const override { return "PReLU"; }
  bool supports_masking() const override { return true; }
  void build(const Shapes& in) override {
    std::vector<std::int64_t> sizes(in[0].begin() + 1, in[0].end());
    for (const std::int64_t axis : shared_) sizes.at(resolve_axis(axis, in[0].rank(), "PReLU") - 1) = 1;
    alpha_ = add_weight("alpha", Shape(sizes), alpha_options_);
  }
  Tensor call(const Tensor& x, CallContext&) override { return relu(x) - relu(-x) * Tensor(*alpha_); }
  void config(ConfigWriter& out) const override {
    out.put("alpha_initializer", alpha_options_.initializer);
    out.put("alpha_regularizer", alpha_options_.regularizer);
    out.put("alpha_constraint", alpha_options_.constraint);
    if (shared_.empty())
      out.put_null("shared_axes");
    else
      out.put("shared_axes", shared_);
  }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    std::vector<std::int64_t> shared;
    if (in.has("shared_axes")) shared = in.integers("shared_axes", 1, 1);
    return std::make_shared<PReLULayer>(
        PlainLayerOptions{}, std::move(shared),
        WeightOptions{.initializer = in.initializer("alpha_initializer").or_else("zeros"),
                      .regularizer = in.regularizer("alpha_regularizer"),
                      .constraint = in.constraint("alpha_constraint")});
  }

 private:
  const std::vector<std::int64_t> shared_;
  const WeightOptions alpha_options_;
  std::optional<Variable> alpha_;
};

std::shared_ptr<LayerBase> curve(CurveLayer::Kind kind, double number) {
  return std::make_shared<CurveLayer>(kind, number, PlainLayerOptions{});
}

}  // namespace

LayerReader internal::activation_layer_reader(std::string_view class_name) {
  using Kind = CurveLayer::Kind;
  if (class_name == "ReLU") return ReLULayer::read;
  if (class_name == "PReLU") return PReLULayer::read;
  if (class_name == "LeakyReLU")
    return [](const ConfigReader& in) {  // Keras 3 has another name for it.
      return curve(Kind::kLeakyReLU, in.number(in.has("alpha") ? "alpha" : "negative_slope", 0.3));
    };
  if (class_name == "ELU") return [](const ConfigReader& in) { return curve(Kind::kELU, in.number("alpha", 1)); };
  if (class_name == "ThresholdedReLU")
    return [](const ConfigReader& in) { return curve(Kind::kThresholdedReLU, in.number("theta", 1)); };
  if (class_name == "Softmax")
    return [](const ConfigReader& in) {
      const std::vector<std::int64_t> axes = in.integers("axis", 1, -1);
      if (axes.size() != 1) in.refuse("axis", "is not offered; a softmax is over one axis");
      return curve(Kind::kSoftmax, static_cast<double>(axes[0]));
    };
  return nullptr;
}

namespace layers {

ReLU::ReLU(const ReLUOptions& options) : Layer(std::make_shared<ReLULayer>(options)) {}
LeakyReLU::LeakyReLU(double alpha, const PlainLayerOptions& options)
    : Layer(std::make_shared<CurveLayer>(CurveLayer::Kind::kLeakyReLU, alpha, options)) {}
ELU::ELU(double alpha, const PlainLayerOptions& options)
    : Layer(std::make_shared<CurveLayer>(CurveLayer::Kind::kELU, alpha, options)) {}
ThresholdedReLU::ThresholdedReLU(double theta, const PlainLayerOptions& options)
    : Layer(std::make_shared<CurveLayer>(CurveLayer::Kind::kThresholdedReLU, theta, options)) {}
Softmax::Softmax(std::int64_t axis, const PlainLayerOptions& options)
    : Layer(std::make_shared<CurveLayer>(CurveLayer::Kind::kSoftmax, static_cast<double>(axis), options)) {}
PReLU::PReLU(const PlainLayerOptions& options)
    : Layer(std::make_shared<PReLULayer>(options, std::vector<std::int64_t>{}, WeightOptions{.initializer = "zeros"})) {
}

}  // namespace layers
}  // namespace plimsoll
