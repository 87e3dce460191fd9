// Images taken apart and put together by position: points of a grid, regions, blocks, centers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/model/onnx/onnx_window.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/grid_sample.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/reduce.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {
namespace {

using Integers = std::vector<std::int64_t>;

GridRule grid_rule(const OnnxNode& node) {
  const std::string mode = node.text("mode", "linear"), padding = node.text("padding_mode", "zeros");
  GridRule rule{.align_corners = node.integer("align_corners", 0) != 0};
  if (mode == "nearest")
    rule.mode = ResampleMode::nearest;
  else if (mode == "cubic" || mode == "bicubic")
    rule.mode = ResampleMode::cubic;
  else if (mode != "linear" && mode != "bilinear")
    node.unsupported(fmt::format("the mode \"{}\"", mode));
  if (padding == "border")
    rule.padding = GridPadding::border;
  else if (padding == "reflection")
    rule.padding = GridPadding::reflection;
  else if (padding != "zeros")
    node.unsupported(fmt::format("padding_mode \"{}\"", padding));
  return rule;
}

void grid_sample_of(OnnxNode& node) {
  const std::size_t rank = node.rank(0);
  if (rank < 3 || rank > 5) node.unsupported(fmt::format("an x of {} axes", rank));
  const Tensor& x = node.value(0).as(channels_last(rank));
  const DType dtype = x.dtype() == f32 || is_half(x.dtype()) ? f32 : f64;
  const Tensor y = grid_sample(x.cast(dtype), node.in(1).cast(dtype), grid_rule(node));
  node.give(OnnxValue(y.cast(x.dtype()), channels_last(rank)));
}

// Places of an axis, from -1 to 1.
std::vector<double> even_places(std::int64_t size, bool align_corners) {
  std::vector<double> places;
  for (std::int64_t i = 0; i < size; ++i)
    places.push_back(align_corners ? (size == 1 ? 0 : -1 + 2.0 * double(i) / double(size - 1))
                                   : -1 + (2.0 * double(i) + 1) / double(size));
  return places;
}

// The points that affine maps give of the points of an image.
void affine_grid(OnnxNode& node) {
  const Tensor& theta = node.in(0);
  const Integers size = node.integers(std::size_t{1});
  const std::size_t axes = size.size() - std::min<std::size_t>(2, size.size());
  if (axes < 2 || axes > 3 || theta.rank() != 3 || theta.shape()[1] != static_cast<std::int64_t>(axes))
    node.invalid(fmt::format("maps {} for a size of {} axes", theta.shape().to_string(), size.size()));
  Integers spatial(size.begin() + 2, size.end());
  Tensor points;
  {
    const TraceWith nobody(nullptr);
    std::vector<Tensor> columns;  // The last axis first, then ones.
    for (std::size_t axis = axes; axis-- > 0;) {
      Integers beside(axes, 1);
      beside[axis] = spatial[axis];
      const std::vector<double> places = even_places(spatial[axis], node.integer("align_corners", 0) != 0);
      columns.push_back(broadcast_to(from_vector(places, Shape(beside)), Shape(spatial)));
    }
    columns.push_back(ones(Shape(spatial), f64));
    points = stack(columns, -1).reshape({-1, static_cast<std::int64_t>(axes) + 1}).cast(theta.dtype());
  }
  spatial.insert(spatial.begin(), theta.shape()[0]);
  spatial.push_back(static_cast<std::int64_t>(axes));
  node.give(matmul(broadcast_to(points, {theta.shape()[0], points.shape()[0], points.shape()[1]}), theta,
                   {.transpose_b = true})
                .reshape(Shape(spatial)));
}

// Cut, or padded with zeros, on both sides.
void center_crop_pad(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const Integers sizes = node.integers(std::size_t{1});
  Integers axes = node.integers("axes");
  if (axes.empty())
    for (std::size_t axis = 0; axis < x.rank(); ++axis) axes.push_back(static_cast<std::int64_t>(axis));
  if (axes.size() != sizes.size()) node.invalid(fmt::format("{} sizes for {} axes", sizes.size(), axes.size()));
  Integers begin(x.rank(), 0), count(x.shape().begin(), x.shape().end());
  Paddings paddings(x.rank(), {0, 0});
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = resolve_axis(axes[i], x.rank(), "CenterCropPad");
    const std::int64_t have = x.shape()[axis], more = sizes[i] - have;
    if (sizes[i] < 0) node.invalid(fmt::format("a size of {}", sizes[i]));
    if (more < 0) begin[axis] = -more / 2, count[axis] = sizes[i];
    if (more > 0) paddings[axis] = {more / 2, more - more / 2};
  }
  node.give(pad(slice(x, begin, count), paddings));
}

