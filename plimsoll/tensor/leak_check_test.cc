#include "plimsoll/tensor/leak_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "plimsoll/base/error.h"
#include "plimsoll/tensor/name_scope.h"
#include "plimsoll/tensor/tensor_testing.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string text_of(const LeakCheck& check) {
  try {
    check.expect_none();
  } catch (const Leak& leak) {
    return leak.what();
  }
  return "";
}

TEST(LeakCheck, FindsNothingWhereNothingIsLeft) {
  const Tensor before = some();
  const LeakCheck check;
  { const Tensor inside = some(); }
  tidy([] { some(); });
  EXPECT_EQ(check.leaked(), 0u);
  EXPECT_NO_THROW(check.expect_none());
}

TEST(LeakCheck, CountsTensorsMadeSinceAndStillAlive) {
  const LeakCheck check;
  const Tensor one = some();
  const Tensor view = make_view(one, "view", {2}, 0), copy = one;
  EXPECT_EQ(check.leaked(), 2u);
  one.dispose();
  EXPECT_EQ(check.leaked(), 1u);
  view.dispose();
  EXPECT_EQ(check.leaked(), 0u);
}

TEST(LeakCheck, IsNotDeceivedByOlderTensorsThatGo) {
  Tensor older = some();
  const LeakCheck check;
  older = some();  // Takes its record too.
  EXPECT_EQ(check.leaked(), 1u);
  older.record()->id = 1;  // As snapshots of variables do.
  EXPECT_EQ(check.leaked(), 1u);
}

TEST(LeakCheck, SeesTensorsOfAllThreads) {
  Tensor elsewhere, earlier;
  std::thread([&] { earlier = some(); }).join();
  const LeakCheck check;
  std::thread([&] { elsewhere = some(); }).join();
  EXPECT_EQ(check.leaked(), 1u);
}

TEST(LeakCheck, Nests) {
  const LeakCheck outer;
  const Tensor first = some();
  const LeakCheck inner;
  const Tensor second = some();
  EXPECT_EQ(outer.leaked(), 2u);
  EXPECT_EQ(inner.leaked(), 1u);
}

TEST(LeakCheck, ListsWhatIsLeft) {
  const LeakCheck check;
  const NameScope scope("training");
  const Tensor small = some({4}, "small"), large = some({100}, "large");
  set_name(large, "history");
  const std::string text = text_of(check);
  EXPECT_THAT(text, HasSubstr("2 tensors"));
  EXPECT_THAT(text, HasSubstr("416 bytes"));
  EXPECT_THAT(text, HasSubstr("large (100,) float32, 400 B, scope \"training\", name \"history\""));
  EXPECT_LT(text.find("large"), text.find("small"));
  EXPECT_THAT(text, Not(HasSubstr("more")));
}

TEST(LeakCheck, ListsTheLargestTenAndCountsTheRest) {
  const LeakCheck check;
  std::vector<Tensor> held;
  for (int i = 1; i <= 13; ++i) held.push_back(some({i}));
  const std::string text = text_of(check);
  EXPECT_THAT(text, HasSubstr("some (13,)"));
  EXPECT_THAT(text, HasSubstr("some (4,)"));
  EXPECT_THAT(text, Not(HasSubstr("some (3,)")));
  EXPECT_THAT(text, HasSubstr("and 3 more"));
}

}  // namespace
}  // namespace plimsoll
