#include "plimsoll/tensor/growth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "plimsoll/tensor/name_scope.h"
#include "plimsoll/tensor/tensor_testing.h"

namespace plimsoll {
namespace {

TEST(Growth, ListsWhatThereIsMoreOfThanAtTheLastLook) {
  std::vector<Tensor> held;
  Growth growth;
  EXPECT_TRUE(growth.take().empty());
  for (int step = 0; step < 5; ++step) {
    const NameScope scope("training");
    held.push_back(some({100}, "relu"));
    const Tensor passing = some({100}, "passing");
  }
  const auto rows = growth.take();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].op, "relu");
  EXPECT_EQ(rows[0].scope, "training");
  EXPECT_TRUE(rows[0].site.starts_with("tensor/growth_test.cc:")) << rows[0].site;
  EXPECT_EQ(rows[0].count, 5);
  EXPECT_EQ(rows[0].bytes, 5 * 400);
  EXPECT_TRUE(growth.take().empty());
  held.pop_back();
  EXPECT_TRUE(growth.take().empty());
  held.push_back(some({100}, "relu"));
  EXPECT_EQ(growth.take().size(), 1u) << "Made outside of the scope: another group.";
}

TEST(Growth, LooksOnceWhenItIsMade) {
  const Tensor before = some({4}, "before");
  Growth growth;
  const Tensor after = some({4}, "after");
  const auto rows = growth.take();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].op, "after");
}

TEST(Growth, PutsMostBytesFirstAndThenMostTensors) {
  Growth growth;
  const Tensor small = some({1}, "small"), large = some({100}, "large");
  const Tensor view = make_view(small, "one view", {1}, 0), a = make_view(small, "views", {1}, 0),
               b = make_view(small, "views", {1}, 0);
  const auto rows = growth.take();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].op, "large");
  EXPECT_EQ(rows[1].op, "small");
  EXPECT_EQ(rows[2].op, "views");
  EXPECT_EQ(rows[2].count, 2);
  EXPECT_EQ(rows[2].bytes, 0);
  EXPECT_EQ(rows[3].op, "one view");
}

TEST(Growth, JoinsEqualNamesAtDifferentAddresses) {
  static const char kFirst[] = "same", kSecond[] = "same";
  Growth growth;
  const Tensor a = some({1}, kFirst), b = some({1}, kSecond);
  const auto rows = growth.take();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].count, 2);
}

TEST(Growth, CountsBuffersThatNoTensorRefersTo) {
  Growth growth;
  StorageRef saved;
  {
    const Tensor x = some({4}, "saved");
    saved = StorageRef::share(x.record()->storage);
  }
  const auto rows = growth.take();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].op, "saved");
  EXPECT_EQ(rows[0].bytes, 16);
}

TEST(Growth, ShowsATable) {
  Growth growth;
  std::ostringstream out;
  const Tensor a = some({512}, "relu");
  EXPECT_EQ(growth.show(out).size(), 1u);
  EXPECT_EQ(out.str(),
            "     gained   tensors  operation  scope\n"
            "    2.0 KiB        +1  relu       -\n");
  out.str("");
  growth.show(out);
  EXPECT_EQ(out.str(), "growth: nothing is more than at the last look\n");
}

}  // namespace
}  // namespace plimsoll