// Blocks added up where they overlap: what a convolution's gradient does with its columns.
void columns_to_image(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const Integers image = node.integers(std::size_t{1}), block = node.integers(std::size_t{2});
  const std::size_t axes = image.size();
  if (x.rank() != 3 || axes == 0 || block.size() != axes) node.invalid("it takes [batch, channels block, blocks]");
  const Integers stride = node.integers("strides", Integers(axes, 1)),
                 dilation = node.integers("dilations", Integers(axes, 1));
  const Integers pads = node.integers("pads", Integers(2 * axes, 0));
  if (stride.size() != axes || dilation.size() != axes || pads.size() != 2 * axes)
    node.invalid("attributes of other sizes");
  std::int64_t taps = 1, blocks = 1, pixels = 1;
  Integers counts;
  for (std::size_t i = 0; i < axes; ++i) {
    if (block[i] < 1 || stride[i] < 1 || dilation[i] < 1 || image[i] < 0) node.invalid("sizes below 1");
    counts.push_back((image[i] + pads[i] + pads[i + axes] - dilation[i] * (block[i] - 1) - 1) / stride[i] + 1);
    taps *= block[i], blocks *= counts[i], pixels *= image[i];
  }
  if (blocks != x.shape()[2] || x.shape()[1] % taps != 0)
    node.invalid(fmt::format("{} has not {} blocks of {}", x.shape().to_string(), blocks, taps));
  // The pixel that each element of each block is added to; those in the padding go to one more, which is cut off.
  Integers places(static_cast<std::size_t>(taps * blocks));
  for (std::int64_t tap = 0; tap < taps; ++tap)
    for (std::int64_t at = 0; at < blocks; ++at) {
      std::int64_t place = 0, t = tap, b = at, step = 1;
      for (std::size_t i = axes; i-- > 0;) {
        const std::int64_t pixel = b % counts[i] * stride[i] + t % block[i] * dilation[i] - pads[i];
        place = place < 0 || pixel < 0 || pixel >= image[i] ? -1 : place + pixel * step;
        step *= image[i], t /= block[i], b /= counts[i];
      }
      places[static_cast<std::size_t>(tap * blocks + at)] = place < 0 ? pixels : place;
    }
  const std::int64_t batch = x.shape()[0], channels = x.shape()[1] / taps;
  const Tensor columns = transpose(x.reshape({batch * channels, taps * blocks}));
  const Tensor sums = scatter(constant_numbers(places), columns, {pixels + 1, batch * channels});
  Integers sizes = {batch, channels};
  sizes.insert(sizes.end(), image.begin(), image.end());
  node.give(transpose(slice(sums, {0}, {pixels})).reshape(Shape(sizes)));
}

// Regions of images as maps of one size: means, or maxima, of points between the pixels. Where regions lie is computed
// on the host: a graph whose regions are computed runs operation by operation.
struct Regions {
  std::int64_t rows, columns, samples;  // Of a map; points of a place, along each axis.
  double scale, shift;
  bool at_least_one;
};

// Rows and columns of the points of one region, with weights of four neighbours.
struct RegionTaps {
  Integers places;  // [points, 4]
  std::vector<double> weights;
  std::int64_t points = 0;  // Of each place of the map.
};

// One coordinate of a point: two neighbours, what the second counts; false when it is too far outside.
bool neighbours(double at, std::int64_t size, std::int64_t& low, std::int64_t& high, double& part) {
  if (at < -1 || at > static_cast<double>(size)) return false;
  at = std::max(at, 0.0);
  low = static_cast<std::int64_t>(at);
  if (low >= size - 1) return low = high = size - 1, part = 0, true;
  high = low + 1;
  part = at - static_cast<double>(low);
  return true;
}

