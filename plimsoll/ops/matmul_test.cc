#include "plimsoll/ops/matmul.h"

#include <gmock/gmock.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/refusal_testing.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

const std::vector<float> kProduct = {58, 64, 139, 154};  // [[1 2 3] [4 5 6]] times [[7 8] [9 10] [11 12]].

TEST(Matmul, MultipliesWithEveryTransposition) {
  const Tensor a = constant({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}), at = constant({{1.f, 4.f}, {2.f, 5.f}, {3.f, 6.f}});
  const Tensor b = constant({{7.f, 8.f}, {9.f, 10.f}, {11.f, 12.f}}),
               bt = constant({{7.f, 9.f, 11.f}, {8.f, 10.f, 12.f}});
  EXPECT_EQ(matmul(a, b).to_vector<float>(), kProduct);
  EXPECT_EQ(matmul(at, b, {.transpose_a = true}).to_vector<float>(), kProduct);
  EXPECT_EQ(matmul(a, bt, {.transpose_b = true}).to_vector<float>(), kProduct);
  EXPECT_EQ(matmul(at, bt, {.transpose_a = true, .transpose_b = true}).to_vector<float>(), kProduct);
  EXPECT_EQ(matmul(a, b).shape(), Shape({2, 2}));
}

TEST(Matmul, MultipliesHalvesAndDoubles) {
  const Tensor a = constant({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}), b = constant({{7.f, 8.f}, {9.f, 10.f}, {11.f, 12.f}});
  for (const DType dtype : {f16, bf16, f64}) {
    const Tensor product = matmul(a.cast(dtype), b.cast(dtype));
    EXPECT_EQ(product.dtype(), dtype);
    EXPECT_THAT(product.cast(f32).to_vector<float>(), ElementsAreArray(kProduct)) << dtype;
  }
}

TEST(Matmul, SumsHalvesInFloats) {
  // 2048 + 1 is not an f16, so that a sum in f16 would stay at 2048.
  EXPECT_EQ(matmul(ones({1, 2050}, f16), ones({2050, 1}, f16)).item<float>(), 2050.f);
}

TEST(Matmul, BroadcastsBatches) {
  const Tensor a = arange(0.f, 12.f).reshape({2, 1, 2, 3}), b = arange(0.f, 18.f).reshape({3, 3, 2});
  const Tensor y = matmul(a, b);
  ASSERT_EQ(y.shape(), Shape({2, 3, 2, 2}));
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t j = 0; j < 3; ++j)
      for (std::int64_t r = 0; r < 2; ++r)
        for (std::int64_t c = 0; c < 2; ++c) {
          float sum = 0;
          for (std::int64_t k = 0; k < 3; ++k) sum += a.at<float>({i, 0, r, k}) * b.at<float>({j, k, c});
          EXPECT_EQ(y.at<float>({i, j, r, c}), sum);
        }
}

TEST(Matmul, TakesManyMatricesTimesOneForATallOne) {
  const Tensor a = arange(0.f, 24.f).reshape({2, 3, 4}), b = arange(0.f, 8.f).reshape({4, 2});
  const Tensor y = matmul(a, b), tall = matmul(a.reshape({6, 4}), b);
  EXPECT_EQ(y.shape(), Shape({2, 3, 2}));
  EXPECT_EQ(y.to_vector<float>(), tall.to_vector<float>());
  EXPECT_EQ(matmul(a.cast(f16), b.cast(f16)).cast(f32).to_vector<float>(), tall.to_vector<float>());
}

TEST(Matmul, TakesVectorsForRowsAndColumns) {
  const Tensor m = constant({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}), v = constant({1.f, 0.f, 2.f}),
               w = constant({1.f, 2.f});
  EXPECT_EQ(matmul(m, v).shape(), Shape({2}));
  EXPECT_THAT(matmul(m, v).to_vector<float>(), ElementsAre(7, 16));
  EXPECT_EQ(matmul(w, m).shape(), Shape({3}));
  EXPECT_THAT(matmul(w, m).to_vector<float>(), ElementsAre(9, 12, 15));
  EXPECT_EQ(matmul(v, v).shape(), Shape::scalar());
  EXPECT_EQ(matmul(v, v).item<float>(), 5);
  EXPECT_EQ(matmul(ones({4, 2, 3}), v).shape(), Shape({4, 2}));
  EXPECT_EQ(matmul(w, ones({4, 2, 3})).shape(), Shape({4, 3}));
}

