// What the arena promises about bytes, on real training and inference traces.
#include <gtest/gtest.h>

#include <filesystem>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/sanitized_testing.h"
#include "plimsoll/cli/replay/replay.h"

namespace plimsoll {
namespace {

class ArenaFigures : public testing::TestWithParam<const char*> {
 protected:
  // The trace, from our own test data or from the shared set; skips when it is in neither.
  void SetUp() override {
    const std::string file = std::string("/traces/") + GetParam() + ".csv.gz";
    for (const std::string& folder : {std::string(TEST_DATA), std::string(SHARED_DATA)}) {
      if (!std::filesystem::exists(folder + file)) continue;
      trace_ = read_trace(folder + file);
      return;
    }
    GTEST_SKIP() << "no trace " << file << " in the shared data";
  }
  std::size_t bound(double share, std::size_t more) const {
    return static_cast<std::size_t>(share * static_cast<double>(trace_.peak_live)) + more;
  }
  Trace trace_;
};

TEST_P(ArenaFigures, FitTwoPercentAboveTheLiveBytesAlsoWhenRepeated) {
  const std::size_t limit = bound(1.02, 256_KiB);
  const ReplayResult result = replay(trace_, {.limit = limit, .repeat = 2});
  EXPECT_EQ(result.refusals, 0u);
  EXPECT_LE(result.peak_reserved, limit);
}

TEST_P(ArenaFigures, StayNearTheLiveBytesWhenGrowing) {
  const ReplayResult result = replay(trace_, {.growth = true, .repeat = 0});
  EXPECT_EQ(result.refusals, 0u);
  EXPECT_LE(result.peak_reserved, bound(1.05, 2_MiB));
}

TEST_P(ArenaFigures, AccountForEveryByteAtThePeak) {
  const ReplayResult result = replay(trace_, {.limit = bound(1.02, 256_KiB), .repeat = 0});
  std::size_t requested = 0, in_use = 0;
  for (const OccupancyExtent& extent : result.at_peak) {
    if (extent.kind != OccupancyKind::kUsed) continue;
    requested += extent.requested;
    in_use += extent.size;
  }
  EXPECT_EQ(requested, trace_.peak_live);
  EXPECT_LE(in_use, result.peak_in_use);
}

INSTANTIATE_TEST_SUITE_P(Traces, ArenaFigures,
                         testing::Values("mlp_mnist_train", "resnet18_train", "lstm_train", "unet_train",
                                         "mobilenetv2_train", "bert_infer", "gpt2_decode"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Replay, ContinuesAfterARefusalAndSkipsItsFree) {
  TraceParser parser("t");
  parser.feed("a,1,1000\na,2,90000000\nf,2\na,3,1000\nf,1\nf,3\n");
  const Trace trace = parser.finish();
  for (const ReplayPolicy policy : {ReplayPolicy::kArena, ReplayPolicy::kBfc}) {
    const ReplayResult result = replay(trace, {.policy = policy, .limit = 1_MiB, .repeat = 1, .touch = true});
    EXPECT_EQ(result.refusals, 1u);
    EXPECT_LE(result.peak_reserved, 1_MiB);
    EXPECT_EQ(result.limit, 1_MiB);
  }
}

TEST(Replay, AcceptsZeroBytesAndBlocksNeverFreed) {
  TraceParser parser("t");
  parser.feed("a,1,0\na,2,5000\nf,1\n");
  const Trace trace = parser.finish();
  for (const ReplayPolicy policy : {ReplayPolicy::kArena, ReplayPolicy::kBfc})
    EXPECT_EQ(replay(trace, {.policy = policy, .limit = 1_MiB, .repeat = 3, .touch = true}).refusals, 0u);
}

TEST(Replay, CountsASizeBeyondAnyMemoryAsARefusal) {
  if (kSanitized) GTEST_SKIP() << "without a limit the arena reserves more addresses than a sanitizer leaves";
  TraceParser parser("t");
  parser.feed("a,1,18446744073709551615\nf,1\n");
  const Trace trace = parser.finish();
  for (const ReplayPolicy policy : {ReplayPolicy::kArena, ReplayPolicy::kBfc})
    EXPECT_EQ(replay(trace, {.policy = policy, .repeat = 1}).refusals, 1u);
}

}  // namespace
}  // namespace plimsoll
