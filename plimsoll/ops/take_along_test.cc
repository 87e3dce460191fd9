#include "plimsoll/ops/take_along.h"

#include <gmock/gmock.h>

#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/execute.h"

namespace plimsoll {
namespace {

using ::testing::ElementsAre;

TEST(TakeAlong, PicksByPositionAlongTheAxis) {
  const Tensor x = constant({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  EXPECT_THAT(execute(TakeAlong(1), x, constant({{2, 2}, {0, 1}})).to_vector<float>(), ElementsAre(3, 3, 4, 5));
  const Tensor rows = constant({{1, 0, 1}});
  EXPECT_THAT(execute(TakeAlong(0), x, rows.cast(i64)).to_vector<float>(), ElementsAre(4, 2, 6));
  EXPECT_EQ(execute(TakeAlong(1), x, zeros({2, 0}, i32)).shape(), Shape({2, 0}));
}

TEST(TakeAlong, ReadsZeroOutside) {
  const Tensor x = constant({{1, 2}});
  EXPECT_THAT(execute(TakeAlong(1), x, constant({{2, -1, 1}})).to_vector<int>(), ElementsAre(0, 0, 2));
}

TEST(PlaceAlong, AddsByPositionAlongTheAxis) {
  const Tensor updates = constant({{1.f, 2.f}, {3.f, 4.f}});
  const Tensor y = execute(PlaceAlong(1, 3), updates, constant({{2, 2}, {0, 1}}));
  EXPECT_EQ(y.shape(), Shape({2, 3}));
  EXPECT_THAT(y.to_vector<float>(), ElementsAre(0, 0, 3, 3, 4, 0));
  EXPECT_THAT(
      execute(PlaceAlong(0, 2), constant({{5, 6, 7}}).cast(f16), constant({{1, 0, 1}})).cast(i32).to_vector<int>(),
      ElementsAre(0, 6, 0, 5, 0, 7));
}

TEST(PlaceAlong, LeavesOutWhatIsOutside) {
  EXPECT_THAT(execute(PlaceAlong(1, 2), constant({{1, 2, 3}}), constant({{-1, 1, 2}})).to_vector<int>(),
              ElementsAre(0, 2));
  EXPECT_THAT(execute(PlaceAlong(1, 2), zeros({1, 0}), zeros({1, 0}, i32)).to_vector<float>(), ElementsAre(0, 0));
}

}  // namespace
}  // namespace plimsoll
