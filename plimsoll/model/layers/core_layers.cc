#include "plimsoll/model/layers/core_layers.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/model/layers/activate.h"
#include "plimsoll/model/layers/input_layer.h"
#include "plimsoll/model/layers/kernel_and_bias.h"
#include "plimsoll/model/layers/layer_check.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll {
namespace {

class DenseLayer final : public LayerBase {
 public:
  DenseLayer(std::int64_t units, const DenseOptions& options)
      : units_(require_positive("Dense", "units", units)), options_(options), activation_(options.activation, "Dense") {
    give_name(options.name);
    set_input_shape(options.input_shape);
  }
  const char* class_name() const override { return "Dense"; }
  bool supports_masking() const override { return true; }
  Shapes output_shapes(const Shapes& in) const override {
    require_min_rank(*this, in, 2);
    return {with_last(in[0], units_)};
  }
  void build(const Shapes& in) override {
    const std::int64_t inputs = require_known_last(*this, in);
    kernel_ = add_weight("kernel", {inputs, units_}, kernel_weight(options_));
    if (options_.use_bias) bias_ = add_weight("bias", {units_}, bias_weight(options_));
  }
  Tensor call(const Tensor& x, CallContext& context) override {
    Tensor y = activation_.dense(x, *kernel_, bias_ ? Tensor(*bias_) : Tensor());
    if (options_.activity_regularizer.is_set()) context.add_loss(activity_loss(options_.activity_regularizer, y));
    return y;
  }
  void config(ConfigWriter& out) const override {
    out.put("units", units_);
    out.put("activation", activation_.name());
    put_kernel(out, options_);
    put_bias(out, options_);
    out.put("activity_regularizer", options_.activity_regularizer);
  }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    DenseOptions options{.activation = in.text("activation", "linear"),
                         .activity_regularizer = in.regularizer("activity_regularizer")};
    read_kernel_and_bias(in, options);
    return std::make_shared<DenseLayer>(in.integer("units"), options);
  }

 private:
  const std::int64_t units_;
  const DenseOptions options_;
  const LayerActivation activation_;
  std::optional<Variable> kernel_, bias_;
};

class ActivationLayer final : public LayerBase {
 public:
  ActivationLayer(const std::string& activation, const PlainLayerOptions& options)
      : activation_(activation, "Activation") {
    give_name(options.name);
    set_input_shape(options.input_shape);
  }
  const char* class_name() const override { return "Activation"; }
  bool supports_masking() const override { return true; }
  Tensor call(const Tensor& x, CallContext&) override { return activation_(x); }
  void config(ConfigWriter& out) const override { out.put("activation", activation_.name()); }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    return std::make_shared<ActivationLayer>(in.text("activation", "linear"), PlainLayerOptions{});
  }

 private:
  const LayerActivation activation_;
};

class FlattenLayer final : public LayerBase {
 public:
  explicit FlattenLayer(const PlainLayerOptions& options) {
    give_name(options.name);
    set_input_shape(options.input_shape);
  }
  const char* class_name() const override { return "Flatten"; }
  Shapes output_shapes(const Shapes& in) const override {
    require_min_rank(*this, in, 1);
    return {Shape{in[0][0], product_after_batch(in[0])}};
  }
  Tensor call(const Tensor& x, CallContext&) override {
    return x.reshape({x.shape()[0], product_after_batch(x.shape())});
  }
  void config(ConfigWriter& out) const override { out.put("data_format", "channels_last"); }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    require_channels_last(in);
    return std::make_shared<FlattenLayer>(PlainLayerOptions{});
  }
};

class ReshapeLayer final : public LayerBase {
 public:
  ReshapeLayer(const std::vector<std::int64_t>& target, const PlainLayerOptions& options) : target_(target) {
    give_name(options.name);
    set_input_shape(options.input_shape);
    int open = 0;
    for (const std::int64_t size : target) {
      open += size == -1;
      if (size < -1 || open > 1)
        throw InvalidArgument(
            fmt::format("Reshape: target {} has sizes below 0; at most one may be -1", fmt::join(target, ", ")));
    }
  }
  const char* class_name() const override { return "Reshape"; }
  Shapes output_shapes(const Shapes& in) const override {
    require_min_rank(*this, in, 1);
    std::vector<std::int64_t> sizes = {in[0][0]};
    const std::int64_t count = product_after_batch(in[0]);
    std::int64_t known = 1;
    for (const std::int64_t size : target_) known *= size == -1 ? 1 : size;
    for (const std::int64_t size : target_)
      sizes.push_back(size != -1 ? size : count == kUnknownSize || known == 0 ? kUnknownSize : count / known);
    const Shape result(sizes);
    if (count != kUnknownSize && product_after_batch(result) != count)
      throw InvalidArgument(
          fmt::format("Reshape: input {} has {} elements per example, the target [{}] does not hold them",
                      in[0].to_string(), count, fmt::join(target_, ", ")));
    return {result};
  }
  Tensor call(const Tensor& x, CallContext&) override { return x.reshape(output_shapes({x.shape()})[0]); }
  void config(ConfigWriter& out) const override { out.put("target_shape", target_); }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    const Shape target = in.shape("target_shape");
    return std::make_shared<ReshapeLayer>(std::vector<std::int64_t>(target.begin(), target.end()), PlainLayerOptions{});
  }

 private:
  const std::vector<std::int64_t> target_;
};