RegionTaps taps_of(const Regions& regions, const double* box, std::int64_t height, std::int64_t width) {
  RegionTaps taps;
  const double left = box[0] * regions.scale - regions.shift, top = box[1] * regions.scale - regions.shift;
  double wide = box[2] * regions.scale - regions.shift - left, high = box[3] * regions.scale - regions.shift - top;
  if (regions.at_least_one) wide = std::max(wide, 1.0), high = std::max(high, 1.0);
  const double cell_high = high / double(regions.rows), cell_wide = wide / double(regions.columns);
  const auto samples = [&](double cell) {
    const double wanted = regions.samples > 0 ? double(regions.samples) : std::ceil(cell);
    return static_cast<std::int64_t>(std::clamp(wanted, 0.0, 4096.0));
  };
  const std::int64_t down = samples(cell_high), across = samples(cell_wide);
  taps.points = down * across;
  for (std::int64_t row = 0; row < regions.rows; ++row)
    for (std::int64_t column = 0; column < regions.columns; ++column)
      for (std::int64_t i = 0; i < down; ++i)
        for (std::int64_t j = 0; j < across; ++j) {
          const double y = top + (double(row) + (double(i) + 0.5) / double(down)) * cell_high;
          const double x = left + (double(column) + (double(j) + 0.5) / double(across)) * cell_wide;
          std::int64_t y0 = 0, y1 = 0, x0 = 0, x1 = 0;
          double ly = 0, lx = 0;
          const bool inside = neighbours(y, height, y0, y1, ly) && neighbours(x, width, x0, x1, lx);
          taps.places.insert(taps.places.end(), {y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1});
          if (!inside) std::fill(taps.places.end() - 4, taps.places.end(), 0);
          const double on = inside ? 1 : 0;
          taps.weights.insert(taps.weights.end(),
                              {on * (1 - ly) * (1 - lx), on * (1 - ly) * lx, on * ly * (1 - lx), on * ly * lx});
        }
  return taps;
}

void roi_align(OnnxNode& node) {
  const Tensor& x = node.value(0).as(channels_last(4));
  const std::vector<double> boxes = node.reals(std::size_t{1});
  const Integers images = node.integers(std::size_t{2});
  const bool half_pixel =
      node.version() >= 16 && node.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const bool average = node.text("mode", "avg") == "avg";
  const Regions regions{
      node.integer("output_height", 1), node.integer("output_width", 1), node.integer("sampling_ratio", 0),
      node.real("spatial_scale", 1),    half_pixel ? 0.5 : 0.0,          !half_pixel};
  if (x.rank() != 4 || boxes.size() != 4 * images.size() || regions.rows < 1 || regions.columns < 1)
    node.invalid("regions are [count, 4], of images [batch, channels, rows, columns]");
  const std::int64_t height = x.shape()[1], width = x.shape()[2], channels = x.shape()[3];
  const std::int64_t cells = regions.rows * regions.columns;
  std::vector<Tensor> maps;
  for (std::size_t i = 0; i < images.size(); ++i) {
    if (images[i] < 0 || images[i] >= x.shape()[0])
      node.invalid(fmt::format("image {} of {}", images[i], x.shape()[0]));
    const RegionTaps taps = taps_of(regions, boxes.data() + 4 * i, height, width);
    if (taps.points == 0) {
      maps.push_back(zeros({cells, channels}, x.dtype()));
      continue;
    }
    const Tensor image = slice(x, {images[i]}, {1}).reshape({height * width, channels});
    Tensor weights;
    {
      const TraceWith nobody(nullptr);
      weights = from_vector(taps.weights, {cells * taps.points, 4, 1}).cast(x.dtype());
    }
    const Tensor corners =
        gather(image, constant_numbers(taps.places)).reshape({cells * taps.points, 4, channels}) * weights;
    const Tensor points = (average ? sum(corners, {1}) : max(corners, {1})).reshape({cells, taps.points, channels});
    maps.push_back(average ? mean(points, {1}) : max(points, {1}));
  }
  const Shape shape = {static_cast<std::int64_t>(images.size()), regions.rows, regions.columns, channels};
  node.give(OnnxValue(maps.empty() ? zeros(shape, x.dtype()) : stack(maps).reshape(shape), channels_last(4)));
}

constexpr OnnxOperator kSamplingRows[] = {
    {"AffineGrid", 20, kNewest, affine_grid, kOperand1},
    {"CenterCropPad", 18, kNewest, center_crop_pad, kOperand1},
    {"Col2Im", 18, kNewest, columns_to_image, kOperand1 | kOperand2},
    {"GridSample", 16, kNewest, grid_sample_of},
    {"RoiAlign", 10, kNewest, roi_align, kOperand1 | kOperand2},
};

}  // namespace

OnnxOperators onnx_sampling_operators() { return kSamplingRows; }

}  // namespace plimsoll::internal
