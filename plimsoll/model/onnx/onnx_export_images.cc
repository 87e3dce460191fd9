// Layers of images and sequences with channels as ONNX nodes, which have channels second.
#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/model/onnx/onnx_export.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll::internal {

std::vector<std::int64_t> list_in(const nlohmann::ordered_json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return {};
  if (!found->is_array()) return {found->get<std::int64_t>()};
  std::vector<std::int64_t> values;
  for (const auto& each : *found)
    for (const std::int64_t value :
         each.is_array() ? each.get<std::vector<std::int64_t>>() : std::vector<std::int64_t>{each.get<std::int64_t>()})
      values.push_back(value);
  return values;
}

OnnxExport::Attributes OnnxExport::window(const Step& step, const char* size_key) const {
  const Integers size = list_in(step.config, size_key), dilation = list_in(step.config, "dilation_rate");
  Attributes attributes = {integers("kernel_shape", size)};
  Integers strides = list_in(step.config, "strides");
  if (strides.empty()) strides = size;
  attributes.push_back(integers("strides", strides));
  const std::string padding = step.config.value("padding", "valid");
  if (padding == "same")
    attributes.push_back(text("auto_pad", "SAME_UPPER"));
  else if (padding == "causal" && size.size() == 1)
    attributes.push_back(integers("pads", {(size[0] - 1) * (dilation.empty() ? 1 : dilation[0]), 0}));
  else if (padding != "valid")
    refuse(step, fmt::format("the padding \"{}\"", padding));
  return attributes;
}

// A filter [taps ..., channels, channels out] as [channels out, channels, taps ...].
std::string OnnxExport::convolution(const Step& step) {
  const std::size_t rank = step.input_shapes[0].rank();
  Attributes attributes = window(step, "kernel_size");
  attributes.push_back(integers("dilations", list_in(step.config, "dilation_rate")));
  attributes.push_back(integer("group", step.config.value("groups", 1)));
  const Integers order = rank == 3 ? Integers{2, 1, 0} : Integers{3, 2, 0, 1};
  std::vector<std::string> operands = {channels_first(step.inputs[0], rank), weight(step, "kernel", order)};
  if (has_weight(step, "bias")) operands.push_back(weight(step, "bias"));
  return activated(step, channels_last(node("Conv", operands, std::move(attributes)), rank),
                   step.config.value("activation", "linear"));
}

// Channels second, before and after.
std::string OnnxExport::depthwise_product(const Step& step, const std::string& x) {
  Attributes attributes = window(step, "kernel_size");
  attributes.push_back(integers("dilations", list_in(step.config, "dilation_rate")));
  attributes.push_back(integer("group", step.input_shapes[0].back()));
  const Tensor kernel = value_of(step, "depthwise_kernel");  // [rows, columns, channels, multiplier]
  const Shape& s = kernel.shape();
  const Tensor filter = transpose(kernel, {2, 3, 0, 1}).reshape({s[2] * s[3], 1, s[0], s[1]});
  return node("Conv", {x, add_weight(step, "depthwise_kernel", filter)}, std::move(attributes));
}

std::string OnnxExport::depthwise(const Step& step) {
  std::string y = channels_last(depthwise_product(step, channels_first(step.inputs[0], 4)), 4);
  if (has_weight(step, "bias")) y = node("Add", {y, weight(step, "bias")});
  return activated(step, y, step.config.value("activation", "linear"));
}

std::string OnnxExport::separable(const Step& step) {
  std::vector<std::string> operands = {depthwise_product(step, channels_first(step.inputs[0], 4)),
                                       weight(step, "pointwise_kernel", {3, 2, 0, 1})};
  if (has_weight(step, "bias")) operands.push_back(weight(step, "bias"));
  return activated(step, channels_last(node("Conv", operands), 4), step.config.value("activation", "linear"));
}

// Its result is `stride` times as large, and with "valid" what a larger filter reaches beyond.
std::string OnnxExport::transposed_convolution(const Step& step) {
  const Integers size = list_in(step.config, "kernel_size"), stride = list_in(step.config, "strides");
  const bool same = step.config.value("padding", "valid") == std::string("same");
  for (const std::int64_t each : list_in(step.config, "dilation_rate"))
    if (each != 1) refuse(step, "a dilation_rate");
  Integers before, after, extra;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t total = same ? std::max<std::int64_t>(0, size[i] - stride[i]) : 0;
    before.push_back(total / 2);
    after.push_back(total - total / 2);
    extra.push_back(std::max<std::int64_t>(0, stride[i] - size[i]));
  }
  before.insert(before.end(), after.begin(), after.end());
  std::vector<std::string> operands = {channels_first(step.inputs[0], 4), weight(step, "kernel", {3, 2, 0, 1})};
  if (has_weight(step, "bias")) operands.push_back(weight(step, "bias"));
  const std::string y = node("ConvTranspose", operands,
                             {integers("kernel_shape", size), integers("strides", stride), integers("pads", before),
                              integers("output_padding", extra), integer("group", 1)});
  return activated(step, channels_last(y, 4), step.config.value("activation", "linear"));
}

std::string OnnxExport::pooling(const Step& step) {
  const std::size_t rank = step.input_shapes[0].rank();
  const bool largest = std::string(step.layer.class_name()).starts_with("Max");
  return channels_last(
      node(largest ? "MaxPool" : "AveragePool", {channels_first(step.inputs[0], rank)}, window(step, "pool_size")),
      rank);
}

std::string OnnxExport::global_pooling(const Step& step) {
  const bool largest = std::string(step.layer.class_name()).starts_with("GlobalMax");
  const Integers axes = step.input_shapes[0].rank() == 3 ? Integers{1} : Integers{1, 2};
  return node(largest ? "ReduceMax" : "ReduceMean", {step.inputs[0]},
              {integers("axes", axes), integer("keepdims", step.config.value("keepdims", false))});
}

std::string OnnxExport::border(const Step& step) {
  const bool crops = step.layer.class_name() == std::string("Cropping2D");
  const Integers sides = list_in(step.config, crops ? "cropping" : "padding");  // Rows, then columns; before and after.
  if (sides.size() != 4) refuse(step, "sides that are not four");
  if (!crops)
    return node("Pad", {step.inputs[0], constant(Integers{0, sides[0], sides[2], 0, 0, sides[1], sides[3], 0})});
  const auto end = [](std::int64_t side) { return side == 0 ? std::int64_t{1} << 40 : -side; };
  return node("Slice", {step.inputs[0], constant(Integers{sides[0], sides[2]}),
                        constant(Integers{end(sides[1]), end(sides[3])}), constant(Integers{1, 2})});
}

// Each row, and each column, several times.
std::string OnnxExport::up_sampling(const Step& step) {
  const Integers times = list_in(step.config, "size");
  const std::size_t rank = step.input_shapes[0].rank();
  const std::string name = fmt::format("scales_{}", names_++);
  std::vector<float> scales(rank, 1.f);
  for (std::size_t i = 0; i + 2 < rank; ++i) scales[i + 2] = static_cast<float>(times[std::min(i, times.size() - 1)]);
  graph_.message(5, onnx_tensor(name, from_vector(scales, {static_cast<std::int64_t>(rank)})));
  const std::string y = node(
      "Resize", {channels_first(step.inputs[0], rank), "", name},
      {text("mode", "nearest"), text("coordinate_transformation_mode", "asymmetric"), text("nearest_mode", "floor")});
  return channels_last(y, rank);
}

}  // namespace plimsoll::internal