class PermuteLayer final : public LayerBase {
 public:
  PermuteLayer(const std::vector<std::int64_t>& dims, const PlainLayerOptions& options) : dims_(dims) {
    give_name(options.name);
    set_input_shape(options.input_shape);
    std::vector<bool> seen(dims.size() + 1);
    for (const std::int64_t axis : dims) {
      if (axis < 1 || axis > static_cast<std::int64_t>(dims.size()) || seen[static_cast<std::size_t>(axis)])
        throw InvalidArgument(
            fmt::format("Permute: dims [{}]; name every axis from 1 to {} once", fmt::join(dims, ", "), dims.size()));
      seen[static_cast<std::size_t>(axis)] = true;
    }
  }
  const char* class_name() const override { return "Permute"; }
  Shapes output_shapes(const Shapes& in) const override {
    require_rank(*this, in, dims_.size() + 1);
    std::vector<std::int64_t> sizes = {in[0][0]};
    for (const std::int64_t axis : dims_) sizes.push_back(in[0][static_cast<std::size_t>(axis)]);
    return {Shape(sizes)};
  }
  Tensor call(const Tensor& x, CallContext&) override {
    std::vector<std::int64_t> permutation = {0};
    permutation.insert(permutation.end(), dims_.begin(), dims_.end());
    return x.transpose(permutation);
  }
  void config(ConfigWriter& out) const override { out.put("dims", dims_); }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    const Shape dims = in.shape("dims");
    return std::make_shared<PermuteLayer>(std::vector<std::int64_t>(dims.begin(), dims.end()), PlainLayerOptions{});
  }

 private:
  const std::vector<std::int64_t> dims_;
};

class RepeatVectorLayer final : public LayerBase {
 public:
  RepeatVectorLayer(std::int64_t n, const PlainLayerOptions& options) : n_(require_positive("RepeatVector", "n", n)) {
    give_name(options.name);
    set_input_shape(options.input_shape);
  }
  const char* class_name() const override { return "RepeatVector"; }
  Shapes output_shapes(const Shapes& in) const override {
    require_rank(*this, in, 2);
    return {Shape{in[0][0], n_, in[0][1]}};
  }
  Tensor call(const Tensor& x, CallContext&) override { return repeat(x.expand_dims(1), n_, 1); }
  void config(ConfigWriter& out) const override { out.put("n", n_); }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    return std::make_shared<RepeatVectorLayer>(in.integer("n"), PlainLayerOptions{});
  }

 private:
  const std::int64_t n_;
};

