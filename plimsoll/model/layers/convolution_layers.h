// Convolutions and related layers, channels last: Conv1D, Conv2D, DepthwiseConv2D, SeparableConv2D, Conv2DTranspose,
// ZeroPadding, Cropping, UpSampling.
//
//   layers::Conv2D(32, {3, 3}, {.padding = "same", .activation = "relu", .input_shape = {28, 28, 1}})
//
// Options and defaults are those of Keras; padding "valid" or "same", for Conv1D also "causal". Throws InvalidArgument
// for sizes below 1 and, when the layer is put in a model, for windows larger than the image.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/layer.h"
#include "plimsoll/ops/convolution_size.h"

namespace plimsoll {

namespace layers {

struct Conv2DOptions {
  SpatialSize strides = 1;
  std::string padding = "valid";
  std::string activation = "linear";
  bool use_bias = true;
  Shape input_shape = {};
  std::string name = {};
  std::optional<std::uint64_t> seed = {};
  SpatialSize dilation_rate = 1;
  std::int64_t groups = 1;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::int64_t depth_multiplier = 1;  // For depthwise and separable ones: outputs per channel.
  // For separable ones, whose kernel_* apply to the depthwise kernel. Default: the same.
  Initializer pointwise_initializer = {};
  std::optional<Regularizer> pointwise_regularizer = {};
  std::optional<Constraint> pointwise_constraint = {};
};
struct Conv1DOptions {
  std::int64_t strides = 1;
  std::string padding = "valid";
  std::string activation = "linear";
  bool use_bias = true;
  Shape input_shape = {};
  std::string name = {};
  std::optional<std::uint64_t> seed = {};
  std::int64_t dilation_rate = 1;
  std::int64_t groups = 1;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
};
struct UpSamplingOptions {
  std::string name = {};
};

class PLIMSOLL_API Conv1D : public Layer {
 public:
  Conv1D(std::int64_t filters, std::int64_t kernel_size, const Conv1DOptions& options = {});
};
class PLIMSOLL_API Conv2D : public Layer {
 public:
  Conv2D(std::int64_t filters, SpatialSize kernel_size, const Conv2DOptions& options = {});
};
class PLIMSOLL_API DepthwiseConv2D : public Layer {
 public:
  explicit DepthwiseConv2D(SpatialSize kernel_size, const Conv2DOptions& options = {});
};
class PLIMSOLL_API SeparableConv2D : public Layer {  // Depthwise, then pointwise.
 public:
  SeparableConv2D(std::int64_t filters, SpatialSize kernel_size, const Conv2DOptions& options = {});
};
class PLIMSOLL_API Conv2DTranspose : public Layer {
 public:
  Conv2DTranspose(std::int64_t filters, SpatialSize kernel_size, const Conv2DOptions& options = {});
};
class PLIMSOLL_API ZeroPadding2D : public Layer {  // Rows above and below, columns left and right.
 public:
  explicit ZeroPadding2D(std::int64_t all_sides = 1, const PlainLayerOptions& options = {});
  ZeroPadding2D(std::array<std::int64_t, 2> rows, std::array<std::int64_t, 2> columns,
                const PlainLayerOptions& options = {});
};
class PLIMSOLL_API Cropping2D : public Layer {
 public:
  Cropping2D(std::array<std::int64_t, 2> rows, std::array<std::int64_t, 2> columns,
             const PlainLayerOptions& options = {});
};
class PLIMSOLL_API UpSampling2D : public Layer {  // Rows and columns repeated.
 public:
  explicit UpSampling2D(SpatialSize size = 2, const UpSamplingOptions& options = {});
};
class PLIMSOLL_API UpSampling1D : public Layer {
 public:
  explicit UpSampling1D(std::int64_t size = 2, const UpSamplingOptions& options = {});
};

}  // namespace layers

// Also without the namespace, as in earlier versions.
using layers::Conv1DOptions;
using layers::Conv2DOptions;
using layers::UpSamplingOptions;

}  // namespace plimsoll
