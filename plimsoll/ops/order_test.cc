#include "plimsoll/ops/order.h"

#include <gmock/gmock.h>

#include <limits>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/refusal_testing.h"

namespace plimsoll {
namespace {

using ::testing::ElementsAre;

Tensor order_sample() { return constant({{3.f, 1.f, 2.f}, {4.f, 6.f, 6.f}}); }

TEST(Argmax, GivesTheFirstPositionAlongAnAxis) {
  EXPECT_EQ(order_sample().argmax().dtype(), i64);
  EXPECT_THAT(order_sample().argmax(-1).to_vector<std::int64_t>(), ElementsAre(0, 1));
  EXPECT_THAT(order_sample().argmax(0).to_vector<std::int64_t>(), ElementsAre(1, 1, 1));
  EXPECT_THAT(order_sample().argmin(1).to_vector<std::int64_t>(), ElementsAre(1, 0));
  EXPECT_THAT(order_sample().cast(f16).argmin(0).to_vector<std::int64_t>(), ElementsAre(0, 0, 0));
  EXPECT_THAT(constant({5, 7, 7}).argmax().to_vector<std::int64_t>(), ElementsAre(1));
  EXPECT_EQ(constant({5, 7, 7}).argmax().shape(), Shape::scalar());
  EXPECT_EQ(zeros({0, 3}).argmax(1).shape(), Shape({0}));
}

TEST(Argmax, RefusesEmptyAxesAndThoseThatAreNotThere) {
  EXPECT_EQ(refusal([] {
              zeros({2, 0}).argmax(1);
            }),
            "argmax: axis 1 of shape [2, 0] is empty; there is nothing to choose from");
  EXPECT_THROW(zeros({2, 0}).argmin(), InvalidArgument);
  EXPECT_THROW(order_sample().argmax(2), InvalidArgument);
  EXPECT_THROW(constant(1.f).argmax(), InvalidArgument);
}

TEST(TopKTest, GivesTheLargestFirst) {
  const auto [values, indices] = top_k(order_sample(), 2);
  EXPECT_EQ(values.shape(), Shape({2, 2}));
  EXPECT_EQ(indices.dtype(), i64);
  EXPECT_THAT(values.to_vector<float>(), ElementsAre(3, 2, 6, 6));
  EXPECT_THAT(indices.to_vector<std::int64_t>(), ElementsAre(0, 2, 1, 2));
  EXPECT_THAT(top_k(constant({1, 9, 5}), 3).values.to_vector<int>(), ElementsAre(9, 5, 1));
  EXPECT_THAT(top_k(order_sample().cast(bf16)).values.cast(f32).to_vector<float>(), ElementsAre(3, 6));
}

TEST(TopKTest, OfNothingIsNothing) {
  EXPECT_EQ(top_k(order_sample(), 0).values.shape(), Shape({2, 0}));
  EXPECT_EQ(top_k(zeros({0, 4}), 2).indices.shape(), Shape({0, 2}));
  EXPECT_EQ(top_k(zeros({4, 0}), 0).indices.shape(), Shape({4, 0}));
}

TEST(TopKTest, RefusesMoreThanThereAre) {
  EXPECT_EQ(refusal([] { top_k(order_sample(), 4); }),
            "top_k: k is 4, the last axis of shape [2, 3] has 3; give 0 to 3");
  EXPECT_THROW(top_k(order_sample(), -1), InvalidArgument);
  EXPECT_THROW(top_k(constant(1.f), 1), InvalidArgument);
}

TEST(SortTest, SortsAlongAnyAxis) {
  EXPECT_THAT(sort(order_sample()).to_vector<float>(), ElementsAre(1, 2, 3, 4, 6, 6));
  EXPECT_THAT(sort(order_sample(), 1, {.descending = true}).to_vector<float>(), ElementsAre(3, 2, 1, 6, 6, 4));
  EXPECT_THAT(sort(order_sample(), 0, {.descending = true}).to_vector<float>(), ElementsAre(4, 6, 6, 3, 1, 2));
  EXPECT_THAT(argsort(order_sample()).to_vector<std::int64_t>(), ElementsAre(1, 2, 0, 0, 1, 2));
  EXPECT_THAT(argsort(order_sample(), 0, {.descending = true}).to_vector<std::int64_t>(),
              ElementsAre(1, 1, 1, 0, 0, 0));
  const Tensor x = constant({3, 0, 1, 2, 2, 1, 0, 3}).reshape({2, 2, 2});
  EXPECT_THAT(sort(x, 1).to_vector<int>(), ElementsAre(1, 0, 3, 2, 0, 1, 2, 3));
  EXPECT_THAT(sort(x.cast(f16), 1).cast(i32).to_vector<int>(), ElementsAre(1, 0, 3, 2, 0, 1, 2, 3));
}

TEST(SortTest, TakesNaNForTheLargest) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(argsort(constant({2.f, nan, 1.f})).to_vector<std::int64_t>(), ElementsAre(2, 0, 1));
}

TEST(SortTest, OfNothingIsNothing) {
  EXPECT_EQ(sort(zeros({0, 3})).shape(), Shape({0, 3}));
  EXPECT_EQ(argsort(zeros({3, 0, 2}), 0).shape(), Shape({3, 0, 2}));
}

TEST(SortTest, RefusesAxesThatAreNotThere) {
  EXPECT_THROW(sort(order_sample(), 2), InvalidArgument);
  EXPECT_THROW(argsort(constant(1)), InvalidArgument);
  EXPECT_THROW(sort(Tensor()), Error);
}

TEST(CumsumTest, SumsAlongAnAxis) {
  const Tensor x = constant({{1, 2, 3}, {4, 5, 6}});
  EXPECT_THAT(cumsum(x).to_vector<int>(), ElementsAre(1, 2, 3, 5, 7, 9));
  EXPECT_THAT(cumsum(x, 1).to_vector<int>(), ElementsAre(1, 3, 6, 4, 9, 15));
  EXPECT_THAT(cumsum(x, -1, {.exclusive = true}).to_vector<int>(), ElementsAre(0, 1, 3, 0, 4, 9));
  EXPECT_THAT(cumsum(x, 1, {.reverse = true}).to_vector<int>(), ElementsAre(6, 5, 3, 15, 11, 6));
  EXPECT_THAT(cumsum(x, 1, {.exclusive = true, .reverse = true}).to_vector<int>(), ElementsAre(5, 3, 0, 11, 6, 0));
  EXPECT_THAT(cumsum(x.cast(f16), 1).cast(i32).to_vector<int>(), ElementsAre(1, 3, 6, 4, 9, 15));
  EXPECT_EQ(cumsum(zeros({0, 2})).shape(), Shape({0, 2}));
}

TEST(CumsumTest, RefusesBooleansAndAxesThatAreNotThere) {
  EXPECT_THROW(cumsum(constant({true, false})), InvalidArgument);
  EXPECT_THROW(cumsum(zeros({2}), 1), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
