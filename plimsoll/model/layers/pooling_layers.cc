#include "plimsoll/model/layers/pooling_layers.h"

#include "plimsoll/model/keras/config.h"
#include "plimsoll/model/layers/layer_check.h"
#include "plimsoll/model/layers/window_shape.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/pooling.h"

namespace plimsoll {
namespace {

class PoolingLayer final : public LayerBase {
 public:
  // `flat`: over sequences; then the window's columns count.
  PoolingLayer(bool max, bool flat, SpatialSize size, const Pooling2DOptions& options)
      : max_(max),
        flat_(flat),
        size_(size),
        strides_(options.strides.rows == 0 ? size : options.strides),
        padding_(options.padding) {
    check_window(class_name(), size, strides_, padding_, false);
    give_name(options.name);
    set_input_shape(options.input_shape);
  }
  const char* class_name() const override {
    if (flat_) return max_ ? "MaxPooling1D" : "AveragePooling1D";
    return max_ ? "MaxPooling2D" : "AveragePooling2D";
  }
  Shapes output_shapes(const Shapes& in) const override {
    require_rank(*this, in, flat_ ? 3 : 4);
    std::vector<std::int64_t> sizes(in[0].begin(), in[0].end());
    const std::size_t columns = flat_ ? 1 : 2;
    if (!flat_) sizes[1] = window_outputs(*this, sizes[1], {size_.rows, strides_.rows}, padding_);
    sizes[columns] = window_outputs(*this, sizes[columns], {size_.columns, strides_.columns}, padding_);
    return {Shape(sizes)};
  }
  Tensor call(const Tensor& x, CallContext&) override {
    if (flat_) {
      const Pool1dOptions options{.strides = strides_.columns, .padding = padding_};
      return max_ ? max_pool1d(x, size_.columns, options) : avg_pool1d(x, size_.columns, options);
    }
    const PoolOptions options{.strides = strides_, .padding = padding_};
    return max_ ? max_pool2d(x, size_, options) : avg_pool2d(x, size_, options);
  }
  void config(ConfigWriter& out) const override {
    using List = std::vector<std::int64_t>;
    out.put("pool_size", flat_ ? List{size_.columns} : List{size_.rows, size_.columns});
    out.put("padding", padding_);
    out.put("strides", flat_ ? List{strides_.columns} : List{strides_.rows, strides_.columns});
    out.put("data_format", "channels_last");
  }

 private:
  const bool max_, flat_;
  const SpatialSize size_, strides_;
  const std::string padding_;
};

class GlobalPoolingLayer final : public LayerBase {
 public:
  GlobalPoolingLayer(bool max, bool flat, const GlobalPoolingOptions& options)
      : max_(max), flat_(flat), keep_dims_(options.keep_dims) {
    give_name(options.name);
    set_input_shape(options.input_shape);
  }
  const char* class_name() const override {
    if (flat_) return max_ ? "GlobalMaxPooling1D" : "GlobalAveragePooling1D";
    return max_ ? "GlobalMaxPooling2D" : "GlobalAveragePooling2D";
  }
  Shapes output_shapes(const Shapes& in) const override {
    require_rank(*this, in, flat_ ? 3 : 4);
    const std::int64_t batch = in[0][0], channels = in[0].back();
    if (!keep_dims_) return {Shape{batch, channels}};
    return {flat_ ? Shape{batch, 1, channels} : Shape{batch, 1, 1, channels}};
  }
  Tensor call(const Tensor& x, CallContext& context) override {
    const ReduceOptions options{.keep_dims = keep_dims_};
    if (max_) return global_max_pool(x, options);
    const Tensor mask = context.mask();
    if (mask.is_empty_handle()) return global_avg_pool(x, options);
    const Tensor counted = mask.cast(x.dtype()).expand_dims(-1);
    return (x * counted).sum({1}, options) / counted.sum({1}, options);
  }
  void config(ConfigWriter& out) const override {
    if (!flat_) out.put("data_format", "channels_last");
    if (keep_dims_) out.put("keepdims", true);
  }

