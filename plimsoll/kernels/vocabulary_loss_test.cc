#include "plimsoll/kernels/vocabulary_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/kernel_testing.h"
#include "plimsoll/kernels/loss.h"
#include "plimsoll/kernels/matmul.h"
#include "plimsoll/kernels/reduce.h"

namespace plimsoll {
namespace {

double value_of(std::int64_t i) { return 0.3 * std::sin(double(i) * 1.7 + 0.3); }
double weight_of(std::int64_t i) { return 0.25 * std::cos(double(i) * 0.9 + 0.1); }

struct Problem {
  template <class T>
  static Problem of(const VocabularySizes& s) {
    return {s,
            TestTensor::from<T>({s.rows, s.inner}, value_of),
            TestTensor::from<T>({s.inner, s.classes}, weight_of),
            TestTensor::from<T>({s.classes}, value_of),
            TestTensor::from<std::int32_t>({s.rows}, [&](std::int64_t i) { return double(i * 7919 % s.classes); }),
            TestTensor::from<T>({s.rows}, [](std::int64_t i) { return 0.01 * double(1 + i % 3); })};
  }
  VocabularySizes sizes;
  TestTensor x, w, bias, labels, upstream;
};

class Scratch {
 public:
  explicit Scratch(std::size_t bytes) : bytes_(bytes), memory_(bytes + 64) {}
  std::span<std::byte> span() {
    const auto at = reinterpret_cast<std::uintptr_t>(memory_.data());
    return {memory_.data() + (64 - at % 64) % 64, bytes_};
  }

 private:
  const std::size_t bytes_;
  std::vector<std::byte> memory_;
};

struct Results {
  TestTensor losses, best, dx, dw, db;
};

Results results_for(const Problem& p, DType dtype) {
  return {TestTensor(dtype, p.upstream.shape()), TestTensor(i64, p.upstream.shape()), TestTensor(dtype, p.x.shape()),
          TestTensor(dtype, p.w.shape()), TestTensor(dtype, p.bias.shape())};
}

void product(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out, MatmulFlags flags,
             const MatmulEpilogue& epilogue = {}) {
  Scratch scratch(matmul_scratch_bytes(a.shape(), b.shape(), out.dtype(), flags));
  matmul(a, b, out, flags, scratch.span(), epilogue);
}

Results whole(Problem& p, DType dtype, bool biased) {
  Results r = results_for(p, dtype);
  TestTensor logits(dtype, {p.sizes.rows, p.sizes.classes});
  const ConstTensorView bias = p.bias.view();
  product(p.x.view(), p.w.view(), logits.view(), {}, {.bias = biased ? &bias : nullptr});
  argmax(logits.view(), 1, r.best.view());
  sparse_softmax_cross_entropy(logits.view(), p.labels.view(), {.loss = r.losses.view()});
  sparse_softmax_cross_entropy(logits.view(), p.labels.view(),
                               {.gradient = logits.view(), .upstream = p.upstream.view()});
  reduce(ReduceOp::sum, logits.view(), 1, r.db.view());
  product(p.x.view(), logits.view(), r.dw.view(), {.transpose_a = true});
  product(logits.view(), p.w.view(), r.dx.view(), {.transpose_b = true});
  return r;
}

Results in_slices(Problem& p, DType dtype, bool biased) {
  Results r = results_for(p, dtype);
  TestTensor statistics(f64, {p.sizes.rows, 2});
  const ConstTensorView bias = p.bias.view();
  const VocabularyOperands in = {p.x.view(), p.w.view(), biased ? &bias : nullptr, p.labels.view()};
  Scratch first(vocabulary_loss_scratch_bytes(p.sizes, dtype)),
      second(vocabulary_gradient_scratch_bytes(p.sizes, dtype));
  vocabulary_loss(in, {r.losses.view(), statistics.view(), r.best.view()}, first.span());
  const std::size_t before = heap_allocations();  // The threads run by now.
  vocabulary_loss_gradient(in, statistics.view(), p.upstream.view(), {r.dw.view(), r.dx.view(), r.db.view()},
                           second.span());
  EXPECT_EQ(heap_allocations(), before);
  return r;
}

void expect_same(TestTensor& a, TestTensor& b, const char* what) {
  ASSERT_EQ(a.view().nbytes(), b.view().nbytes());
  EXPECT_EQ(std::memcmp(a.view().bytes(), b.view().bytes(), a.view().nbytes()), 0) << what;
}

template <class T>
void expect_same_bits(const VocabularySizes& sizes) {
  SCOPED_TRACE(testing::Message() << sizes.rows << " rows, " << sizes.inner << " inner, " << sizes.classes);
  constexpr DType dtype = kDTypeOf<T>;
  ASSERT_TRUE(is_sliceable(sizes, dtype));
  Problem p = Problem::of<T>(sizes);
  for (const bool biased : {true, false}) {
    Results expected = whole(p, dtype, biased), made = in_slices(p, dtype, biased);
    expect_same(made.losses, expected.losses, "losses");
    expect_same(made.best, expected.best, "argmax");
    expect_same(made.dx, expected.dx, "dx");
    expect_same(made.dw, expected.dw, "dw");
    if (biased) expect_same(made.db, expected.db, "db");
  }
}

TEST(VocabularyLoss, GivesTheBitsOfTheWhole) {
  const int before = num_threads();
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    expect_same_bits<float>({.rows = 130, .inner = 64, .classes = 5000});
    expect_same_bits<float>({.rows = 300, .inner = 33, .classes = 4099});
    expect_same_bits<float>({.rows = 40, .inner = 300, .classes = 1030});
    expect_same_bits<double>({.rows = 70, .inner = 48, .classes = 2053});
  }
  set_num_threads(before);
}

TEST(VocabularyLoss, MarksRowsWhoseLabelIsNoClass) {
  Problem p = Problem::of<float>({.rows = 70, .inner = 64, .classes = 3000});
  p.labels.view().data<std::int32_t>()[5] = 3000;
  p.labels.view().data<std::int32_t>()[69] = -1;
  Results r = in_slices(p, f32, true);
  EXPECT_TRUE(std::isnan(r.losses.view().data<float>()[5]));
  EXPECT_TRUE(std::isnan(r.losses.view().data<float>()[69]));
  EXPECT_FALSE(std::isnan(r.losses.view().data<float>()[6]));
  EXPECT_TRUE(std::isnan(r.db.view().data<float>()[0]));
}

TEST(VocabularyLoss, TakesAFractionOfTheLogits) {
  const VocabularySizes sizes = {.rows = 2048, .inner = 64, .classes = 50'000};
  ASSERT_TRUE(is_sliceable(sizes, f32));
  const std::size_t logits = 4u * 2048 * 50'000;
  EXPECT_LT(vocabulary_loss_scratch_bytes(sizes, f32), logits / 16);
  EXPECT_LT(vocabulary_gradient_scratch_bytes(sizes, f32), logits / 16);
}

TEST(VocabularyLoss, LeavesSmallAndHalfProductsWhole) {
  EXPECT_FALSE(is_sliceable({.rows = 4, .inner = 64, .classes = 50'000}, f32));
  EXPECT_FALSE(is_sliceable({.rows = 512, .inner = 64, .classes = 1000}, f32));
  EXPECT_FALSE(is_sliceable({.rows = 512, .inner = 64, .classes = 50'000}, f16));
}

}  // namespace
}  // namespace plimsoll
