#include "plimsoll/plan/plan.h"

#include <gmock/gmock.h>

#include "plimsoll/base/error.h"
#include "plimsoll/plan/lifetimes_csv.h"
#include "plimsoll/plan/validate.h"

namespace plimsoll {
namespace {

struct Known {
  const char* name;
  std::size_t lower_bound;
};

class RealLifetimes : public testing::TestWithParam<Known> {};

TEST_P(RealLifetimes, ArePlacedAtTheLowerBound) {
  const Lifetimes lifetimes = read_lifetimes(std::string(TEST_DATA "/plan/") + GetParam().name + ".csv");
  const Plan got = plan(lifetimes.buffers);
  EXPECT_EQ(validate_plan(lifetimes.buffers, got.offsets), "");
  EXPECT_EQ(got.peak, GetParam().lower_bound);
  EXPECT_EQ(got.lower_bound, GetParam().lower_bound);
  EXPECT_EQ(got.proof, Proof::kOptimal);
}

INSTANTIATE_TEST_SUITE_P(All, RealLifetimes,
                         testing::Values(Known{"bert_infer", 50982400}, Known{"gpt2_decode", 40294152},
                                         Known{"lstm_train", 39633152}, Known{"mlp_mnist_train", 5355576},
                                         Known{"mobilenetv2_train", 630093044}, Known{"resnet18_train", 210560488},
                                         Known{"unet_train", 386440592}),
                         [](const auto& info) { return std::string(info.param.name); });

class HardInstances : public testing::TestWithParam<char> {};

TEST_P(HardInstances, FitTheirPublishedCapacity) {
  Lifetimes lifetimes;
  try {
    lifetimes = read_lifetimes(std::string(SHARED_DATA "/fetched/minimalloc/") + GetParam() + ".1048576.csv");
  } catch (const NotFound& error) {
    GTEST_SKIP() << "public instances are not here: " << error.what();
  }
  const Constraints constraints{.capacity = 1048576};
  const Plan got = plan(lifetimes.buffers, constraints, {.seconds = 60});
  EXPECT_EQ(validate_plan(lifetimes.buffers, got.offsets, constraints), "");
  EXPECT_LE(got.peak, constraints.capacity);
}

INSTANTIATE_TEST_SUITE_P(All, HardInstances, testing::Range('A', 'L'),
                         [](const auto& info) { return std::string(1, info.param); });

TEST(Plan, OfNothingIsEmptyAndOptimal) {
  const Plan got = plan({});
  EXPECT_TRUE(got.offsets.empty());
  EXPECT_EQ(got.peak, 0u);
  EXPECT_EQ(got.proof, Proof::kOptimal);
}

TEST(Plan, GivesBuffersWithoutBytesAPlaceToo) {
  const std::vector<Buffer> buffers = {{.size = 0, .lower = 0, .upper = 2}, {.size = 7, .lower = 1, .upper = 2}};
  const Plan got = plan(buffers);
  EXPECT_EQ(got.offsets.size(), 2u);
  EXPECT_EQ(got.peak, 7u);
  EXPECT_EQ(got.proof, Proof::kOptimal);
}

TEST(Plan, SaysThatACapacityBelowTheBoundIsInfeasible) {
  const std::vector<Buffer> buffers = {{.size = 10, .lower = 0, .upper = 2}, {.size = 10, .lower = 1, .upper = 3}};
  const Plan got = plan(buffers, {.capacity = 19});
  EXPECT_EQ(got.proof, Proof::kInfeasible);
  EXPECT_EQ(got.lower_bound, 20u);
  EXPECT_EQ(got.peak, 20u);
}

// At most five bytes live at once, but no plan does with five: found by exhausting the search.
TEST(Plan, ProvesByExhaustionThatTheLiveBytesAreNotEnough) {
  const std::vector<Buffer> buffers = {{.size = 3, .lower = 6, .upper = 9}, {.size = 3, .lower = 0, .upper = 2},
                                       {.size = 1, .lower = 1, .upper = 5}, {.size = 1, .lower = 4, .upper = 7},
                                       {.size = 1, .lower = 2, .upper = 7}, {.size = 2, .lower = 3, .upper = 4},
                                       {.size = 1, .lower = 1, .upper = 3}, {.size = 1, .lower = 2, .upper = 5}};
  const Plan got = plan(buffers);
  EXPECT_EQ(got.peak, 6u);
  EXPECT_EQ(got.lower_bound, 6u);
  EXPECT_EQ(got.proof, Proof::kOptimal);
  const Plan refused = plan(buffers, {.capacity = 5});
  EXPECT_EQ(refused.proof, Proof::kInfeasible);
  EXPECT_EQ(refused.lower_bound, 6u);
}

TEST(Plan, SaysUnknownWhenTheNodesRunOut) {
  const Lifetimes lifetimes = read_lifetimes(TEST_DATA "/plan/resnet18_train.csv");
  const std::vector<Buffer>& buffers = lifetimes.buffers;
  const std::size_t bound = plan(buffers).lower_bound;
  const Plan got = plan(buffers, {.capacity = bound, .alignment = 1}, {.nodes = 0});
  EXPECT_EQ(validate_plan(buffers, got.offsets), "");
  EXPECT_EQ(got.proof, got.peak > bound ? Proof::kUnknown : Proof::kOptimal);
}

TEST(Plan, CountsThePaddingThatAlignmentMakesUnavoidable) {
  const std::vector<Buffer> buffers = {{.size = 10, .lower = 0, .upper = 2}, {.size = 20, .lower = 0, .upper = 2}};
  const Plan got = plan(buffers, {.alignment = 64});
  EXPECT_EQ(got.peak, 74u);
  EXPECT_EQ(got.lower_bound, 74u);
  EXPECT_EQ(got.proof, Proof::kOptimal);
}

TEST(Plan, PutsABufferIntoTheGapOfAnother) {
  const std::vector<Buffer> buffers = {{.size = 100, .lower = 0, .upper = 9, .gaps = {{3, 6, 0, 40}}},
                                       {.size = 60, .lower = 3, .upper = 6}};
  const Plan got = plan(buffers);
  EXPECT_EQ(got.peak, 100u);
  EXPECT_EQ(got.proof, Proof::kOptimal);
}

TEST(Plan, PlacesThePartsOfAConcatenationInsideIt) {
  const std::vector<Buffer> buffers = {{.size = 64, .lower = 0, .upper = 3, .alias_set = 7},
                                       {.size = 32, .lower = 1, .upper = 3, .alias_set = 7, .alias_offset = 64},
                                       {.size = 96, .lower = 2, .upper = 5, .alias_set = 7},
                                       {.size = 16, .lower = 0, .upper = 5}};
  const Plan got = plan(buffers);
  EXPECT_EQ(validate_plan(buffers, got.offsets), "");
  EXPECT_EQ(got.offsets[1], got.offsets[0] + 64);
  EXPECT_EQ(got.offsets[2], got.offsets[0]);
  EXPECT_EQ(got.peak, 112u);
}

TEST(Plan, IsTheSameWithOneThreadOrTwoForTheSameNodes) {
  const Lifetimes lifetimes = read_lifetimes(TEST_DATA "/plan/hard.csv");
  for (const std::uint64_t nodes : {0, 1000, 24000, 60000}) {
    const Plan one = plan(lifetimes.buffers, {}, {.nodes = nodes, .seconds = 1e9, .threads = 1});
    const Plan two = plan(lifetimes.buffers, {}, {.nodes = nodes, .seconds = 1e9, .threads = 2});
    const Plan again = plan(lifetimes.buffers, {}, {.nodes = nodes, .seconds = 1e9, .threads = 2});
    EXPECT_EQ(one.offsets, two.offsets) << nodes;
    EXPECT_EQ(two.offsets, again.offsets) << nodes;
    EXPECT_EQ(one.nodes, two.nodes) << nodes;
    EXPECT_EQ(one.lower_bound, two.lower_bound) << nodes;
  }
}

TEST(Plan, RefusesBuffersThatMakeNoSense) {
  const auto refused = [](Buffer buffer) { EXPECT_THROW(plan(std::vector<Buffer>{buffer}), InvalidArgument); };
  refused({.size = 1, .lower = 2, .upper = 2});
  refused({.size = 1, .lower = 0, .upper = 2, .alignment = 0});
  refused({.size = 1, .lower = 0, .upper = 2, .gaps = {{1, 3, 0, 0}}});
  refused({.size = 1, .lower = 0, .upper = 9, .gaps = {{1, 4, 0, 0}, {3, 5, 0, 0}}});
  refused({.size = 1, .lower = 0, .upper = 9, .gaps = {{1, 4, 0, 2}}});
  refused({.size = 1, .lower = 0, .upper = 9, .alias_set = -2});
  refused({.size = 1, .lower = 0, .upper = 9, .alias_offset = 8});
  refused({.size = 1, .lower = 0, .upper = 9, .alignment = 4, .alias_set = 0, .alias_offset = 2});
  refused({.size = std::size_t{1} << 62, .lower = 0, .upper = 9});
  EXPECT_THROW(plan({}, {.alignment = 0}), InvalidArgument);
}

TEST(Plan, TellsAnObserverWhatItHas) {
  const Lifetimes lifetimes = read_lifetimes(TEST_DATA "/plan/hard.csv");
  int calls = 0;
  plan(lifetimes.buffers, {}, {.seconds = 0.5}, [&](const PlanProgress& progress) {
    ++calls;
    EXPECT_GE(progress.peak, progress.lower_bound);
  });
  EXPECT_GE(calls, 1);
  EXPECT_LE(calls, 7);
}

}  // namespace
}  // namespace plimsoll
