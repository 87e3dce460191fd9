#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "plimsoll/base/error.h"
#include "plimsoll/model/keras/config.h"
#include "plimsoll/model/keras/layer_names.h"
#include "plimsoll/model/layers/layer_check.h"
#include "plimsoll/model/layers/recurrent_layer.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/on_device_of.h"

namespace plimsoll {
namespace {

std::string inner_name_of(const LayerBase& layer) {
  return layer.name().empty() ? snake_case(layer.class_name()) : layer.name();
}

// Whether the two differ only in the direction (and their names).
bool is_mirror(const LayerBase& layer, const LayerBase& other) {
  nlohmann::ordered_json one = write_layer(layer, ""), two = write_layer(other, "");
  nlohmann::ordered_json& forth = one["config"]["go_backwards"];
  if (!forth.is_boolean()) return false;
  forth = !forth.get<bool>();
  return one == two;
}

class BidirectionalLayer final : public LayerBase {
 public:
  BidirectionalLayer(const LayerBase& layer, const BidirectionalOptions& options)
      : mode_(options.merge_mode), inner_name_(inner_name_of(layer)) {
    const auto* recurrent = dynamic_cast<const RecurrentLayer*>(&layer);
    if (recurrent == nullptr || layer.is_built())
      throw InvalidArgument(
          fmt::format("Bidirectional: layer \"{}\" of class {} is not recurrent, or has weights "
                      "already; give a new recurrent layer",
                      layer.name(), layer.class_name()));
    if (mode_ != "concat" && mode_ != "sum" && mode_ != "mul" && mode_ != "ave" && mode_ != "none")
      throw InvalidArgument(fmt::format(
          "Bidirectional: merge_mode \"{}\"; use \"concat\", \"sum\", \"mul\", \"ave\" or \"none\"", mode_));
    forward_ = recurrent->copy(recurrent->options().go_backwards);
    backward_ = recurrent->copy(!recurrent->options().go_backwards);
    if (layer.batch_shape().is_set()) set_batch_shape(layer.batch_shape());
    give_name(options.name);
    set_input_shape(options.input_shape);
  }
  const char* class_name() const override { return "Bidirectional"; }
  void set_name(std::string name) override {
    LayerBase::set_name(name);
    forward_->set_name(name + "/forward_" + inner_name_);
    backward_->set_name(name + "/backward_" + inner_name_);
  }
  Shapes output_shapes(const Shapes& in) const override {
    require_rank(*this, in, 3);
    Shapes result = forward_->output_shapes(in);
    const Shapes states(result.begin() + 1, result.end());
    if (mode_ == "concat") result[0] = with_last(result[0], 2 * forward_->units());
    if (mode_ == "none") result.insert(result.begin(), result[0]);
    result.insert(result.end(), states.begin(), states.end());
    return result;
  }
  void build(const Shapes& in) override {
    forward_->ensure_built(in);
    backward_->ensure_built(in);
  }
  std::vector<Tensor> call_all(const std::vector<Tensor>& inputs, CallContext& context) override {
    std::vector<Tensor> given = inputs;
    std::vector<Tensor> ahead = forward_->call_placed(given, context), back = backward_->call_placed(given, context);
    back[0] = beside(back[0], ahead[0]);
    const Tensor last = forward_->options().return_sequences ? reverse(back[0], {1}) : back[0];
    std::vector<Tensor> result;
    if (mode_ == "none")
      result = {ahead[0], last};
    else
      result = {merged(ahead[0], last)};
    result.insert(result.end(), ahead.begin() + 1, ahead.end());
    result.insert(result.end(), back.begin() + 1, back.end());
    return result;
  }
  Tensor output_mask(const std::vector<Tensor>&, const CallContext& context) const override {
    return forward_->options().return_sequences ? context.mask(0) : Tensor();
  }
  std::vector<LayerBase*> inner_layers() const override { return {forward_.get(), backward_.get()}; }
  void config(ConfigWriter& out) const override {
    if (mode_ == "none")
      out.put_null("merge_mode");
    else
      out.put("merge_mode", mode_);
    out.put_layer("layer", *forward_, inner_name_);
  }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    const bool both = !in.has("merge_mode") && in.is_null("merge_mode");
    const std::shared_ptr<LayerBase> layer = in.layer("layer");
    if (in.has("backward_layer") && !is_mirror(*layer, *in.layer("backward_layer")))
      in.refuse("backward_layer", "is not the layer read backwards, and others are not offered");
    return std::make_shared<BidirectionalLayer>(
        *layer, BidirectionalOptions{.merge_mode = both ? "none" : in.text("merge_mode", "concat")});
  }

