#include "plimsoll/model/layers/merge_layers.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/model/data/plural.h"
#include "plimsoll/model/keras/config.h"
#include "plimsoll/model/layers/layer_check.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/norm.h"

namespace plimsoll {
namespace {

void require_inputs(const LayerBase& layer, std::size_t given, std::size_t least, std::size_t most) {
  if (given < least || given > most)
    throw InvalidArgument(fmt::format("{} \"{}\": takes {}, was given {}", layer.class_name(), layer.name(),
                                      least == most ? plural(least, "input") : fmt::format("{} or more inputs", least),
                                      given));
}

enum class Merge : unsigned char { kAdd, kSubtract, kMultiply, kAverage, kMaximum, kMinimum };

class MergeLayer final : public LayerBase {
 public:
  MergeLayer(Merge kind, const PlainLayerOptions& options) : kind_(kind) { give_name(options.name); }
  const char* class_name() const override {
    constexpr const char* kNames[] = {"Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"};
    return kNames[static_cast<std::size_t>(kind_)];
  }
  Shapes output_shapes(const Shapes& in) const override {
    require_inputs(*this, in.size(), 2, kind_ == Merge::kSubtract ? 2 : SIZE_MAX);
    Shape result = in[0];
    for (std::size_t i = 1; i < in.size(); ++i) result = broadcast_shapes(result, in[i], class_name());
    return {result};
  }
  std::vector<Tensor> call_all(const std::vector<Tensor>& in, CallContext&) override {
    require_inputs(*this, in.size(), 2, kind_ == Merge::kSubtract ? 2 : SIZE_MAX);
    Tensor result = in[0];
    for (std::size_t i = 1; i < in.size(); ++i) result = both(result, in[i]);
    if (kind_ == Merge::kAverage) result = result / static_cast<double>(in.size());
    return {result};
  }
  Tensor output_mask(const std::vector<Tensor>& in, const CallContext& context) const override {
    Tensor mask = context.mask(0);
    for (std::size_t i = 1; i < in.size() && !mask.is_empty_handle(); ++i)
      mask = context.mask(i).is_empty_handle() ? Tensor() : mask && context.mask(i);
    return mask;
  }
  void config(ConfigWriter&) const override {}

 private:
  Tensor both(const Tensor& a, const Tensor& b) const {
    switch (kind_) {
      case Merge::kSubtract:
        return a - b;
      case Merge::kMultiply:
        return a * b;
      case Merge::kMaximum:
        return maximum(a, b);
      case Merge::kMinimum:
        return minimum(a, b);
      case Merge::kAdd:
      case Merge::kAverage:
        break;
    }
    return a + b;
  }
  const Merge kind_;
};

class ConcatenateLayer final : public LayerBase {
 public:
  explicit ConcatenateLayer(const ConcatenateOptions& options) : axis_(options.axis) { give_name(options.name); }
  const char* class_name() const override { return "Concatenate"; }
  Shapes output_shapes(const Shapes& in) const override {
    require_inputs(*this, in.size(), 2, SIZE_MAX);
    const std::size_t axis = resolve_axis(axis_, in[0].rank(), "Concatenate");
    std::vector<std::int64_t> sizes(in[0].begin(), in[0].end());
    for (std::size_t i = 1; i < in.size(); ++i) {
      bool fits = in[i].rank() == sizes.size();
      for (std::size_t a = 0; fits && a < sizes.size(); ++a) {
        if (a == axis)
          sizes[a] = sizes[a] < 0 || in[i][a] < 0 ? kUnknownSize : sizes[a] + in[i][a];
        else
          fits = sizes[a] == in[i][a] || sizes[a] < 0 || in[i][a] < 0;
      }
      if (!fits)
        throw InvalidArgument(fmt::format("Concatenate \"{}\": inputs {} and {} differ in another axis than {}", name(),
                                          in[0].to_string(), in[i].to_string(), axis_));
    }
    return {Shape(sizes)};
  }
  std::vector<Tensor> call_all(const std::vector<Tensor>& in, CallContext&) override { return {concat(in, axis_)}; }
  void config(ConfigWriter& out) const override { out.put("axis", axis_); }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    return std::make_shared<ConcatenateLayer>(ConcatenateOptions{.axis = in.integer("axis", -1)});
  }

