// Attention compared with the same made of products and softmax, values and gradients.
#include "plimsoll/ops/attention.h"

#include <gtest/gtest.h>

#include "plimsoll/autograd/refusal_testing.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/softmax.h"

namespace plimsoll {
namespace {

struct Sizes {
  std::int64_t batch, heads, queries, keys, depth, columns;
};

Tensors make_operands(const Sizes& s, DType dtype = f64) {
  return {varied({s.batch, s.heads, s.queries, s.depth}).cast(dtype),
          varied({s.batch, s.heads, s.keys, s.depth}, -1, 1, 0.5).cast(dtype),
          varied({s.batch, s.heads, s.keys, s.columns}, -1, 1, 0.9).cast(dtype)};
}

Tensor causal_mask(std::int64_t queries, std::int64_t keys) {
  return arange(0, static_cast<int>(queries)).reshape({1, 1, -1, 1}) >=
         arange(0, static_cast<int>(keys)).reshape({1, 1, 1, -1});
}

Tensor attend_slowly(const Tensors& x, const AttentionOptions& options) {
  const double scale = options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(x[0].shape()[3]));
  Tensor scores = matmul(x[0], x[1], {.transpose_b = true}) * scale;
  Tensor allowed = ones(scores.shape(), boolean);
  if (!options.mask.is_empty_handle() && options.mask.dtype() != boolean) scores = scores + options.mask;
  if (!options.mask.is_empty_handle() && options.mask.dtype() == boolean) allowed = allowed && options.mask;
  if (options.causal) allowed = allowed && causal_mask(scores.shape()[2], scores.shape()[3]);
  const Tensor any = allowed.any({3}, {.keep_dims = true});
  const Tensor weights = softmax(where(allowed, scores, full_like(scores, -1e30)));
  return matmul(where(allowed && any, weights, zeros_like(weights)), x[2]);
}

Tensor swap_axes(const Tensor& x) { return x.transpose({0, 2, 1, 3}); }

void expect_near(const Tensor& a, const Tensor& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  const auto x = a.cast(f64).to_vector<double>(), y = b.cast(f64).to_vector<double>();
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], tolerance) << what << " " << i;
}

std::string text_of(const Sizes& s) {
  return Shape({s.batch, s.heads, s.queries, s.keys, s.depth, s.columns}).to_string();
}

void expect_alike(const Sizes& s, const AttentionOptions& options, DType dtype, double tolerance) {
  const Tensors x = make_operands(s, dtype);
  const auto both = [&](const TensorFunction& f) {
    GradientTape tape;
    for (const Tensor& source : x) tape.watch(source);
    const Tensor y = f(x);
    Tensors all = tape.gradient((y * varied(y.shape(), 0.5, 1.5, 0.7).cast(dtype)).sum(), x);
    all.push_back(y);
    return all;
  };
  const Tensors slow = both([&](const Tensors& at) { return attend_slowly(at, options); });
  for (const bool first : {false, true}) {
    AttentionOptions with = options;
    with.sequence_first = first;
    const Tensors quick = both([&](const Tensors& at) {
      if (!first) return scaled_dot_product_attention(at[0], at[1], at[2], with);
      return swap_axes(scaled_dot_product_attention(swap_axes(at[0]), swap_axes(at[1]), swap_axes(at[2]), with));
    });
    const std::string what = text_of(s) + (first ? " sequence first, " : ", ");
    for (std::size_t i = 0; i < 4; ++i) expect_near(quick[i], slow[i], tolerance, what + std::to_string(i));
  }
}

constexpr Sizes kSizes[] = {{1, 1, 1, 1, 1, 1}, {2, 3, 5, 7, 4, 3}, {1, 2, 70, 65, 9, 17}, {2, 1, 1, 130, 8, 8}};

TEST(Attention, IsWhatItsPartsAre) {
  for (const Sizes& s : kSizes)
    for (const bool causal : {false, true}) {
      expect_alike(s, {.causal = causal}, f64, 1e-10);
      expect_alike(s, {.causal = causal, .scale = 0.3}, f32, 2e-4);
      // The first query attends to nothing.
      const Tensor keep = (arange(0, static_cast<int>(s.queries * s.keys)).reshape({1, 1, s.queries, s.keys}) % 3) != 0;
      const Tensor some = keep && (arange(0, static_cast<int>(s.queries)).reshape({1, 1, -1, 1}) > 0);
      expect_alike(s, {.mask = some, .causal = causal}, f64, 1e-10);
      expect_alike(s, {.mask = varied({s.batch, 1, 1, s.keys}, -2, 2, 0.2), .causal = causal}, f64, 1e-10);
    }
}

