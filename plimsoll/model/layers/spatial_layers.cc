#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/model/keras/config.h"
#include "plimsoll/model/layers/convolution_layers.h"
#include "plimsoll/model/layers/layer_check.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll {
namespace {

using Sides = std::array<std::int64_t, 2>;

std::int64_t grown(std::int64_t size, std::int64_t by) { return size == kUnknownSize ? kUnknownSize : size + by; }

// Pads, or crops, rows and columns.
class BorderLayer final : public LayerBase {
 public:
  BorderLayer(bool crops, Sides rows, Sides columns, const PlainLayerOptions& options)
      : crops_(crops), rows_(rows), columns_(columns) {
    for (const std::int64_t side : {rows[0], rows[1], columns[0], columns[1]})
      if (side < 0) throw InvalidArgument(fmt::format("{}: {} is given; give 0 or more", class_name(), side));
    give_name(options.name);
    set_input_shape(options.input_shape);
  }
  const char* class_name() const override { return crops_ ? "Cropping2D" : "ZeroPadding2D"; }
  Shapes output_shapes(const Shapes& in) const override {
    require_rank(*this, in, 4);
    const std::int64_t sign = crops_ ? -1 : 1;
    const Shape& x = in[0];
    const std::int64_t rows = grown(x[1], sign * (rows_[0] + rows_[1]));
    const std::int64_t columns = grown(x[2], sign * (columns_[0] + columns_[1]));
    if ((x[1] >= 0 && rows < 0) || (x[2] >= 0 && columns < 0))
      throw InvalidArgument(fmt::format("{} \"{}\": more is cropped than {} has", class_name(), name(), x.to_string()));
    return {Shape{x[0], rows, columns, x[3]}};
  }
  Tensor call(const Tensor& x, CallContext&) override {
    if (!crops_) return pad(x, {{0, 0}, {rows_[0], rows_[1]}, {columns_[0], columns_[1]}, {0, 0}});
    const Shape to = output_shapes({x.shape()})[0];
    return x.slice({0, rows_[0], columns_[0], 0}, {to[0], to[1], to[2], to[3]});
  }
  void config(ConfigWriter& out) const override {
    out.put(crops_ ? "cropping" : "padding",
            std::vector<std::vector<std::int64_t>>{{rows_[0], rows_[1]}, {columns_[0], columns_[1]}});
    out.put("data_format", "channels_last");
  }

 private:
  const bool crops_;
  const Sides rows_, columns_;
};

class UpSamplingLayer final : public LayerBase {
 public:
  UpSamplingLayer(bool flat, SpatialSize size, const UpSamplingOptions& options) : flat_(flat), size_(size) {
    require_positive(class_name(), "size", std::min(size.rows, size.columns));
    give_name(options.name);
  }
  const char* class_name() const override { return flat_ ? "UpSampling1D" : "UpSampling2D"; }
  Shapes output_shapes(const Shapes& in) const override {
    require_rank(*this, in, flat_ ? 3 : 4);
    std::vector<std::int64_t> sizes(in[0].begin(), in[0].end());
    if (sizes[1] >= 0) sizes[1] *= size_.rows;
    if (!flat_ && sizes[2] >= 0) sizes[2] *= size_.columns;
    return {Shape(sizes)};
  }
  Tensor call(const Tensor& x, CallContext&) override {
    const Tensor rows = repeat(x, size_.rows, 1);
    return flat_ ? rows : repeat(rows, size_.columns, 2);
  }
  void config(ConfigWriter& out) const override {
    if (flat_) return out.put("size", size_.rows);
    out.put("size", std::vector<std::int64_t>{size_.rows, size_.columns});
    out.put("data_format", "channels_last");
    out.put("interpolation", "nearest");
  }

 private:
  const bool flat_;
  const SpatialSize size_;
};

std::shared_ptr<LayerBase> read_border(const ConfigReader& in, bool crops) {
  require_channels_last(in);
  const std::vector<std::int64_t> sides = in.flat_integers(crops ? "cropping" : "padding", crops ? 0 : 1);
  const PlainLayerOptions none;
  if (sides.size() == 1)
    return std::make_shared<BorderLayer>(crops, Sides{sides[0], sides[0]}, Sides{sides[0], sides[0]}, none);
  if (sides.size() == 2)
    return std::make_shared<BorderLayer>(crops, Sides{sides[0], sides[0]}, Sides{sides[1], sides[1]}, none);
  if (sides.size() != 4) in.fail(crops ? "cropping" : "padding", "is not one, two or four integers");
  return std::make_shared<BorderLayer>(crops, Sides{sides[0], sides[1]}, Sides{sides[2], sides[3]}, none);
}

std::shared_ptr<LayerBase> read_up_sampling(const ConfigReader& in, bool flat) {
  require_channels_last(in);
  const std::string interpolation = in.text("interpolation", "nearest");
  if (interpolation != "nearest")
    throw Unsupported(
        fmt::format("{}: interpolation \"{}\" is not offered; use \"nearest\"", in.path(), interpolation));
  const std::vector<std::int64_t> sizes = in.integers("size", flat ? 1 : 2, 2);
  if (sizes.empty() || sizes.size() > 2) in.fail("size", "is not one or two integers");
  return std::make_shared<UpSamplingLayer>(flat, SpatialSize(sizes[0], sizes.back()), UpSamplingOptions{});
}

}  // namespace

LayerReader internal::spatial_layer_reader(std::string_view class_name) {
  if (class_name == "ZeroPadding2D") return [](const ConfigReader& in) { return read_border(in, false); };
  if (class_name == "Cropping2D") return [](const ConfigReader& in) { return read_border(in, true); };
  if (class_name == "UpSampling2D") return [](const ConfigReader& in) { return read_up_sampling(in, false); };
  if (class_name == "UpSampling1D") return [](const ConfigReader& in) { return read_up_sampling(in, true); };
  return nullptr;
}

namespace layers {

ZeroPadding2D::ZeroPadding2D(std::int64_t all_sides, const PlainLayerOptions& options)
    : Layer(std::make_shared<BorderLayer>(false, Sides{all_sides, all_sides}, Sides{all_sides, all_sides}, options)) {}
ZeroPadding2D::ZeroPadding2D(Sides rows, Sides columns, const PlainLayerOptions& options)
    : Layer(std::make_shared<BorderLayer>(false, rows, columns, options)) {}
Cropping2D::Cropping2D(Sides rows, Sides columns, const PlainLayerOptions& options)
    : Layer(std::make_shared<BorderLayer>(true, rows, columns, options)) {}
UpSampling2D::UpSampling2D(SpatialSize size, const UpSamplingOptions& options)
    : Layer(std::make_shared<UpSamplingLayer>(false, size, options)) {}
UpSampling1D::UpSampling1D(std::int64_t size, const UpSamplingOptions& options)
    : Layer(std::make_shared<UpSamplingLayer>(true, SpatialSize(size, size), options)) {}

}  // namespace layers
}  // namespace plimsoll