TEST(Matmul, OfNothingIsNothingOrZeros) {
  EXPECT_EQ(matmul(zeros({0, 3}), zeros({3, 2})).shape(), Shape({0, 2}));
  EXPECT_THAT(matmul(zeros({2, 0}), zeros({0, 1})).to_vector<float>(), ElementsAre(0, 0));
  EXPECT_EQ(matmul(zeros({2, 0}, f16), zeros({0, 1}, f16)).cast(f32).to_vector<float>(), std::vector<float>(2, 0.f));
  EXPECT_EQ(matmul(zeros({0, 2, 3}), zeros({3, 4})).shape(), Shape({0, 2, 4}));
  EXPECT_EQ(matmul(zeros({5, 0, 2, 3}), zeros({1, 3, 4})).shape(), Shape({5, 0, 2, 4}));
}

TEST(Matmul, RefusesInnerSizesThatDiffer) {
  EXPECT_EQ(refusal([] {
              matmul(zeros({8, 32}), zeros({16, 4}));
            }),
            "matmul: inner sizes differ: left [8, 32] has 32, right [16, 4] has 16");
  EXPECT_EQ(refusal([] {
              matmul(zeros({8, 32}), zeros({16, 4}), {.transpose_a = true, .transpose_b = true});
            }),
            "matmul: inner sizes differ: left [8, 32] transposed has 8, right [16, 4] transposed has 4");
}

TEST(Matmul, RefusesWhatDoesNotGoTogether) {
  EXPECT_EQ(
      refusal([] {
        matmul(zeros({2, 4, 3}), zeros({5, 3, 4}));
      }),
      "matmul: batches do not broadcast: left [2, 4, 3], right [5, 3, 4]; all axes but the last two must be equal "
      "or 1");
  EXPECT_EQ(refusal([] { matmul(constant(2.f), zeros({3, 4})); }), "matmul: left is a scalar; use * to multiply by it");
  EXPECT_EQ(refusal([] {
              matmul(zeros({3}), zeros({3, 4}), {.transpose_a = true});
            }),
            "matmul: left [3] is a vector, which has no transpose; leave transpose_a out");
  EXPECT_EQ(refusal([] {
              matmul(zeros({3, 3}), zeros({3, 3}, f64));
            }),
            "matmul: left [3, 3] is float32, right [3, 3] is float64; cast one with .cast()");
  EXPECT_THROW(matmul(zeros({3, 3}, boolean), zeros({3, 3}, boolean)), InvalidArgument);
  EXPECT_THROW(matmul(Tensor(), zeros({3, 3})), Error);
}

TEST(Matmul, MultipliesIntegers) {
  const Tensor a = constant({{1, 2}, {3, 4}});
  EXPECT_THAT(matmul(a, a).to_vector<int>(), ElementsAre(7, 10, 15, 22));
  EXPECT_THAT(matmul(a.cast(i64), a.cast(i64)).to_vector<std::int64_t>(), ElementsAre(7, 10, 15, 22));
  EXPECT_EQ(refusal([&] { matmul(a.cast(u8), a.cast(u8)); }),
            "matmul: is not defined for uint8; cast the operand to another dtype first");
}

TEST(Matmul, LeavesNothingBehind) {
  const Tensor a = ones({64, 64}, f16);
  const MemoryInfo before = memory();
  matmul(a, a);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
}

TEST(Dot, SumsProductsOfVectors) {
  EXPECT_EQ(dot(constant({1.f, 2.f, 3.f}), constant({4.f, 5.f, 6.f})).item<float>(), 32);
  EXPECT_EQ(refusal([] {
              dot(zeros({2, 2}), zeros({2}));
            }),
            "dot: left is [2, 2], right [2]; give two vectors, or use matmul");
}

TEST(Outer, GivesAllProductsOfVectors) {
  const Tensor y = outer(constant({1, 2}), constant({3, 4, 5}));
  EXPECT_EQ(y.shape(), Shape({2, 3}));
  EXPECT_THAT(y.to_vector<int>(), ElementsAre(3, 4, 5, 6, 8, 10));
  EXPECT_THROW(outer(zeros({2, 2}), zeros({2})), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