TEST(Attention, GradientsAgreeWithDifferences) {
  expect_gradients([](const Tensors& x) { return scaled_dot_product_attention(x[0], x[1], x[2], {.causal = true}); },
                   make_operands({1, 2, 3, 4, 3, 2}), false);
}

TEST(Attention, GivesTheSameBitsWithTwoThreads) {
  const int before = num_threads();
  const Tensors x = make_operands({3, 5, 100, 90, 16, 16}, f32);
  std::vector<std::vector<float>> results[2];
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    GradientTape tape;
    for (const Tensor& source : x) tape.watch(source);
    const Tensor y = scaled_dot_product_attention(x[0], x[1], x[2]);
    results[threads - 1].push_back(y.to_vector<float>());
    for (const Tensor& g : tape.gradient(y, x)) results[threads - 1].push_back(g.to_vector<float>());
  }
  EXPECT_EQ(results[0], results[1]);
  set_num_threads(before);
}

TEST(Attention, NeverHoldsAllScores) {
  const Tensors x = make_operands({1, 1, 2048, 2048, 8, 8}, f32);
  const Budget budget("attention", 4 << 20);  // The scores alone would be 16 MiB.
  const BudgetScope use(budget);
  GradientTape tape;
  tape.watch(x[0]);
  const Tensor y = scaled_dot_product_attention(x[0], x[1], x[2]);
  EXPECT_EQ(tape.gradient(y, x[0]).shape(), x[0].shape());
}

TEST(Attention, RefusedAnywhereChangesNothing) {
  const auto attend = [](const Tensors& x) { return scaled_dot_product_attention(x[0], x[1], x[2]); };
  expect_refused_anywhere("attention", attend, make_operands({2, 2, 5, 6, 4, 4}), 50);
}

TEST(Attention, RefusesWhatDoesNotGoTogether) {
  const Tensor q = zeros({2, 3, 4, 8}), k = zeros({2, 3, 5, 8}), v = zeros({2, 3, 5, 6});
  expect_refusal([&] { scaled_dot_product_attention(q, k, zeros({2, 3, 4, 6})); }, "k [2, 3, 5, 8] and v [2, 3, 4, 6]");
  expect_refusal([&] { scaled_dot_product_attention(q, zeros({2, 3, 5, 7}), v); }, "do not match");
  expect_refusal([&] { scaled_dot_product_attention(zeros({2, 3, 8}), k, v); }, "q [2, 3, 8]");
  expect_refusal([&] { scaled_dot_product_attention(q, k, v, {.sequence_first = true}); }, "queries, heads, depth]");
  expect_refusal([&] { scaled_dot_product_attention(q, k.cast(f64), v); }, "k float64");
  expect_refusal([&] { scaled_dot_product_attention(q.cast(f16), k.cast(f16), v.cast(f16)); }, "float16");
  expect_refusal(
      [&] {
        scaled_dot_product_attention(q, k, v, {.mask = zeros({2, 3, 4, 4}, boolean)});
      },
      "the mask is [2, 3, 4, 4]");
  expect_refusal(
      [&] {
        scaled_dot_product_attention(q, k, v, {.mask = zeros({4, 5}, boolean)});
      },
      "the mask is [4, 5]");
  expect_refusal(
      [&] {
        scaled_dot_product_attention(q, k, v, {.mask = zeros({1, 1, 4, 5}, i32)});
      },
      "the mask is int32");
  expect_refusal([&] { scaled_dot_product_attention(q, k, v, {.scale = INFINITY}); }, "scale is inf");
}

TEST(Attention, HasNoGradientForItsMaskAndNoSecondOne) {
  const Tensors x = make_operands({1, 1, 2, 3, 2, 2});
  const Tensor mask = zeros({1, 1, 2, 3}, f64);
  GradientTape tape;
  tape.watch(mask);
  EXPECT_THROW(tape.gradient(scaled_dot_product_attention(x[0], x[1], x[2], {.mask = mask}), mask), Unsupported);
  GradientTape outer;
  outer.watch(x[0]);
  Tensor first;
  {
    GradientTape inner;
    inner.watch(x[0]);
    first = inner.gradient(scaled_dot_product_attention(x[0], x[1], x[2]), x[0]);
  }
  EXPECT_THROW(outer.gradient(first, x[0]), Unsupported);
}

}  // namespace
}  // namespace plimsoll