class EmbeddingLayer final : public LayerBase {
 public:
  EmbeddingLayer(std::int64_t input_dim, std::int64_t output_dim, const EmbeddingOptions& options)
      : rows_(require_positive("Embedding", "input_dim", input_dim)),
        columns_(require_positive("Embedding", "output_dim", output_dim)),
        options_(options) {
    give_name(options.name);
    set_input_dtype(i32);
    if (options.input_length > 0) set_input_shape({options.input_length});
  }
  const char* class_name() const override { return "Embedding"; }
  Shapes output_shapes(const Shapes& in) const override {
    require_min_rank(*this, in, 1);
    std::vector<std::int64_t> sizes(in[0].begin(), in[0].end());
    sizes.push_back(columns_);
    return {Shape(sizes)};
  }
  void build(const Shapes&) override {
    table_ = add_weight("embeddings", {rows_, columns_},
                        {.initializer = options_.embeddings_initializer,
                         .regularizer = options_.embeddings_regularizer,
                         .constraint = options_.embeddings_constraint,
                         .seed = options_.seed});
  }
  Tensor call(const Tensor& x, CallContext&) override {
    return embedding_lookup(*table_, is_integer(x.dtype()) ? x : x.cast(i32));
  }
  Tensor output_mask(const std::vector<Tensor>& inputs, const CallContext&) const override {
    return options_.mask_zero ? inputs[0] != 0 : Tensor();
  }
  void config(ConfigWriter& out) const override {
    out.put("input_dim", rows_);
    out.put("output_dim", columns_);
    out.put("embeddings_initializer", options_.embeddings_initializer);
    out.put("embeddings_regularizer", options_.embeddings_regularizer);
    out.put_null("activity_regularizer");
    out.put("embeddings_constraint", options_.embeddings_constraint);
    out.put("mask_zero", options_.mask_zero);
    if (options_.input_length > 0)
      out.put("input_length", options_.input_length);
    else
      out.put_null("input_length");
  }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    return std::make_shared<EmbeddingLayer>(
        in.integer("input_dim"), in.integer("output_dim"),
        EmbeddingOptions{.embeddings_initializer = in.initializer("embeddings_initializer").or_else("random_uniform"),
                         .mask_zero = in.flag("mask_zero", false),
                         .embeddings_regularizer = in.regularizer("embeddings_regularizer"),
                         .embeddings_constraint = in.constraint("embeddings_constraint")});
  }

 private:
  const std::int64_t rows_, columns_;
  const EmbeddingOptions options_;
  std::optional<Variable> table_;
};

class MaskingLayer final : public LayerBase {
 public:
  explicit MaskingLayer(const MaskingOptions& options) : value_(options.mask_value) {
    give_name(options.name);
    set_input_shape(options.input_shape);
  }
  const char* class_name() const override { return "Masking"; }
  Shapes output_shapes(const Shapes& in) const override {
    require_min_rank(*this, in, 3);
    return {in[0]};
  }
  Tensor call(const Tensor& x, CallContext&) override {
    return x * (x != value_).any({-1}, {.keep_dims = true}).cast(x.dtype());
  }
  Tensor output_mask(const std::vector<Tensor>& inputs, const CallContext&) const override {
    return (inputs[0] != value_).any({-1});
  }
  void config(ConfigWriter& out) const override { out.put("mask_value", value_); }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    return std::make_shared<MaskingLayer>(MaskingOptions{.mask_value = in.number("mask_value", 0)});
  }

 private:
  const double value_;
};

std::shared_ptr<LayerBase> read_input(const ConfigReader&) { return std::make_shared<InputLayer>(); }

}  // namespace

LayerReader internal::core_layer_reader(std::string_view class_name) {
  if (class_name == "Dense") return DenseLayer::read;
  if (class_name == "Activation") return ActivationLayer::read;
  if (class_name == "Flatten") return FlattenLayer::read;
  if (class_name == "Reshape") return ReshapeLayer::read;
  if (class_name == "Permute") return PermuteLayer::read;
  if (class_name == "RepeatVector") return RepeatVectorLayer::read;
  if (class_name == "Embedding") return EmbeddingLayer::read;
  if (class_name == "Masking") return MaskingLayer::read;
  if (class_name == "InputLayer") return read_input;
  return nullptr;
}

namespace layers {

Dense::Dense(std::int64_t units, const DenseOptions& options) : Layer(std::make_shared<DenseLayer>(units, options)) {}
Activation::Activation(const std::string& activation, const PlainLayerOptions& options)
    : Layer(std::make_shared<ActivationLayer>(activation, options)) {}
Flatten::Flatten(const PlainLayerOptions& options) : Layer(std::make_shared<FlattenLayer>(options)) {}
Reshape::Reshape(const std::vector<std::int64_t>& target_shape, const PlainLayerOptions& options)
    : Layer(std::make_shared<ReshapeLayer>(target_shape, options)) {}
Permute::Permute(const std::vector<std::int64_t>& dims, const PlainLayerOptions& options)
    : Layer(std::make_shared<PermuteLayer>(dims, options)) {}
RepeatVector::RepeatVector(std::int64_t n, const PlainLayerOptions& options)
    : Layer(std::make_shared<RepeatVectorLayer>(n, options)) {}
Embedding::Embedding(std::int64_t input_dim, std::int64_t output_dim, const EmbeddingOptions& options)
    : Layer(std::make_shared<EmbeddingLayer>(input_dim, output_dim, options)) {}
Masking::Masking(const MaskingOptions& options) : Layer(std::make_shared<MaskingLayer>(options)) {}

}  // namespace layers
}  // namespace plimsoll
