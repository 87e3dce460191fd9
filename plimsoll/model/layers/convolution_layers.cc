#include "plimsoll/model/layers/convolution_layers.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/model/layers/activate.h"
#include "plimsoll/model/layers/kernel_and_bias.h"
#include "plimsoll/model/layers/layer_check.h"
#include "plimsoll/model/layers/window_shape.h"
#include "plimsoll/ops/convolution.h"

namespace plimsoll {
namespace {

enum class ConvKind : unsigned char { kPlain, kDepthwise, kSeparable, kTranspose };

class Conv2DLayer final : public LayerBase {
 public:
  Conv2DLayer(ConvKind kind, std::int64_t filters, SpatialSize size, const Conv2DOptions& options)
      : kind_(kind),
        filters_(kind == ConvKind::kDepthwise ? 0 : require_positive(name_of(kind), "filters", filters)),
        size_(size),
        options_(options),
        activation_(options.activation, name_of(kind)) {
    check_window(name_of(kind), size, options.strides, options.padding, false);
    require_positive(name_of(kind), "dilation_rate",
                     std::min(options.dilation_rate.rows, options.dilation_rate.columns));
    require_positive(name_of(kind), "groups", options.groups);
    require_positive(name_of(kind), "depth_multiplier", options.depth_multiplier);
    give_name(options.name);
    set_input_shape(options.input_shape);
  }
  const char* class_name() const override { return name_of(kind_); }
  Shapes output_shapes(const Shapes& in) const override {
    require_rank(*this, in, 4);
    const std::int64_t channels =
        kind_ == ConvKind::kDepthwise ? in[0][3] < 0 ? kUnknownSize : in[0][3] * options_.depth_multiplier : filters_;
    const auto out = [&](std::int64_t size, std::int64_t window, std::int64_t stride, std::int64_t dilation) {
      if (kind_ == ConvKind::kTranspose) return transposed_size(size, window, stride, options_.padding);
      return window_outputs(*this, size, {window, stride, dilation}, options_.padding);
    };
    return {Shape{in[0][0], out(in[0][1], size_.rows, options_.strides.rows, options_.dilation_rate.rows),
                  out(in[0][2], size_.columns, options_.strides.columns, options_.dilation_rate.columns), channels}};
  }
  void build(const Shapes& in) override {
    const std::int64_t channels = require_known_last(*this, in), multiplier = options_.depth_multiplier;
    const WeightOptions weight = kernel_weight(options_);
    switch (kind_) {
      case ConvKind::kPlain:
        if (channels % options_.groups != 0 || filters_ % options_.groups != 0)
          throw InvalidArgument(fmt::format("layer \"{}\": {} groups do not divide {} channels and {} filters", name(),
                                            options_.groups, channels, filters_));
        kernel_ = add_weight("kernel", {size_.rows, size_.columns, channels / options_.groups, filters_}, weight);
        break;
      case ConvKind::kTranspose:
        kernel_ = add_weight("kernel", {size_.rows, size_.columns, filters_, channels}, weight);
        break;
      case ConvKind::kDepthwise:
      case ConvKind::kSeparable:
        kernel_ = add_weight("depthwise_kernel", {size_.rows, size_.columns, channels, multiplier}, weight);
        break;
    }
    if (kind_ == ConvKind::kSeparable)
      pointwise_ = add_weight("pointwise_kernel", {1, 1, channels * multiplier, filters_}, pointwise_weight());
    const std::int64_t outputs = kind_ == ConvKind::kDepthwise ? channels * multiplier : filters_;
    if (options_.use_bias) bias_ = add_weight("bias", {outputs}, bias_weight(options_));
  }
  Tensor call(const Tensor& x, CallContext&) override {
    const Tensor bias = bias_ ? Tensor(*bias_) : Tensor();
    switch (kind_) {
      case ConvKind::kPlain:
        return finish_plain(x, bias);
      case ConvKind::kTranspose:
        return finish(conv2d_transpose(x, *kernel_, conv_options()), bias);
      case ConvKind::kSeparable:
        return finish(conv2d(depthwise(x), *pointwise_), bias);
      case ConvKind::kDepthwise:
        break;
    }
    return finish(depthwise(x), bias);
  }
  void config(ConfigWriter& out) const override;
  static const char* name_of(ConvKind kind) {
    constexpr const char* kNames[] = {"Conv2D", "DepthwiseConv2D", "SeparableConv2D", "Conv2DTranspose"};
    return kNames[static_cast<std::size_t>(kind)];
  }

