// Large results of normalizations and of short attention are not kept for gradients: they are recomputed, to the bit.
#include <gtest/gtest.h>

#include <algorithm>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/ops/attention.h"
#include "plimsoll/ops/batch_norm.h"
#include "plimsoll/ops/convolution.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/dense.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/layer_norm.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/profile.h"

namespace plimsoll {
namespace {

constexpr std::int64_t kRows = 512, kColumns = 256;  // 512 KiB of f32.

struct Operands {
  Tensor x = random_normal({kRows, kColumns}, {.seed = 1});
  Variable gamma{random_normal({kColumns}, {.seed = 2})}, beta{random_normal({kColumns}, {.seed = 3})};
  Variable w{random_normal({kColumns, 64}, {.seed = 4})}, v{random_normal({kColumns, 64}, {.seed = 5})};
};

enum class Norm { kLayer, kBatch, kBatchRelu };

Tensor normalized(const Operands& o, const Tensor& x, Norm norm) {
  if (norm == Norm::kLayer) return layer_norm(x, o.gamma, o.beta);
  return batch_norm_training(x, o.gamma, o.beta, {.activation = norm == Norm::kBatch ? "linear" : "relu"}).y;
}

// A result that went through something else cannot be recomputed.
Tensor kept(const Tensor& y, bool keep) { return keep ? y * 1.f : y; }

class Remake : public testing::TestWithParam<Norm> {};

TEST_P(Remake, GivesTheBitsOfWhatWasKept) {
  const Operands o;
  const auto gradients = [&](bool keep, bool persistent) {
    GradientTape tape({.persistent = persistent});
    tape.watch(o.x);
    const Tensor y = kept(normalized(o, o.x, GetParam()), keep);
    const Tensor loss = (square(dense(y, o.w)) + dense(y, o.v) * 3.f).sum();
    std::vector<std::vector<float>> result;
    for (const Tensor& g : tape.gradient(loss, {o.x, o.gamma, o.beta, o.w, o.v}))
      result.push_back(g.to_vector<float>());
    return result;
  };
  const auto expected = gradients(true, false);
  EXPECT_EQ(gradients(false, false), expected);
  EXPECT_EQ(gradients(false, true), expected);
}

TEST_P(Remake, HoldsTheResultNoLongerThanItsHandle) {
  const Operands o;
  GradientTape tape;
  tape.watch(o.x);
  const std::size_t before = memory().num_bytes;
  Tensor loss = dense(normalized(o, o.x, GetParam()), o.w).sum();
  EXPECT_LT(memory().num_bytes - before, kRows * kColumns * sizeof(float) / 2);
  EXPECT_EQ(tape.gradient(loss, {o.x})[0].shape(), o.x.shape());
}

TEST_P(Remake, CanBeDifferentiatedAgain) {
  const Operands o;
  const auto second = [&](bool keep) {
    GradientTape outer;
    outer.watch(o.x);
    Tensor inner_gradient;
    {
      GradientTape inner;
      const Tensor y = kept(normalized(o, o.x, GetParam()), keep);
      inner_gradient = inner.gradient(square(matmul(y, o.w)).sum(), {o.w})[0];
    }
    return outer.gradient(square(inner_gradient).sum(), {o.x, o.gamma});
  };
  const std::vector<Tensor> expected = second(true), got = second(false);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const float scale = abs(expected[i]).max().item<float>();
    EXPECT_LT(abs(got[i] - expected[i]).max().item<float>(), scale * 1e-4f);
  }
}

INSTANTIATE_TEST_SUITE_P(Norms, Remake, testing::Values(Norm::kLayer, Norm::kBatch, Norm::kBatchRelu));

TEST(Remake, OfWhatSeveralReadIsDoneOnce) {
  const Operands o;
  GradientTape tape;
  tape.watch(o.x);
  const Tensor y = layer_norm(o.x, o.gamma, o.beta);
  const Tensor loss = (dense(y, o.w) + dense(y, o.v)).sum();
  y.dispose();
  const ProfileInfo info = profile([&] { tape.gradient(loss, {o.w, o.v}); });
  EXPECT_EQ(std::ranges::count(info.kernels, std::string("layer_norm"), &ProfiledKernel::name), 1);
}

TEST(Remake, LeavesSmallResultsToTheTape) {
  const Tensor x = random_normal({8, 16}, {.seed = 1});
  const Variable gamma(ones({16})), w(random_normal({16, 4}, {.seed = 2}));
  GradientTape tape;
  tape.watch(x);
  const std::size_t before = memory().num_data_buffers;
  const Tensor loss = dense(layer_norm(x, gamma, {}), w);
  EXPECT_EQ(memory().num_data_buffers - before, 4u);  // The normalized rows, their moments, the result.
}

TEST(Remake, ReadsPixelsThroughConvolutions) {
  const Tensor x = random_normal({8, 32, 32, 16}, {.seed = 1});  // 512 KiB.
  const Variable gamma(ones({16})), beta(zeros({16})), filter(random_normal({3, 3, 16, 8}, {.seed = 2}));
  const auto gradients = [&](bool keep) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = kept(batch_norm_training(x, gamma, beta, {.activation = "relu"}).y, keep);
    std::vector<std::vector<float>> result;
    for (const Tensor& g :
         tape.gradient(square(conv2d(y, filter, {.padding = "same"})).sum(), {x, gamma, beta, filter}))
      result.push_back(g.to_vector<float>());
    return result;
  };
  EXPECT_EQ(gradients(false), gradients(true));
}

