// Layers with several inputs, and layers that are activations: Add, Concatenate, ..., ReLU, LeakyReLU, Softmax, ...
//
//   layers::Add()({a, b}); layers::Concatenate({.axis = 1})({a, b, c}); layers::LeakyReLU(0.1)
//
// Inputs of merges broadcast as in Keras: equal sizes, or 1. Throws InvalidArgument for fewer than two inputs and
// shapes that do not match, naming both.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/layer.h"

namespace plimsoll {

namespace layers {

struct ConcatenateOptions {
  std::int64_t axis = -1;
  std::string name = {};
};
struct DotOptions {
  bool normalize = false;  // Normalizes the vectors first: the cosine.
  std::string name = {};
};

class PLIMSOLL_API Add : public Layer {
 public:
  explicit Add(const PlainLayerOptions& options = {});
};
class PLIMSOLL_API Subtract : public Layer {  // Of two.
 public:
  explicit Subtract(const PlainLayerOptions& options = {});
};
class PLIMSOLL_API Multiply : public Layer {
 public:
  explicit Multiply(const PlainLayerOptions& options = {});
};
class PLIMSOLL_API Average : public Layer {
 public:
  explicit Average(const PlainLayerOptions& options = {});
};
class PLIMSOLL_API Maximum : public Layer {
 public:
  explicit Maximum(const PlainLayerOptions& options = {});
};
class PLIMSOLL_API Minimum : public Layer {
 public:
  explicit Minimum(const PlainLayerOptions& options = {});
};
class PLIMSOLL_API Concatenate : public Layer {
 public:
  explicit Concatenate(const ConcatenateOptions& options = {});
};
class PLIMSOLL_API Dot : public Layer {  // Over one axis of each of two inputs, [batch, n] or [batch, n, m].
 public:
  explicit Dot(const std::vector<std::int64_t>& axes, const DotOptions& options = {});
};

struct ReLUOptions {
  double max_value = 0;  // 0: none.
  double negative_slope = 0;
  double threshold = 0;
  std::string name = {};
};
class PLIMSOLL_API ReLU : public Layer {
 public:
  explicit ReLU(const ReLUOptions& options = {});
};
class PLIMSOLL_API LeakyReLU : public Layer {
 public:
  explicit LeakyReLU(double alpha = 0.3, const PlainLayerOptions& options = {});
};
class PLIMSOLL_API PReLU : public Layer {  // Leaky with learned slopes, one for each element of an example.
 public:
  explicit PReLU(const PlainLayerOptions& options = {});
};
class PLIMSOLL_API ELU : public Layer {
 public:
  explicit ELU(double alpha = 1, const PlainLayerOptions& options = {});
};
class PLIMSOLL_API ThresholdedReLU : public Layer {
 public:
  explicit ThresholdedReLU(double theta = 1, const PlainLayerOptions& options = {});
};
class PLIMSOLL_API Softmax : public Layer {
 public:
  explicit Softmax(std::int64_t axis = -1, const PlainLayerOptions& options = {});
};

}  // namespace layers

// Also without the namespace, as in earlier versions.
using layers::ConcatenateOptions;
using layers::DotOptions;

}  // namespace plimsoll
