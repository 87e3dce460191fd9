// Growth, leak checks and holders over real operations and variables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/device/device_testing.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/softmax.h"
#include "plimsoll/ops/variable.h"
#include "plimsoll/tensor/growth.h"
#include "plimsoll/tensor/leak_check.h"
#include "plimsoll/tensor/live_tensors.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/name_scope.h"
#include "plimsoll/tensor/tensor_tree.h"
#include "plimsoll/tensor/tidy.h"
#include "plimsoll/tensor/who_holds.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class Leaks : public DeviceFixture {};

TEST_F(Leaks, OfATrainingLoopAreShownByOperationAndScope) {
  std::vector<Tensor> losses;
  Growth growth;
  growth.take();
  for (int step = 0; step < 5; ++step) {
    const NameScope scope("training");
    losses.push_back(relu(ones({100}) * 2.f));
  }
  const auto rows = growth.take();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].count, 5);
  EXPECT_EQ(rows[0].bytes, 5 * 400);
  EXPECT_EQ(rows[0].op, "relu");
  EXPECT_EQ(rows[0].scope, "training");
  EXPECT_TRUE(growth.take().empty());
}

TEST_F(Leaks, AreFoundByACheck) {
  const Tensor x = ones({4});
  const LeakCheck check;
  tidy([&] { softmax(x * 2.f); });
  check.expect_none();
  const Tensor leaked = x * 7.f;
  EXPECT_EQ(check.leaked(), 1u);
  EXPECT_THAT([&] { check.expect_none(); }, ThrowsMessage<Leak>(HasSubstr("multiply (4,) float32, 16 B")));
}

TEST_F(Leaks, CountVariablesAndTheirSnapshots) {
  const Variable before(ones({4}));
  Tensor snapshot = before.value();
  const LeakCheck check;
  snapshot = before.value();  // Another tensor of the same id, most likely in the same record.
  EXPECT_EQ(check.leaked(), 1u);
  before.assign(ones({4}) * 2.f);
  EXPECT_EQ(check.leaked(), 1u) << "The variable is older than the check, whatever it holds.";
  const Variable after(ones({2}));
  EXPECT_EQ(check.leaked(), 2u);
}

TEST_F(Leaks, AddUpToMemoryWithVariablesAndViews) {
  const Variable kernel(ones({3, 4}), {.name = "kernel"});
  const Tensor snapshot = kernel, x = ones({4}), view = x.reshape({2, 2});
  kernel.assign_add(ones({3, 4}));
  std::size_t bytes = 0;
  for (const LiveTensor& row : live_tensors()) bytes += row.bytes;
  EXPECT_EQ(bytes, memory().num_bytes);
  EXPECT_EQ(live_tensors().size(), memory().num_tensors);
}

TEST_F(Leaks, NameTheVariableThatHoldsATensor) {
  const Variable kernel(ones({1, 4}), {.name = "kernel"});
  const Tensor value = kernel.value();
  EXPECT_THAT(who_holds(value).paths(),
              ElementsAre("tensor (1, 4) <- 1 handle", "tensor (1, 4) <- variable \"kernel\": its value"));
  kernel.assign(ones({1, 4}));
  EXPECT_THAT(who_holds(value).paths(), ElementsAre("tensor (1, 4) <- 1 handle"));
}

TEST_F(Leaks, AreNoneInATreeOfVariables) {
  const Variable w(ones({2}));
  const LeakCheck check;
  {
    const TensorTree tree = {{"w", w}, {"both", {w, ones({3})}}};
    EXPECT_EQ(tree.num_tensors(), 3u);
    EXPECT_EQ(check.leaked(), 3u);
    const TensorTree scaled = tidy([&] { return tree.map([](const Tensor& tensor) { return tensor * 2.f; }); });
    EXPECT_EQ(scaled["both"][1].tensor().at<float>({2}), 2.f);
    EXPECT_EQ(check.leaked(), 6u);
  }
  check.expect_none();
}

}  // namespace
}  // namespace plimsoll