 private:
  Tensor merged(const Tensor& a, const Tensor& b) const {
    if (mode_ == "concat") return concat({a, b}, -1);
    if (mode_ == "mul") return a * b;
    return mode_ == "sum" ? a + b : (a + b) / 2;
  }
  const std::string mode_, inner_name_;
  std::shared_ptr<RecurrentLayer> forward_, backward_;
};

class TimeDistributedLayer final : public LayerBase {
 public:
  TimeDistributedLayer(std::shared_ptr<LayerBase> layer, const TimeDistributedOptions& options)
      : layer_(std::move(layer)), inner_name_(inner_name_of(*layer_)) {
    give_name(options.name);
    set_input_shape(options.input_shape);
  }
  const char* class_name() const override { return "TimeDistributed"; }
  bool supports_masking() const override { return true; }
  void set_name(std::string name) override {
    LayerBase::set_name(name);
    layer_->set_name(std::move(name));  // Weights are named after the wrapper, as in Keras.
  }
  Shapes output_shapes(const Shapes& in) const override {
    require_min_rank(*this, in, 3);
    const Shape step = layer_->output_shapes({step_shape(in[0])}).at(0);
    std::vector<std::int64_t> sizes = {in[0][0], in[0][1]};
    sizes.insert(sizes.end(), step.begin() + 1, step.end());
    return {Shape(sizes)};
  }
  void build(const Shapes& in) override { layer_->ensure_built({step_shape(in[0])}); }
  Tensor call(const Tensor& x, CallContext& context) override {
    const std::int64_t batch = x.shape()[0], time = x.shape()[1];
    std::vector<std::int64_t> sizes(x.shape().begin() + 1, x.shape().end());
    sizes[0] = batch * time;
    const std::vector<Tensor> masks = context.masks();
    context.set_masks({});
    std::vector<Tensor> steps = {x.reshape(Shape(sizes))};
    const Tensor y = layer_->call_placed(steps, context).at(0);
    context.set_masks(masks);
    std::vector<std::int64_t> to = {batch, time};
    to.insert(to.end(), y.shape().begin() + 1, y.shape().end());
    return y.reshape(Shape(to));
  }
  std::vector<LayerBase*> inner_layers() const override { return {layer_.get()}; }
  void config(ConfigWriter& out) const override { out.put_layer("layer", *layer_, inner_name_); }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    return std::make_shared<TimeDistributedLayer>(in.layer("layer"), TimeDistributedOptions{});
  }

 private:
  static Shape step_shape(const Shape& shape) {
    std::vector<std::int64_t> sizes(shape.begin() + 1, shape.end());
    sizes[0] = kUnknownSize;
    return Shape(sizes);
  }
  const std::shared_ptr<LayerBase> layer_;
  const std::string inner_name_;
};

}  // namespace

LayerReader internal::wrapper_layer_reader(std::string_view class_name) {
  if (class_name == "Bidirectional") return BidirectionalLayer::read;
  if (class_name == "TimeDistributed") return TimeDistributedLayer::read;
  return nullptr;
}

namespace layers {

Bidirectional::Bidirectional(const Layer& layer, const BidirectionalOptions& options)
    : Layer(std::make_shared<BidirectionalLayer>(layer.base(), options)) {}
TimeDistributed::TimeDistributed(const Layer& layer, const TimeDistributedOptions& options)
    : Layer(std::make_shared<TimeDistributedLayer>(layer.shared_base(), options)) {}

}  // namespace layers
}  // namespace plimsoll
