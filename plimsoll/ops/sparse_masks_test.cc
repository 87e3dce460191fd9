// Boolean tensors as masks, together: comparisons make them, logic combines them, selections and reductions read them.
#include <gmock/gmock.h>
#include <rapidcheck.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/reduce.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;

TEST(BooleanTensors, TakeAByteEach) {
  const Tensor mask = constant({true, false, true});
  EXPECT_EQ(mask.dtype(), boolean);
  EXPECT_EQ(mask.nbytes(), 3u);
  EXPECT_EQ((mask && !mask).dtype(), boolean);
}

TEST(BooleanTensors, SelectBooleansThemselves) {
  const Tensor mask = constant({true, false, true}), other = constant({false, false, true});
  EXPECT_THAT(where(mask, other, !other).to_vector<bool>(), ElementsAre(false, true, true));
  EXPECT_THAT(boolean_mask(other, mask).to_vector<bool>(), ElementsAre(false, true));
  EXPECT_THAT((mask == other).to_vector<bool>(), ElementsAre(false, true, true));
  EXPECT_THAT(logical_xor(mask, other).to_vector<bool>(), ElementsAre(true, false, false));
  EXPECT_THROW(mask && constant({1, 0, 1}), InvalidArgument);
  EXPECT_THROW(where(constant({1, 0, 1}), other, other), InvalidArgument);
}

TEST(BooleanTensors, AreReducedOverAxesAndOverNothing) {
  const Tensor mask = constant({{true, false}, {true, true}});
  EXPECT_THAT(mask.any({0}).to_vector<bool>(), ElementsAre(true, true));
  EXPECT_THAT(mask.all({0}).to_vector<bool>(), ElementsAre(true, false));
  EXPECT_THAT(mask.all({1}, {.keep_dims = true}).to_vector<bool>(), ElementsAre(false, true));
  const Tensor none = zeros({0, 2}, boolean);
  EXPECT_THAT(none.any({0}).to_vector<bool>(), ElementsAre(false, false));
  EXPECT_THAT(none.all({0}).to_vector<bool>(), ElementsAre(true, true));
  EXPECT_THROW(constant({1, 0}).any(), InvalidArgument);
}

TEST(BooleanTensorsProperty, FollowDeMorgan) {
  EXPECT_TRUE(rc::check([] {
    const auto left = *rc::gen::container<std::vector<bool>>(17, rc::gen::arbitrary<bool>()),
               right = *rc::gen::container<std::vector<bool>>(17, rc::gen::arbitrary<bool>());
    const Tensor a = from_vector(left), b = from_vector(right);
    RC_ASSERT((!(a && b)).to_vector<bool>() == (!a || !b).to_vector<bool>());
    RC_ASSERT(a.any().item<bool>() == !(!a).all().item<bool>());
    RC_ASSERT(boolean_mask(a, a).all().item<bool>());
    RC_ASSERT(boolean_mask(b, a).size() == static_cast<std::size_t>(std::count(left.begin(), left.end(), true)));
    RC_ASSERT(where(a, a, b).to_vector<bool>() == (a || b).to_vector<bool>());
  }));
}

}  // namespace
}  // namespace plimsoll