 private:
  WeightOptions pointwise_weight() const {
    return {.initializer = options_.pointwise_initializer.or_else(options_.kernel_initializer),
            .regularizer = options_.pointwise_regularizer.value_or(options_.kernel_regularizer),
            .constraint = options_.pointwise_constraint.value_or(options_.kernel_constraint),
            .seed = options_.seed};
  }
  ConvOptions conv_options() const {
    return {.strides = options_.strides,
            .padding = options_.padding,
            .dilations = options_.dilation_rate,
            .groups = options_.groups};
  }
  Tensor depthwise(const Tensor& x) const {
    return depthwise_conv2d(
        x, *kernel_, {.strides = options_.strides, .padding = options_.padding, .dilations = options_.dilation_rate});
  }
  Tensor finish(const Tensor& y, const Tensor& bias) const {
    return activation_(bias.is_empty_handle() ? y : y + bias);
  }
  Tensor finish_plain(const Tensor& x, const Tensor& bias) const {
    const std::string& name = activation_.name();
    const bool fuses = name == "linear" || name == "relu" || name == "sigmoid" || name == "tanh";
    if (bias.is_empty_handle()) return finish(conv2d(x, *kernel_, conv_options()), bias);
    const Tensor y = conv2d_bias_activation(x, *kernel_, bias, fuses ? name : "linear", conv_options());
    return fuses ? y : activation_(y);
  }

  const ConvKind kind_;
  const std::int64_t filters_;
  const SpatialSize size_;
  const Conv2DOptions options_;
  const LayerActivation activation_;
  std::optional<Variable> kernel_, pointwise_, bias_;
};

std::vector<std::int64_t> pair_of(SpatialSize size) { return {size.rows, size.columns}; }

void Conv2DLayer::config(ConfigWriter& out) const {
  if (kind_ != ConvKind::kDepthwise) out.put("filters", filters_);
  out.put("kernel_size", pair_of(size_));
  out.put("strides", pair_of(options_.strides));
  out.put("padding", options_.padding);
  out.put("data_format", "channels_last");
  out.put("dilation_rate", pair_of(options_.dilation_rate));
  if (kind_ == ConvKind::kPlain && options_.groups != 1) out.put("groups", options_.groups);
  out.put("activation", activation_.name());
  const bool depthwise = kind_ == ConvKind::kDepthwise || kind_ == ConvKind::kSeparable;
  if (depthwise) out.put("depth_multiplier", options_.depth_multiplier);
  put_kernel(out, options_, depthwise ? "depthwise" : "kernel");
  if (kind_ == ConvKind::kSeparable) {
    const WeightOptions pointwise = pointwise_weight();
    out.put("pointwise_initializer", pointwise.initializer);
    out.put("pointwise_regularizer", pointwise.regularizer);
    out.put("pointwise_constraint", pointwise.constraint);
  }
  put_bias(out, options_);
  out.put_null("activity_regularizer");
}

SpatialSize read_size(const ConfigReader& in, const char* key, std::int64_t otherwise) {
  const std::vector<std::int64_t> sizes = in.integers(key, 2, otherwise);
  if (sizes.size() != 2) in.fail(key, "is not two integers");
  return {sizes[0], sizes[1]};
}

template <ConvKind kKind>
std::shared_ptr<LayerBase> read_conv2d(const ConfigReader& in) {
  require_channels_last(in);
  constexpr bool kDepthwise = kKind == ConvKind::kDepthwise || kKind == ConvKind::kSeparable;
  Conv2DOptions options{.strides = read_size(in, "strides", 1),
                        .padding = in.text("padding", "valid"),
                        .activation = in.text("activation", "linear"),
                        .dilation_rate = read_size(in, "dilation_rate", 1),
                        .groups = kKind == ConvKind::kPlain ? in.integer("groups", 1) : 1,
                        .depth_multiplier = kDepthwise ? in.integer("depth_multiplier", 1) : 1};
  read_kernel_and_bias(in, options, kDepthwise ? "depthwise" : "kernel");
  if (kKind == ConvKind::kSeparable) {
    options.pointwise_initializer = in.initializer("pointwise_initializer");
    options.pointwise_regularizer = in.regularizer("pointwise_regularizer");
    options.pointwise_constraint = in.constraint("pointwise_constraint");
  }
  if (kKind == ConvKind::kTranspose && (options.dilation_rate.rows != 1 || options.dilation_rate.columns != 1))
    in.refuse("dilation_rate", "is not offered here");
  return std::make_shared<Conv2DLayer>(kKind, kKind == ConvKind::kDepthwise ? 0 : in.integer("filters"),
                                       read_size(in, "kernel_size", 0), options);
}

class Conv1DLayer final : public LayerBase {
 public:
  Conv1DLayer(std::int64_t filters, std::int64_t size, const Conv1DOptions& options)
      : filters_(require_positive("Conv1D", "filters", filters)),
        size_(size),
        options_(options),
        activation_(options.activation, "Conv1D") {
    check_window("Conv1D", {1, size}, {1, options.strides}, options.padding, true);
    require_positive("Conv1D", "dilation_rate", options.dilation_rate);
    require_positive("Conv1D", "groups", options.groups);
    give_name(options.name);
    set_input_shape(options.input_shape);
  }
  const char* class_name() const override { return "Conv1D"; }
  Shapes output_shapes(const Shapes& in) const override {
    require_rank(*this, in, 3);
    return {Shape{in[0][0],
                  window_outputs(*this, in[0][1], {size_, options_.strides, options_.dilation_rate}, options_.padding),
                  filters_}};
  }
  void build(const Shapes& in) override {
    const std::int64_t channels = require_known_last(*this, in);
    if (channels % options_.groups != 0 || filters_ % options_.groups != 0)
      throw InvalidArgument(fmt::format("layer \"{}\": {} groups do not divide {} channels and {} filters", name(),
                                        options_.groups, channels, filters_));
    kernel_ = add_weight("kernel", {size_, channels / options_.groups, filters_}, kernel_weight(options_));
    if (options_.use_bias) bias_ = add_weight("bias", {filters_}, bias_weight(options_));
  }
  Tensor call(const Tensor& x, CallContext&) override {
    const Tensor y = conv1d(x, *kernel_,
                            {.strides = options_.strides,
                             .padding = options_.padding,
                             .dilations = options_.dilation_rate,
                             .groups = options_.groups});
    return activation_(bias_ ? y + Tensor(*bias_) : y);
  }
  void config(ConfigWriter& out) const override {
    out.put("filters", filters_);
    out.put("kernel_size", std::vector<std::int64_t>{size_});
    out.put("strides", std::vector<std::int64_t>{options_.strides});
    out.put("padding", options_.padding);
    out.put("dilation_rate", std::vector<std::int64_t>{options_.dilation_rate});
    if (options_.groups != 1) out.put("groups", options_.groups);
    out.put("activation", activation_.name());
    put_kernel(out, options_);
    put_bias(out, options_);
    out.put_null("activity_regularizer");
  }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    require_channels_last(in);
    const auto one = [&](const char* key, std::int64_t otherwise) { return in.integers(key, 1, otherwise).at(0); };
    Conv1DOptions options{.strides = one("strides", 1),
                          .padding = in.text("padding", "valid"),
                          .activation = in.text("activation", "linear"),
                          .dilation_rate = one("dilation_rate", 1),
                          .groups = in.integer("groups", 1)};
    read_kernel_and_bias(in, options);
    return std::make_shared<Conv1DLayer>(in.integer("filters"), one("kernel_size", 0), options);
  }

