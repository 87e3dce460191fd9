// Maximum and average pooling of images and sequences, channels last.
//
//   max_pool2d(x, {2, 2})                                          // x [8, 28, 28, 6]: [8, 14, 14, 6]
//   avg_pool2d(x, 3, {.strides = 1, .padding = "same"})
//   max_pool1d(x, 2); global_avg_pool(x); global_max_pool(x, {.keep_dims = true})
//
// As in Keras: strides default to the window's size; "valid" drops a remainder at the end, "same" gives inputs / stride
// outputs, rounded up, whose windows reach beyond the image: what is outside is never the maximum and does not count in
// an average. NaN is the maximum; among equals only the first gets the gradient (global_max_pool is max() over the axes
// between the first and the last, whose equals share it).
// Under a tape a maximum saves neither its input nor its output but the position of each maximum in its window: 2 bits
// per output for 2x2 windows. Gradients of every order. Takes floats; f16 and bf16 are computed in f32 (which is exact
// for a maximum). Throws InvalidArgument for ranks, sizes below 1, and windows larger than the image.
#pragma once

#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/ops/convolution_size.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct PoolOptions {
  SpatialSize strides = 0;        // 0: those of the window.
  std::string padding = "valid";  // Or "same".
};

struct Pool1dOptions {
  std::int64_t strides = 0;
  std::string padding = "valid";
};

PLIMSOLL_API Tensor max_pool1d(const Tensor& x, std::int64_t size, const Pool1dOptions& options = {});
PLIMSOLL_API Tensor max_pool2d(const Tensor& x, SpatialSize size, const PoolOptions& options = {});
PLIMSOLL_API Tensor avg_pool1d(const Tensor& x, std::int64_t size, const Pool1dOptions& options = {});
PLIMSOLL_API Tensor avg_pool2d(const Tensor& x, SpatialSize size, const PoolOptions& options = {});

// Over all axes but the first and the last: [batch, channels]. They throw InvalidArgument for fewer than three axes.
PLIMSOLL_API Tensor global_avg_pool(const Tensor& x, ReduceOptions options = {});
PLIMSOLL_API Tensor global_max_pool(const Tensor& x, ReduceOptions options = {});

}  // namespace plimsoll
