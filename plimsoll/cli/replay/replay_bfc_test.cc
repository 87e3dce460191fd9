// The BFC model against figures measured on XLA's own allocator: equal to the last digit given, on every trace.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "plimsoll/cli/replay/replay.h"

namespace plimsoll::internal {
namespace {

struct Measured {
  const char* trace;
  double reserved;            // Peak reserved / peak live, growing in 8 GiB.
  double in_use;              // Peak in use / peak live.
  std::size_t smallest_pool;  // Bytes, by bisection to 0.2 % of the live bytes.
};

void PrintTo(const Measured& measured, std::ostream* out) { *out << measured.trace; }

class BfcFigures : public testing::TestWithParam<Measured> {
 protected:
  // The trace, from our own test data or from the shared set; skips when it is in neither.
  void SetUp() override {
    const std::string file = std::string("/traces/") + GetParam().trace + ".csv.gz";
    for (const std::string& folder : {std::string(TEST_DATA), std::string(SHARED_DATA)}) {
      if (!std::filesystem::exists(folder + file)) continue;
      trace_ = read_trace(folder + file);
      return;
    }
    GTEST_SKIP() << "no trace " << file << " in the shared data";
  }
  double share(std::size_t bytes) const { return static_cast<double>(bytes) / static_cast<double>(trace_.peak_live); }
  Trace trace_;
};

TEST_P(BfcFigures, AreThoseOfTheOriginalWhenItGrows) {
  const ReplayResult result = replay(trace_, {.policy = ReplayPolicy::kBfc, .growth = true, .repeat = 0});
  EXPECT_EQ(result.refusals, 0u);
  EXPECT_NEAR(share(result.peak_reserved), GetParam().reserved, 0.0006);
  EXPECT_NEAR(share(result.peak_in_use), GetParam().in_use, 0.0006);
}

TEST_P(BfcFigures, AreThoseOfTheOriginalForTheSmallestPool) {
  const std::size_t pool = smallest_bfc_pool(trace_);
  EXPECT_NEAR(static_cast<double>(pool), static_cast<double>(GetParam().smallest_pool),
              0.0025 * static_cast<double>(trace_.peak_live));
  EXPECT_EQ(replay(trace_, {.policy = ReplayPolicy::kBfc, .limit = pool, .repeat = 0}).refusals, 0u);
}

INSTANTIATE_TEST_SUITE_P(Traces, BfcFigures,
                         testing::Values(Measured{"mlp_mnist_train", 2.581, 1.098, 14542848},
                                         Measured{"resnet18_train", 1.731, 1.097, 348754688},
                                         Measured{"lstm_train", 1.634, 1.011, 43520768},
                                         Measured{"unet_train", 2.227, 1.112, 522585088},
                                         Measured{"mobilenetv2_train", 1.616, 1.124, 735610368},
                                         Measured{"bert_infer", 2.196, 1.110, 498474240},
                                         Measured{"gpt2_decode", 1.646, 1.180, 653422336}),
                         [](const auto& info) { return std::string(info.param.trace); });

}  // namespace
}  // namespace plimsoll::internal