 private:
  const bool max_, flat_, keep_dims_;
};

Pooling2DOptions columns_only(const Pooling1DOptions& options) {
  return {.strides = options.strides == 0 ? SpatialSize(0) : SpatialSize(1, options.strides),
          .padding = options.padding,
          .name = options.name,
          .input_shape = options.input_shape};
}

template <bool kMax, bool kFlat>
std::shared_ptr<LayerBase> read_pooling(const ConfigReader& in) {
  require_channels_last(in);
  constexpr std::size_t kCount = kFlat ? 1 : 2;
  const std::vector<std::int64_t> size = in.integers("pool_size", kCount, 2);
  std::vector<std::int64_t> strides = size;
  if (in.has("strides")) strides = in.integers("strides", kCount, 1);
  if (size.size() != kCount || strides.size() != kCount) in.fail("pool_size", "has a wrong number of sizes");
  const auto both = [](const std::vector<std::int64_t>& v) { return SpatialSize(kFlat ? 1 : v[0], v.back()); };
  return std::make_shared<PoolingLayer>(
      kMax, kFlat, both(size), Pooling2DOptions{.strides = both(strides), .padding = in.text("padding", "valid")});
}

template <bool kMax, bool kFlat>
std::shared_ptr<LayerBase> read_global(const ConfigReader& in) {
  require_channels_last(in);
  return std::make_shared<GlobalPoolingLayer>(kMax, kFlat,
                                              GlobalPoolingOptions{.keep_dims = in.flag("keepdims", false)});
}

}  // namespace

LayerReader internal::pooling_layer_reader(std::string_view class_name) {
  if (class_name == "MaxPooling2D") return read_pooling<true, false>;
  if (class_name == "AveragePooling2D") return read_pooling<false, false>;
  if (class_name == "MaxPooling1D") return read_pooling<true, true>;
  if (class_name == "AveragePooling1D") return read_pooling<false, true>;
  if (class_name == "GlobalMaxPooling2D") return read_global<true, false>;
  if (class_name == "GlobalAveragePooling2D") return read_global<false, false>;
  if (class_name == "GlobalMaxPooling1D") return read_global<true, true>;
  if (class_name == "GlobalAveragePooling1D") return read_global<false, true>;
  return nullptr;
}

namespace layers {

MaxPooling2D::MaxPooling2D(SpatialSize size, const Pooling2DOptions& options)
    : Layer(std::make_shared<PoolingLayer>(true, false, size, options)) {}
AveragePooling2D::AveragePooling2D(SpatialSize size, const Pooling2DOptions& options)
    : Layer(std::make_shared<PoolingLayer>(false, false, size, options)) {}
MaxPooling1D::MaxPooling1D(std::int64_t size, const Pooling1DOptions& options)
    : Layer(std::make_shared<PoolingLayer>(true, true, SpatialSize(1, size), columns_only(options))) {}
AveragePooling1D::AveragePooling1D(std::int64_t size, const Pooling1DOptions& options)
    : Layer(std::make_shared<PoolingLayer>(false, true, SpatialSize(1, size), columns_only(options))) {}
GlobalMaxPooling2D::GlobalMaxPooling2D(const GlobalPoolingOptions& options)
    : Layer(std::make_shared<GlobalPoolingLayer>(true, false, options)) {}
GlobalAveragePooling2D::GlobalAveragePooling2D(const GlobalPoolingOptions& options)
    : Layer(std::make_shared<GlobalPoolingLayer>(false, false, options)) {}
GlobalMaxPooling1D::GlobalMaxPooling1D(const GlobalPoolingOptions& options)
    : Layer(std::make_shared<GlobalPoolingLayer>(true, true, options)) {}
GlobalAveragePooling1D::GlobalAveragePooling1D(const GlobalPoolingOptions& options)
    : Layer(std::make_shared<GlobalPoolingLayer>(false, true, options)) {}

}  // namespace layers
}  // namespace plimsoll
