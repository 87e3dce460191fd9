#include <gtest/gtest.h>

#include <type_traits>

#include "plimsoll/model/layers/attention_layers.h"
#include "plimsoll/model/layers/convolution_layers.h"
#include "plimsoll/model/layers/core_layers.h"
#include "plimsoll/model/layers/merge_layers.h"
#include "plimsoll/model/layers/normalization_layers.h"
#include "plimsoll/model/layers/pooling_layers.h"
#include "plimsoll/model/layers/recurrent_layers.h"
#include "plimsoll/model/model.h"
#include "plimsoll/model/training/callbacks.h"
#include "plimsoll/model/training/optimizers.h"
#include "plimsoll/model/training/schedules.h"

namespace pl = plimsoll;

// Each pair is one type: programs may use either name.
template <class InItsNamespace, class Alias>
constexpr bool kSame = std::is_same_v<InItsNamespace, Alias>;

static_assert(kSame<pl::layers::DenseOptions, pl::DenseOptions>);
static_assert(kSame<pl::layers::DropoutOptions, pl::DropoutOptions>);
static_assert(kSame<pl::layers::PlainLayerOptions, pl::PlainLayerOptions>);
static_assert(kSame<pl::layers::EmbeddingOptions, pl::EmbeddingOptions>);
static_assert(kSame<pl::layers::MaskingOptions, pl::MaskingOptions>);
static_assert(kSame<pl::layers::NoiseOptions, pl::NoiseOptions>);
static_assert(kSame<pl::layers::Conv1DOptions, pl::Conv1DOptions>);
static_assert(kSame<pl::layers::Conv2DOptions, pl::Conv2DOptions>);
static_assert(kSame<pl::layers::UpSamplingOptions, pl::UpSamplingOptions>);
static_assert(kSame<pl::layers::ConcatenateOptions, pl::ConcatenateOptions>);
static_assert(kSame<pl::layers::DotOptions, pl::DotOptions>);
static_assert(kSame<pl::layers::BatchNormalizationOptions, pl::BatchNormalizationOptions>);
static_assert(kSame<pl::layers::LayerNormalizationOptions, pl::LayerNormalizationOptions>);
static_assert(kSame<pl::layers::Pooling1DOptions, pl::Pooling1DOptions>);
static_assert(kSame<pl::layers::Pooling2DOptions, pl::Pooling2DOptions>);
static_assert(kSame<pl::layers::GlobalPoolingOptions, pl::GlobalPoolingOptions>);
static_assert(kSame<pl::layers::RecurrentOptions, pl::RecurrentOptions>);
static_assert(kSame<pl::layers::BidirectionalOptions, pl::BidirectionalOptions>);
static_assert(kSame<pl::layers::TimeDistributedOptions, pl::TimeDistributedOptions>);
static_assert(kSame<pl::layers::MultiHeadAttentionOptions, pl::MultiHeadAttentionOptions>);
static_assert(kSame<pl::optimizers::SGDOptions, pl::SGDOptions>);
static_assert(kSame<pl::optimizers::RMSpropOptions, pl::RMSpropOptions>);
static_assert(kSame<pl::optimizers::AdagradOptions, pl::AdagradOptions>);
static_assert(kSame<pl::optimizers::AdadeltaOptions, pl::AdadeltaOptions>);
static_assert(kSame<pl::optimizers::AdamOptions, pl::AdamOptions>);
static_assert(kSame<pl::optimizers::AdamaxOptions, pl::AdamaxOptions>);
static_assert(kSame<pl::callbacks::ModelCheckpointOptions, pl::ModelCheckpointOptions>);
static_assert(kSame<pl::callbacks::TensorBoardOptions, pl::TensorBoardOptions>);
static_assert(kSame<pl::callbacks::EarlyStoppingOptions, pl::EarlyStoppingOptions>);
static_assert(kSame<pl::callbacks::ReduceLROnPlateauOptions, pl::ReduceLROnPlateauOptions>);
static_assert(kSame<pl::schedules::ExponentialDecayOptions, pl::ExponentialDecayOptions>);
static_assert(kSame<pl::schedules::CosineDecayOptions, pl::CosineDecayOptions>);
static_assert(kSame<pl::schedules::PiecewiseConstantOptions, pl::PiecewiseConstantOptions>);

TEST(OptionsNamespaces, BothNamesConfigureALayerAndAnOptimizer) {
  const pl::layers::DenseOptions dense{.activation = "relu", .input_shape = {3}};
  const pl::DenseOptions last{.use_bias = false};
  pl::Sequential model({pl::layers::Dense(4, dense), pl::layers::Dense(1, last)});
  model.compile(
      {.optimizer = pl::optimizers::Adam(pl::optimizers::AdamOptions{.learning_rate = 0.01F}), .loss = "mse"});
  EXPECT_EQ(model.weights().size(), 3U);
}
