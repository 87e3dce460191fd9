// Pooling, channels last: the largest or the mean of windows, or of a whole image or sequence.
//
//   layers::MaxPooling2D({2, 2}); layers::AveragePooling1D(3, {.strides = 1, .padding = "same"})
//   layers::GlobalAveragePooling2D()
//
// Strides are the window's size unless given. Throws InvalidArgument for sizes below 1 and windows that do not fit.
#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/layer.h"
#include "plimsoll/ops/convolution_size.h"

namespace plimsoll {

namespace layers {

struct Pooling2DOptions {
  SpatialSize strides = 0;  // 0: those of the window.
  std::string padding = "valid";
  std::string name = {};
  Shape input_shape = {};
};
struct Pooling1DOptions {
  std::int64_t strides = 0;
  std::string padding = "valid";
  std::string name = {};
  Shape input_shape = {};
};
struct GlobalPoolingOptions {
  bool keep_dims = false;
  std::string name = {};
  Shape input_shape = {};
};

class PLIMSOLL_API MaxPooling2D : public Layer {
 public:
  explicit MaxPooling2D(SpatialSize pool_size = 2, const Pooling2DOptions& options = {});
};
class PLIMSOLL_API AveragePooling2D : public Layer {
 public:
  explicit AveragePooling2D(SpatialSize pool_size = 2, const Pooling2DOptions& options = {});
};
class PLIMSOLL_API MaxPooling1D : public Layer {
 public:
  explicit MaxPooling1D(std::int64_t pool_size = 2, const Pooling1DOptions& options = {});
};
class PLIMSOLL_API AveragePooling1D : public Layer {
 public:
  explicit AveragePooling1D(std::int64_t pool_size = 2, const Pooling1DOptions& options = {});
};
class PLIMSOLL_API GlobalMaxPooling2D : public Layer {
 public:
  explicit GlobalMaxPooling2D(const GlobalPoolingOptions& options = {});
};
class PLIMSOLL_API GlobalAveragePooling2D : public Layer {
 public:
  explicit GlobalAveragePooling2D(const GlobalPoolingOptions& options = {});
};
class PLIMSOLL_API GlobalMaxPooling1D : public Layer {
 public:
  explicit GlobalMaxPooling1D(const GlobalPoolingOptions& options = {});
};
class PLIMSOLL_API GlobalAveragePooling1D : public Layer {  // Over the steps that are not masked.
 public:
  explicit GlobalAveragePooling1D(const GlobalPoolingOptions& options = {});
};

}  // namespace layers

// Also without the namespace, as in earlier versions.
using layers::GlobalPoolingOptions;
using layers::Pooling1DOptions;
using layers::Pooling2DOptions;

}  // namespace plimsoll
