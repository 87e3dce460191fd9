#include <gmock/gmock.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/recording_testing.h"

namespace plimsoll {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Scatter, AddsRowsToZeros) {
  const Tensor updates = constant({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}});
  const Tensor y = scatter(constant({2, 0, 2}), updates, {4, 2});
  EXPECT_EQ(y.shape(), Shape({4, 2}));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(3, 4, 0, 0, 6, 8, 0, 0));
  EXPECT_THAT(scatter(constant({{0}, {1}}), constant({{7}, {8}}), {3}).to_vector<int>(), ElementsAre(7, 8, 0));
  EXPECT_THAT(scatter(constant(1), constant({7, 8}), {2, 2}).to_vector<int>(), ElementsAre(0, 0, 7, 8));
}

TEST(Scatter, AddsEveryDtypeOfNumbers) {
  for (const DType dtype : {u8, i8, i16, i32, i64, f16, bf16, f32, f64}) {
    const Tensor updates = constant({1, 2, 3}).cast(dtype), x = ones({2}, dtype);
    const Tensor y = scatter(constant({1, 0, 1}), updates, {2}), z = scatter_add(x, constant({1, 0, 1}), updates);
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_THAT(y.cast(f32).to_vector<float>(), ElementsAre(2, 4));
    EXPECT_EQ(z.dtype(), dtype);
    EXPECT_THAT(z.cast(f32).to_vector<float>(), ElementsAre(3, 5));
  }
  const Tensor truth = constant({true});
  EXPECT_THAT([&] { scatter(constant({0}), truth, {1}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("scatter: is not defined for bool")));
  EXPECT_THAT([&] { scatter_add(truth, constant({0}), truth); },
              ThrowsMessage<InvalidArgument>(HasSubstr("scatter_add: is not defined for bool")));
}

TEST(Scatter, TakesTensorsWithoutElements) {
  EXPECT_THAT(scatter(zeros({0}, i32), zeros({0, 2}), {2, 2}).to_vector<float>(), Each(0.f));
  EXPECT_EQ(scatter(zeros({0}, i32), zeros({0, 2}), {0, 2}).shape(), Shape({0, 2}));
  EXPECT_EQ(scatter(constant({0}), zeros({1, 0}), {2, 0}).shape(), Shape({2, 0}));
  EXPECT_THAT(scatter_update(ones({2}), zeros({0}, i64), zeros({0})).to_vector<float>(), ElementsAre(1, 1));
}

TEST(Scatter, RefusesOperandsThatDoNotFit) {
  const Tensor updates = ones({2, 3});
  EXPECT_THAT(
      [&] {
        scatter(constant({0, 4}), updates, {4, 3});
      },
      ThrowsMessage<InvalidArgument>("scatter: index 4 at position [1] of the indices [2] is outside of axis 0 of "
                                     "shape [4, 3], of size 4; use 0 to 3"));
  EXPECT_THAT(
      [&] {
        scatter(constant({0, 1}), updates, {4, 2});
      },
      ThrowsMessage<InvalidArgument>("scatter: updates are [2, 3]; with indices [2] they must be [2, 2]: a row "
                                     "for each index"));
  EXPECT_THROW(scatter(constant({0}), updates, {4, 3}), InvalidArgument);
  EXPECT_THROW(scatter(constant({0, 1}), updates, {4}), InvalidArgument);
  EXPECT_THROW(scatter(constant({0, 1}), updates, Shape()), InvalidArgument);
  EXPECT_THROW(scatter(constant({0, 1}), updates, {-1, 3}), InvalidArgument);
  EXPECT_THROW(scatter(constant({0.f, 1.f}), updates, {4, 3}), InvalidArgument);
  EXPECT_THROW(scatter(Tensor(), updates, {4, 3}), InvalidArgument);
  EXPECT_THROW(scatter(constant({0, 1}), Tensor(), {4, 3}), InvalidArgument);
}

TEST(Scatter, InfersUnknownSizesAndHasAGradient) {
  Recording recording;
  recording.watch([] { return scatter(constant({0}), ones({1, 2}), {4, 2}); });
  const Shape indices = {-1}, updates = {5, -1};
  const SpecRef specs[] = {{&indices, i64}, {&updates, f32}};
  SpecList out;
  recording.op(0).infer(Specs(specs), out);
  EXPECT_EQ(out[0].shape, Shape({4, -1}));
  check_linear([](const Tensor& x) { return scatter(constant({2, 0, 2}), x, {4, 2}); }, whole_numbers({3, 2}));
}

TEST(ScatterAdd, AddsToRows) {
  const Tensor x = constant({{1, 1}, {2, 2}});
  EXPECT_THAT(scatter_add(x, constant({1, 1}), constant({{1, 2}, {3, 4}})).to_vector<int>(), ElementsAre(1, 1, 6, 8));
  EXPECT_THAT(x.to_vector<int>(), ElementsAre(1, 1, 2, 2));
  const Tensor updates = whole_numbers({3, 2}), base = whole_numbers({4, 2}), indices = constant({2, 0, 2});
  const Tensor none = zeros({4, 2}), nothing = zeros({3, 2});
  check_linear([&](const Tensor& y) { return scatter_add(y, indices, nothing); }, base);
  check_linear([&](const Tensor& y) { return scatter_add(none, indices, y); }, updates);
}

TEST(ScatterUpdate, PutsRowsInPlaceOfOthersAndTheLastStays) {
  const Tensor x = constant({{1, 1}, {2, 2}, {3, 3}});
  const Tensor y = scatter_update(x, constant({1, 0, 1}), constant({{4, 5}, {6, 7}, {8, 9}}));
  EXPECT_THAT(y.to_vector<int>(), ElementsAre(6, 7, 8, 9, 3, 3));
  EXPECT_THAT(scatter_update(constant({false, false}), constant({1}), constant({true})).to_vector<bool>(),
              ElementsAre(false, true));
  const Tensor indices = constant({1, 0, 1}), none = zeros({4, 2}), nothing = zeros({3, 2});
  check_linear([&](const Tensor& z) { return scatter_update(z, indices, nothing); }, whole_numbers({4, 2}));
  check_linear([&](const Tensor& z) { return scatter_update(none, indices, z); }, whole_numbers({3, 2}));
}

TEST(ScatterUpdate, RefusesOperandsThatDoNotFit) {
  const Tensor x = zeros({3, 2}), indices = constant({1});
  EXPECT_THAT(
      [&] {
        scatter_update(x, constant({3}), zeros({1, 2}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("scatter_update: index 3 at position [0]")));
  EXPECT_THAT(
      [&] {
        scatter_update(x, indices, zeros({1, 3}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("updates are [1, 3]; with indices [1] they must be [1, 2]")));
  EXPECT_THROW(scatter_update(x, indices, zeros({1, 2}, i32)), InvalidArgument);
  EXPECT_THROW(scatter_add(x.cast(f16), indices, zeros({1, 2}, i32)), InvalidArgument);
  EXPECT_THAT([&] { scatter_add(constant(1.f), indices, zeros({1})); },
              ThrowsMessage<InvalidArgument>(HasSubstr("scatter_add: x is a scalar, which has no rows")));
  EXPECT_THROW(scatter_add(Tensor(), indices, zeros({1})), InvalidArgument);
  EXPECT_THROW(scatter_add(x, Tensor(), zeros({1})), InvalidArgument);
  EXPECT_THROW(scatter_add(x, indices, Tensor()), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