 private:
  const std::int64_t axis_;
};

class DotLayer final : public LayerBase {
 public:
  DotLayer(const std::vector<std::int64_t>& axes, const DotOptions& options)
      : axes_(axes), normalize_(options.normalize) {
    give_name(options.name);
    if (axes.size() != 1 && axes.size() != 2)
      throw InvalidArgument(fmt::format("Dot: {} axes; give one, or one for each input", axes.size()));
  }
  const char* class_name() const override { return "Dot"; }
  Shapes output_shapes(const Shapes& in) const override {
    require_inputs(*this, in.size(), 2, 2);
    std::vector<std::int64_t> sizes = {in[0].rank() > 0 ? in[0][0] : kUnknownSize};
    for (std::size_t i = 0; i < 2; ++i) {
      if (in[i].rank() != 2 && in[i].rank() != 3)
        throw InvalidArgument(
            fmt::format("Dot \"{}\": input {} has shape {}; give two or three axes", name(), i, in[i].to_string()));
      const std::size_t axis = axis_of(in[i], i);
      if (axis == 0) throw InvalidArgument(fmt::format("Dot \"{}\": axis 0 is the batch; name another", name()));
      for (std::size_t a = 1; a < in[i].rank(); ++a)
        if (a != axis) sizes.push_back(in[i][a]);
    }
    if (in[0][axis_of(in[0], 0)] != in[1][axis_of(in[1], 1)])
      throw InvalidArgument(fmt::format("Dot \"{}\": inputs {} and {} differ along the axes that are summed", name(),
                                        in[0].to_string(), in[1].to_string()));
    if (sizes.size() == 1) sizes.push_back(1);
    return {Shape(sizes)};
  }
  std::vector<Tensor> call_all(const std::vector<Tensor>& in, CallContext&) override {
    const Shape result = output_shapes({in[0].shape(), in[1].shape()})[0];
    const Tensor a = rows(in[0], 0), b = rows(in[1], 1);
    return {matmul(a, b, {.transpose_b = true}).reshape(result)};
  }
  void config(ConfigWriter& out) const override {
    if (axes_.size() == 1)
      out.put("axes", axes_[0]);
    else
      out.put("axes", axes_);
    out.put("normalize", normalize_);
  }
  static std::shared_ptr<LayerBase> read(const ConfigReader& in) {
    return std::make_shared<DotLayer>(in.integers("axes", 1, -1), DotOptions{.normalize = in.flag("normalize", false)});
  }

 private:
  std::size_t axis_of(const Shape& shape, std::size_t input) const {
    return resolve_axis(axes_.size() == 1 ? axes_[0] : axes_[input], shape.rank(), "Dot");
  }
  // [batch, the axis that stays, the one that is summed]
  Tensor rows(const Tensor& x, std::size_t input) const {
    const std::size_t axis = axis_of(x.shape(), input);
    const Tensor given = normalize_ ? l2_normalize(x, {static_cast<std::int64_t>(axis)}) : x;
    if (x.rank() == 2) return given.expand_dims(1);
    return axis == 2 ? given : given.transpose({0, 2, 1});
  }
  const std::vector<std::int64_t> axes_;
  const bool normalize_;
};

template <Merge kKind>
std::shared_ptr<LayerBase> read_merge(const ConfigReader&) {
  return std::make_shared<MergeLayer>(kKind, PlainLayerOptions{});
}

}  // namespace

LayerReader internal::merge_layer_reader(std::string_view class_name) {
  if (class_name == "Add") return read_merge<Merge::kAdd>;
  if (class_name == "Subtract") return read_merge<Merge::kSubtract>;
  if (class_name == "Multiply") return read_merge<Merge::kMultiply>;
  if (class_name == "Average") return read_merge<Merge::kAverage>;
  if (class_name == "Maximum") return read_merge<Merge::kMaximum>;
  if (class_name == "Minimum") return read_merge<Merge::kMinimum>;
  if (class_name == "Concatenate") return ConcatenateLayer::read;
  if (class_name == "Dot") return DotLayer::read;
  return nullptr;
}

namespace layers {

Add::Add(const PlainLayerOptions& options) : Layer(std::make_shared<MergeLayer>(Merge::kAdd, options)) {}
Subtract::Subtract(const PlainLayerOptions& options) : Layer(std::make_shared<MergeLayer>(Merge::kSubtract, options)) {}
Multiply::Multiply(const PlainLayerOptions& options) : Layer(std::make_shared<MergeLayer>(Merge::kMultiply, options)) {}
Average::Average(const PlainLayerOptions& options) : Layer(std::make_shared<MergeLayer>(Merge::kAverage, options)) {}
Maximum::Maximum(const PlainLayerOptions& options) : Layer(std::make_shared<MergeLayer>(Merge::kMaximum, options)) {}
Minimum::Minimum(const PlainLayerOptions& options) : Layer(std::make_shared<MergeLayer>(Merge::kMinimum, options)) {}
Concatenate::Concatenate(const ConcatenateOptions& options) : Layer(std::make_shared<ConcatenateLayer>(options)) {}
Dot::Dot(const std::vector<std::int64_t>& axes, const DotOptions& options)
    : Layer(std::make_shared<DotLayer>(axes, options)) {}

}  // namespace layers
}  // namespace plimsoll
