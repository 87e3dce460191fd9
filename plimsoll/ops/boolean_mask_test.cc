#include <gmock/gmock.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/recording_testing.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

TEST(BooleanMask, KeepsElementsWhereTheMaskIsTrue) {
  const Tensor x = constant({{1.f, 2.f}, {3.f, 4.f}});
  EXPECT_THAT(boolean_mask(x, x > 2.f).to_vector<float>(), ElementsAre(3, 4));
  EXPECT_EQ(boolean_mask(x, x > 2.f).shape(), Shape({2}));
  const Tensor rows = boolean_mask(x, constant({false, true}));
  EXPECT_EQ(rows.shape(), Shape({1, 2}));
  EXPECT_THAT(rows.to_vector<float>(), ElementsAre(3, 4));
}

TEST(BooleanMask, TakesMasksOfSeveralAxes) {
  const Tensor x = arange(0, 8).reshape({2, 2, 2});
  const Tensor y = boolean_mask(x, constant({{true, false}, {false, true}}));
  EXPECT_EQ(y.shape(), Shape({2, 2}));
  EXPECT_THAT(y.to_vector<int>(), ElementsAre(0, 1, 6, 7));
  for (std::size_t i = 0; i < kNumDTypes; ++i)
    EXPECT_EQ(boolean_mask(x.cast(static_cast<DType>(i)), x > 3).dtype(), static_cast<DType>(i));
}

TEST(BooleanMask, MayKeepNothing) {
  const Tensor x = ones({2, 3});
  EXPECT_THAT(boolean_mask(x, x > 2.f).to_vector<float>(), IsEmpty());
  EXPECT_EQ(boolean_mask(x, constant({false, false})).shape(), Shape({0, 3}));
  EXPECT_EQ(boolean_mask(zeros({0, 3}), zeros({0}, boolean)).shape(), Shape({0, 3}));
}

TEST(BooleanMask, RefusesMasksThatDoNotFit) {
  const Tensor x = zeros({2, 3}), mask = constant({true, true, true});
  EXPECT_THAT([&] { boolean_mask(x, mask); },
              ThrowsMessage<InvalidArgument>(
                  "boolean_mask: mask [3] against x [2, 3]; the mask's sizes must be x's first ones"));
  EXPECT_THROW(boolean_mask(x, constant(true)), InvalidArgument);
  EXPECT_THROW(boolean_mask(x, zeros({2, 3, 1}, boolean)), InvalidArgument);
  EXPECT_THAT([&] { boolean_mask(x, x); }, ThrowsMessage<InvalidArgument>(HasSubstr("the mask is float32")));
  EXPECT_THROW(boolean_mask(Tensor(), mask), InvalidArgument);
  EXPECT_THROW(boolean_mask(x, Tensor()), InvalidArgument);
  mask.dispose();
  EXPECT_THAT([&] { boolean_mask(x, mask); }, ThrowsMessage<Disposed>(HasSubstr("boolean_mask: mask is disposed")));
}

TEST(BooleanMask, SendsItsGradientToWhatWasKept) {
  const Tensor mask = constant({{true, false}, {true, true}, {false, false}});
  check_linear([&](const Tensor& x) { return boolean_mask(x, mask); }, whole_numbers({3, 2, 2}));
  check_linear([&](const Tensor& x) { return boolean_mask(x, mask); }, whole_numbers({3, 2}));
}

TEST(WhereTrue, ListsPositionsInOrder) {
  const Tensor places = where_true(constant({{true, false}, {true, true}}));
  EXPECT_EQ(places.dtype(), i64);
  EXPECT_EQ(places.shape(), Shape({3, 2}));
  EXPECT_THAT(places.to_vector<std::int64_t>(), ElementsAre(0, 0, 1, 0, 1, 1));
  EXPECT_EQ(where_true(zeros({2, 2}, boolean)).shape(), Shape({0, 2}));
  EXPECT_EQ(where_true(constant(true)).shape(), Shape({1, 0}));
  EXPECT_THROW(where_true(ones({2})), InvalidArgument);
  EXPECT_THROW(where_true(Tensor()), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
