#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/model/keras/config.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/layer_check.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/dropout.h"
#include "plimsoll/ops/random.h"

namespace plimsoll {
namespace {

double require_rate(const char* where, double rate) {
  if (!(rate >= 0 && rate < 1))
    throw InvalidArgument(fmt::format("{}: the rate is {}; give 0 or more, and less than 1", where, rate));
  return rate;
}

class DropoutLayer final : public LayerBase {
 public:
  // `spatial`: the axes between batch and channels drop the same; the input then has so many of them.
  DropoutLayer(const char* class_name, double rate, const DropoutOptions& options, std::size_t spatial = 0)
      : class_name_(class_name), rate_(require_rate(class_name, rate)), options_(options), spatial_(spatial) {
    give_name(options.name);
    set_input_shape(options.input_shape);
  }
  const char* class_name() const override { return class_name_; }
  bool supports_masking() const override { return true; }
  Shapes output_shapes(const Shapes& in) const override {
    if (spatial_ > 0) require_rank(*this, in, spatial_ + 2);
    if (!options_.noise_shape.empty()) require_rank(*this, in, options_.noise_shape.size());
    return {in.at(0)};
  }
  Tensor call(const Tensor& x, CallContext& context) override {
    if (!context.training() || rate_ == 0) return x;
    const DropoutSettings settings{.seed = next_seed(options_.seed)};
    if (spatial_ == 0 && options_.noise_shape.empty()) return dropout(x, rate_, settings);
    std::vector<std::int64_t> sizes(x.shape().begin(), x.shape().end());
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (spatial_ > 0 && axis > 0 && axis + 1 < sizes.size()) sizes[axis] = 1;
      if (!options_.noise_shape.empty() && options_.noise_shape[axis] > 0) sizes[axis] = options_.noise_shape[axis];
    }
    return x * dropout(ones(Shape(sizes), x.dtype()), rate_, settings);
  }
  void config(ConfigWriter& out) const override {
    out.put("rate", rate_);
    if (options_.noise_shape.empty())
      out.put_null("noise_shape");
    else
      out.put("noise_shape", options_.noise_shape);
    out.put("seed", options_.seed);
  }

 private:
  const char* const class_name_;
  const double rate_;
  const DropoutOptions options_;
  const std::size_t spatial_;
};

class NoiseLayer final : public LayerBase {
 public:
  NoiseLayer(const char* class_name, double amount, bool multiplies, const NoiseOptions& options)
      : class_name_(class_name), amount_(amount), multiplies_(multiplies), options_(options) {
    give_name(options.name);
  }
  const char* class_name() const override { return class_name_; }
  bool supports_masking() const override { return true; }
  Tensor call(const Tensor& x, CallContext& context) override {
    if (!context.training() || amount_ == 0) return x;
    const double deviation = multiplies_ ? std::sqrt(amount_ / (1 - amount_)) : amount_;
    const Tensor noise = random_normal(x.shape(), multiplies_ ? 1 : 0, deviation,
                                       {.seed = next_seed(options_.seed), .dtype = x.dtype()});
    return multiplies_ ? x * noise : x + noise;
  }
  void config(ConfigWriter& out) const override {
    out.put(multiplies_ ? "rate" : "stddev", amount_);
    if (options_.seed) out.put("seed", options_.seed);
  }

 private:
  const char* const class_name_;
  const double amount_;
  const bool multiplies_;
  const NoiseOptions options_;
};

// Keeps mean and variance of SELU's outputs.
class AlphaDropoutLayer final : public LayerBase {
 public:
  AlphaDropoutLayer(double rate, const NoiseOptions& options)
      : rate_(require_rate("AlphaDropout", rate)), options_(options) {
    give_name(options.name);
  }
  const char* class_name() const override { return "AlphaDropout"; }
  bool supports_masking() const override { return true; }
  Tensor call(const Tensor& x, CallContext& context) override {
    if (!context.training() || rate_ == 0) return x;
    constexpr double kDropped = -1.7580993408473766;  // SELU's value far below 0.
    const double a = 1 / std::sqrt((1 - rate_) * (1 + rate_ * kDropped * kDropped)), b = -a * kDropped * rate_;
    const Tensor kept = dropout(ones(x.shape(), x.dtype()), rate_, {.seed = next_seed(options_.seed)}) * (1 - rate_);
    return (x * kept + (1 - kept) * kDropped) * a + b;
  }
  void config(ConfigWriter& out) const override {
    out.put("rate", rate_);
    if (options_.seed) out.put("seed", options_.seed);
  }

