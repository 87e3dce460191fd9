#include "plimsoll/model/layers/attention_layers.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/model/layers/kernel_and_bias.h"
#include "plimsoll/model/layers/layer_check.h"
#include "plimsoll/ops/attention.h"
#include "plimsoll/ops/dense.h"

namespace plimsoll {
namespace {

class MultiHeadAttentionLayer final : public LayerBase {
 public:
  MultiHeadAttentionLayer(std::int64_t heads, std::int64_t key_dim, const MultiHeadAttentionOptions& options)
      : heads_(require_positive("MultiHeadAttention", "num_heads", heads)),
        key_dim_(require_positive("MultiHeadAttention", "key_dim", key_dim)),
        value_dim_(options.value_dim > 0 ? options.value_dim : key_dim),
        options_(options) {
    give_name(options.name);
  }
  const char* class_name() const override { return "MultiHeadAttention"; }
  bool supports_masking() const override { return true; }
  Shapes output_shapes(const Shapes& in) const override {
    if (in.size() != 2 && in.size() != 3)
      throw InvalidArgument(
          fmt::format("MultiHeadAttention \"{}\": takes query, value and perhaps key, was given {} "
                      "inputs",
                      name(), in.size()));
    for (const Shape& shape : in)
      if (shape.rank() != 3)
        throw InvalidArgument(
            fmt::format("MultiHeadAttention \"{}\": an input of shape {}; give [batch, time, features]", name(),
                        shape.to_string()));
    return {in[0]};
  }
  void build(const Shapes& in) override {
    const std::int64_t features = require_known_last(*this, {in[0]}), values = require_known_last(*this, {in[1]});
    const std::int64_t keys = in.size() == 3 ? require_known_last(*this, {in[2]}) : values;
    query_ = project("query", {features, heads_, key_dim_}, {heads_, key_dim_});
    key_ = project("key", {keys, heads_, key_dim_}, {heads_, key_dim_});
    value_ = project("value", {values, heads_, value_dim_}, {heads_, value_dim_});
    output_ = project("attention_output", {heads_, value_dim_, features}, {features});
  }
  std::vector<Tensor> call_all(const std::vector<Tensor>& in, CallContext& context) override {
    const Tensor& keys = in.size() == 3 ? in[2] : in[1];
    Tensor mask = context.mask(in.size() == 3 && !context.mask(2).is_empty_handle() ? 2 : 1);
    if (!mask.is_empty_handle()) mask = mask.reshape({mask.shape()[0], 1, 1, mask.shape()[1]});
    const Tensor y = scaled_dot_product_attention(apply(*query_, in[0], key_dim_), apply(*key_, keys, key_dim_),
                                                  apply(*value_, in[1], value_dim_),
                                                  {.mask = mask, .causal = options_.causal, .sequence_first = true});
    const Shape& shape = y.shape();
    return {plimsoll::dense(y.reshape({shape[0], shape[1], heads_ * value_dim_}),
                            Tensor(output_->kernel).reshape({heads_ * value_dim_, -1}), bias_of(*output_))};
  }
  void config(ConfigWriter& out) const override {
    out.put("num_heads", heads_);
    out.put("key_dim", key_dim_);
    out.put("value_dim", value_dim_);
    put_kernel(out, options_);
    put_bias(out, options_);
    out.put("use_causal_mask", options_.causal);
    if (options_.seed) out.put("seed", options_.seed);
  }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    MultiHeadAttentionOptions options{
        .value_dim = in.integer("value_dim", 0), .causal = in.flag("use_causal_mask", false), .seed = in.seed()};
    read_kernel_and_bias(in, options);
    return std::make_shared<MultiHeadAttentionLayer>(in.integer("num_heads"), in.integer("key_dim"), options);
  }

 private:
  struct Projection {
    Variable kernel;
    std::optional<Variable> bias;
  };
  Projection project(const std::string& name, const Shape& kernel, const Shape& bias) {
    Projection result{add_weight(name + "/kernel", kernel, kernel_weight(options_)), std::nullopt};
    if (options_.use_bias) result.bias = add_weight(name + "/bias", bias, bias_weight(options_));
    return result;
  }
  static Tensor bias_of(const Projection& projection) {
    return projection.bias ? Tensor(*projection.bias).reshape({-1}) : Tensor();
  }
  // [batch, time, features] to [batch, time, heads, size].
  Tensor apply(const Projection& projection, const Tensor& x, std::int64_t size) const {
    const Tensor y =
        plimsoll::dense(x, Tensor(projection.kernel).reshape({x.shape()[2], heads_ * size}), bias_of(projection));
    return y.reshape({x.shape()[0], x.shape()[1], heads_, size});
  }

  const std::int64_t heads_, key_dim_, value_dim_;
  const MultiHeadAttentionOptions options_;
  std::optional<Projection> query_, key_, value_, output_;
};

}  // namespace

LayerReader internal::attention_layer_reader(std::string_view class_name) {
  return class_name == "MultiHeadAttention" ? MultiHeadAttentionLayer::read : nullptr;
}

namespace layers {

MultiHeadAttention::MultiHeadAttention(std::int64_t num_heads, std::int64_t key_dim,
                                       const MultiHeadAttentionOptions& options)
    : Layer(std::make_shared<MultiHeadAttentionLayer>(num_heads, key_dim, options)) {}

}  // namespace layers
}  // namespace plimsoll