 private:
  const std::int64_t filters_, size_;
  const Conv1DOptions options_;
  const LayerActivation activation_;
  std::optional<Variable> kernel_, bias_;
};

}  // namespace

LayerReader internal::convolution_layer_reader(std::string_view class_name) {
  if (class_name == "Conv1D") return Conv1DLayer::read;
  if (class_name == "Conv2D") return read_conv2d<ConvKind::kPlain>;
  if (class_name == "DepthwiseConv2D") return read_conv2d<ConvKind::kDepthwise>;
  if (class_name == "SeparableConv2D") return read_conv2d<ConvKind::kSeparable>;
  if (class_name == "Conv2DTranspose") return read_conv2d<ConvKind::kTranspose>;
  return nullptr;
}

namespace layers {

Conv1D::Conv1D(std::int64_t filters, std::int64_t kernel_size, const Conv1DOptions& options)
    : Layer(std::make_shared<Conv1DLayer>(filters, kernel_size, options)) {}
Conv2D::Conv2D(std::int64_t filters, SpatialSize kernel_size, const Conv2DOptions& options)
    : Layer(std::make_shared<Conv2DLayer>(ConvKind::kPlain, filters, kernel_size, options)) {}
DepthwiseConv2D::DepthwiseConv2D(SpatialSize kernel_size, const Conv2DOptions& options)
    : Layer(std::make_shared<Conv2DLayer>(ConvKind::kDepthwise, 0, kernel_size, options)) {}
SeparableConv2D::SeparableConv2D(std::int64_t filters, SpatialSize kernel_size, const Conv2DOptions& options)
    : Layer(std::make_shared<Conv2DLayer>(ConvKind::kSeparable, filters, kernel_size, options)) {}
Conv2DTranspose::Conv2DTranspose(std::int64_t filters, SpatialSize kernel_size, const Conv2DOptions& options)
    : Layer(std::make_shared<Conv2DLayer>(ConvKind::kTranspose, filters, kernel_size, options)) {}

}  // namespace layers
}  // namespace plimsoll