 private:
  const double rate_;
  const NoiseOptions options_;
};

double require_deviation(double deviation) {
  if (!(deviation >= 0))
    throw InvalidArgument(fmt::format("GaussianNoise: the deviation is {}; give 0 or more", deviation));
  return deviation;
}

std::shared_ptr<LayerBase> read_dropout(const char* class_name, const ConfigReader& in, std::size_t spatial) {
  require_channels_last(in);
  DropoutOptions options{.seed = in.seed()};
  if (in.has("noise_shape")) {
    const Shape noise = in.shape("noise_shape");
    options.noise_shape.assign(noise.begin(), noise.end());
  }
  return std::make_shared<DropoutLayer>(class_name, in.number("rate", 0), options, spatial);
}

}  // namespace

LayerReader internal::noise_layer_reader(std::string_view class_name) {
  if (class_name == "Dropout") return [](const ConfigReader& in) { return read_dropout("Dropout", in, 0); };
  if (class_name == "SpatialDropout1D")
    return [](const ConfigReader& in) { return read_dropout("SpatialDropout1D", in, 1); };
  if (class_name == "SpatialDropout2D")
    return [](const ConfigReader& in) { return read_dropout("SpatialDropout2D", in, 2); };
  if (class_name == "GaussianNoise")
    return [](const ConfigReader& in) -> std::shared_ptr<LayerBase> {
      return std::make_shared<NoiseLayer>("GaussianNoise", require_deviation(in.number("stddev", 0)), false,
                                          NoiseOptions{.seed = in.seed()});
    };
  if (class_name == "GaussianDropout")
    return [](const ConfigReader& in) -> std::shared_ptr<LayerBase> {
      return std::make_shared<NoiseLayer>("GaussianDropout", require_rate("GaussianDropout", in.number("rate", 0)),
                                          true, NoiseOptions{.seed = in.seed()});
    };
  if (class_name == "AlphaDropout")
    return [](const ConfigReader& in) -> std::shared_ptr<LayerBase> {
      return std::make_shared<AlphaDropoutLayer>(in.number("rate", 0), NoiseOptions{.seed = in.seed()});
    };
  return nullptr;
}

namespace layers {

Dropout::Dropout(double rate, const DropoutOptions& options)
    : Layer(std::make_shared<DropoutLayer>("Dropout", rate, options)) {}
SpatialDropout1D::SpatialDropout1D(double rate, const DropoutOptions& options)
    : Layer(std::make_shared<DropoutLayer>("SpatialDropout1D", rate, options, 1)) {}
SpatialDropout2D::SpatialDropout2D(double rate, const DropoutOptions& options)
    : Layer(std::make_shared<DropoutLayer>("SpatialDropout2D", rate, options, 2)) {}
GaussianNoise::GaussianNoise(double deviation, const NoiseOptions& options)
    : Layer(std::make_shared<NoiseLayer>("GaussianNoise", require_deviation(deviation), false, options)) {}
GaussianDropout::GaussianDropout(double rate, const NoiseOptions& options)
    : Layer(std::make_shared<NoiseLayer>("GaussianDropout", require_rate("GaussianDropout", rate), true, options)) {}

AlphaDropout::AlphaDropout(double rate, const NoiseOptions& options)
    : Layer(std::make_shared<AlphaDropoutLayer>(rate, options)) {}

}  // namespace layers
}  // namespace plimsoll