TEST(DenseWithRelu, KeepsBitsOfLargeResults) {
  const Operands o;
  const Variable up(random_normal({kColumns, 512}, {.seed = 6})), down(random_normal({512, 8}, {.seed = 7}));
  const auto gradients = [&](bool fused) {
    GradientTape tape;
    tape.watch(o.x);
    const Tensor h = fused ? dense(o.x, up, {}, Activation::relu) : relu(dense(o.x, up));
    std::vector<std::vector<float>> result;
    for (const Tensor& g : tape.gradient(square(dense(h, down)).sum(), {o.x, up, down}))
      result.push_back(g.to_vector<float>());
    return result;
  };
  EXPECT_EQ(gradients(true), gradients(false));
}

// Attention over `time` steps of 4 heads, and the product that reads it in another shape.
struct Heads {
  explicit Heads(std::int64_t time) : x(random_normal({8, time, 4, 32}, {.seed = 1})) {}
  Tensor mixed(bool keep) const {
    const Tensor y = scaled_dot_product_attention(x * 0.5f, x, x * 2.f, {.sequence_first = true});
    return kept(y, keep).reshape({-1, 128});
  }
  Tensor x;
  Variable w{random_normal({128, 32}, {.seed = 2})};
};
constexpr std::int64_t kShort = 64, kLong = 128;  // 256 KiB of results for the short one.

TEST(Remake, OfAttentionGivesTheBitsOfWhatWasKept) {
  const Heads heads(kShort);
  const auto gradients = [&](bool keep, bool persistent) {
    GradientTape tape({.persistent = persistent});
    tape.watch(heads.x);
    const Tensor loss = square(dense(heads.mixed(keep), heads.w)).sum();
    const std::vector<Tensor> result = tape.gradient(loss, {heads.x, heads.w});
    return std::pair(result[0].to_vector<float>(), result[1].to_vector<float>());
  };
  const auto expected = gradients(true, false);
  EXPECT_EQ(gradients(false, false), expected);
  EXPECT_EQ(gradients(false, true), expected);
}

std::ptrdiff_t attentions_going_back(const Heads& heads) {
  GradientTape tape;
  tape.watch(heads.x);
  const Tensor loss = dense(heads.mixed(false), heads.w).sum();
  const ProfileInfo info = profile([&] { tape.gradient(loss, {heads.x, heads.w}); });
  return std::ranges::count(info.kernels, std::string("scaled_dot_product_attention"), &ProfiledKernel::name);
}

TEST(Remake, OfAttentionServesItsReaderAndItsOwnGradient) { EXPECT_EQ(attentions_going_back(Heads(kShort)), 1); }

TEST(Remake, LeavesLongAttentionToTheTape) { EXPECT_EQ(attentions_going_back(Heads(kLong)), 0); }

TEST(Remake, OfAttentionHoldsTheResultNoLongerThanItsHandle) {
  const Heads heads(kShort);
  GradientTape tape;
  tape.watch(heads.x);
  Tensor mixed = heads.mixed(false);
  const Tensor loss = dense(mixed, heads.w).sum();
  const std::size_t before = memory().num_bytes, bytes = mixed.nbytes();
  mixed = Tensor();
  EXPECT_LE(memory().num_bytes + bytes, before);
  EXPECT_EQ(tape.gradient(loss, {heads.w})[0].shape(), heads.w.shape());
}

TEST(Remake, OfAttentionCanBeDifferentiatedAgain) {
  const Heads heads(kShort);
  const auto second = [&](bool keep) {
    GradientTape outer;
    outer.watch(heads.x);
    Tensor inner_gradient;
    {
      GradientTape inner;
      inner.watch(heads.x);
      inner_gradient = inner.gradient(square(matmul(heads.mixed(keep), heads.w)).sum(), {heads.w})[0];
    }
    return outer.gradient(square(inner_gradient).sum(), {heads.x})[0];
  };
  const Tensor expected = second(true), got = second(false);
  EXPECT_LT(abs(got - expected).max().item<float>(), abs(expected).max().item<float>() * 1e-4f);
}

TEST(Remake, SeesThroughReshapes) {
  const Operands o;
  GradientTape tape;
  tape.watch(o.x);
  const Tensor loss = dense(layer_norm(o.x, o.gamma, o.beta).reshape({2, kRows / 2, kColumns}), o.w).sum();
  const ProfileInfo info = profile([&] { tape.gradient(loss, {o.w}); });
  EXPECT_EQ(std::ranges::count(info.kernels, std::string("layer_norm"), &ProfiledKernel::name), 1);
}

}  // namespace
}  // namespace plimsoll
