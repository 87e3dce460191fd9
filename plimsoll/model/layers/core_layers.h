// The basic layers: Dense, Dropout, Activation, Flatten, Reshape, Permute, RepeatVector, Embedding, Masking.
//
//   layers::Dense(16, {.activation = "relu", .input_shape = {10}})
//   layers::Embedding(1000, 16, {.mask_zero = true})
//
// Options and defaults are those of Keras. A first layer may have its input's shape, without the batch: its model then
// has weights at once. Throws InvalidArgument for sizes below 1, rates outside [0, 1) and unknown names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/model/layers/layer.h"

namespace plimsoll {

namespace layers {

struct DenseOptions {
  std::string activation = "linear";
  bool use_bias = true;
  Shape input_shape = {};
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  std::string name = {};
  std::optional<std::uint64_t> seed = {};
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
};
struct DropoutOptions {
  std::optional<std::uint64_t> seed = {};
  std::string name = {};
  std::vector<std::int64_t> noise_shape = {};  // Sizes of 1 drop the same along their axis; -1: the input's size.
  Shape input_shape = {};
};
struct PlainLayerOptions {
  std::string name = {};
  Shape input_shape = {};
};
struct EmbeddingOptions {
  Initializer embeddings_initializer = "random_uniform";
  bool mask_zero = false;  // Row 0 means no value: later layers skip it.
  std::int64_t input_length = 0;
  std::string name = {};
  std::optional<std::uint64_t> seed = {};
  Regularizer embeddings_regularizer = {};
  Constraint embeddings_constraint = {};
};
struct MaskingOptions {
  double mask_value = 0;
  std::string name = {};
  Shape input_shape = {};
};
struct NoiseOptions {
  std::optional<std::uint64_t> seed = {};
  std::string name = {};
};

class PLIMSOLL_API Dense : public Layer {  // activation(x w + b) over the last axis.
 public:
  explicit Dense(std::int64_t units, const DenseOptions& options = {});
};
class PLIMSOLL_API Dropout : public Layer {  // In training only.
 public:
  explicit Dropout(double rate, const DropoutOptions& options = {});
};
class PLIMSOLL_API SpatialDropout1D : public Layer {  // Whole channels.
 public:
  explicit SpatialDropout1D(double rate, const DropoutOptions& options = {});
};
class PLIMSOLL_API SpatialDropout2D : public Layer {
 public:
  explicit SpatialDropout2D(double rate, const DropoutOptions& options = {});
};
class PLIMSOLL_API GaussianNoise : public Layer {  // Adds normal numbers, in training only.
 public:
  explicit GaussianNoise(double deviation, const NoiseOptions& options = {});
};
class PLIMSOLL_API GaussianDropout : public Layer {  // Multiplies by normal numbers around 1.
 public:
  explicit GaussianDropout(double rate, const NoiseOptions& options = {});
};
class PLIMSOLL_API AlphaDropout : public Layer {  // For SELU: keeps mean and variance.
 public:
  explicit AlphaDropout(double rate, const NoiseOptions& options = {});
};
class PLIMSOLL_API Activation : public Layer {
 public:
  explicit Activation(const std::string& activation, const PlainLayerOptions& options = {});
};
class PLIMSOLL_API Flatten : public Layer {  // [batch, the rest]
 public:
  explicit Flatten(const PlainLayerOptions& options = {});
};
class PLIMSOLL_API Reshape : public Layer {  // To [batch, target_shape]; one size may be -1.
 public:
  explicit Reshape(const std::vector<std::int64_t>& target_shape, const PlainLayerOptions& options = {});
};
class PLIMSOLL_API Permute : public Layer {  // Axes from 1 on; the batch stays.
 public:
  explicit Permute(const std::vector<std::int64_t>& dims, const PlainLayerOptions& options = {});
};
class PLIMSOLL_API RepeatVector : public Layer {  // [batch, features] to [batch, n, features]
 public:
  explicit RepeatVector(std::int64_t n, const PlainLayerOptions& options = {});
};
class PLIMSOLL_API Embedding : public Layer {  // Integers to rows of a table.
 public:
  Embedding(std::int64_t input_dim, std::int64_t output_dim, const EmbeddingOptions& options = {});
};
class PLIMSOLL_API Masking : public Layer {  // Skips steps all of whose features have the value.
 public:
  explicit Masking(const MaskingOptions& options = {});
};

}  // namespace layers

// Also without the namespace, as in earlier versions.
using layers::DenseOptions;
using layers::DropoutOptions;
using layers::EmbeddingOptions;
using layers::MaskingOptions;
using layers::NoiseOptions;
using layers::PlainLayerOptions;

}  // namespace plimsoll
