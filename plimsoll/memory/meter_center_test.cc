#include "plimsoll/memory/meter_center.h"

#include <gtest/gtest.h>

#include <vector>

namespace plimsoll {
namespace {

// Meters of imagined threads: the calling thread stands for all of them.
class MeterCenterTest : public testing::Test {
 protected:
  static constexpr std::int64_t kLimit = 256'000;
  static constexpr std::int64_t kQuota = kLimit / 256;

  MeterCenterTest() {
    const std::lock_guard lock(MeterCenter::mutex());
    for (Meter& meter : meters_) center_.attach(meter);
  }
  bool charge(Meter& meter, std::int64_t bytes) {
    const std::lock_guard lock(MeterCenter::mutex());
    if (!meter.fits(bytes) && !center_.draw(meter, bytes)) return false;
    meter.add(bytes);
    meter.note_peak();
    return true;
  }
  void uncharge(Meter& meter, std::int64_t bytes) {
    if (!meter.subtract(bytes)) return;
    const std::lock_guard lock(MeterCenter::mutex());
    center_.give_back(meter);
  }
  MeterCenter center_{static_cast<std::size_t>(kLimit)};
  std::vector<Meter> meters_ = std::vector<Meter>(3);
};

TEST_F(MeterCenterTest, GivesUpToTheLimitAndNotAByteMore) {
  EXPECT_TRUE(charge(meters_[0], kLimit - 1));
  EXPECT_FALSE(charge(meters_[1], 2));
  EXPECT_TRUE(charge(meters_[1], 1));
  EXPECT_FALSE(charge(meters_[2], 1));
  EXPECT_EQ(center_.used(), static_cast<std::size_t>(kLimit));
}

TEST_F(MeterCenterTest, TakesUnusedQuotaBackFromOthersRatherThanRefuse) {
  for (Meter& meter : meters_) {
    ASSERT_TRUE(charge(meter, 1000));
    EXPECT_GT(Meter::load(meter.allowance), 1000) << "a quota is kept for the next charge";
  }
  EXPECT_TRUE(charge(meters_[0], kLimit - 3000));
  EXPECT_EQ(Meter::load(meters_[1].allowance), 1000);
  EXPECT_EQ(Meter::load(meters_[2].allowance), 1000);
}

TEST_F(MeterCenterTest, LetsAThreadUseWhatItFreedForOthers) {
  ASSERT_TRUE(charge(meters_[0], kLimit));
  uncharge(meters_[1], kLimit);  // Freed by another thread.
  EXPECT_EQ(center_.used(), 0u);
  EXPECT_TRUE(charge(meters_[2], kLimit));
  EXPECT_FALSE(charge(meters_[0], 1));
}

TEST_F(MeterCenterTest, ReturnsAllButAQuotaWhenMuchIsUnused) {
  ASSERT_TRUE(charge(meters_[0], 100'000));
  uncharge(meters_[0], 100'000);
  EXPECT_EQ(Meter::load(meters_[0].allowance), kQuota);
}

TEST_F(MeterCenterTest, KeepsTheCountsOfThreadsThatEnd) {
  ASSERT_TRUE(charge(meters_[0], 5000));
  ASSERT_TRUE(charge(meters_[1], 7000));
  {
    const std::lock_guard lock(MeterCenter::mutex());
    center_.detach(meters_[1]);
  }
  EXPECT_EQ(center_.used(), 12'000u);
  EXPECT_EQ(center_.peak(), 12'000u);
  EXPECT_EQ(Meter::load(meters_[1].allowance), 0);
  EXPECT_TRUE(charge(meters_[0], kLimit - 12'000));
  EXPECT_FALSE(charge(meters_[0], 1));
  uncharge(meters_[0], kLimit);
  EXPECT_EQ(center_.used(), 0u);
}

TEST_F(MeterCenterTest, PeakIsExactWithOneThread) {
  std::int64_t used = 0, peak = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t bytes = 1 + i * 7919 % 30'000;
    if (i % 3 == 2 && used >= bytes) {
      uncharge(meters_[0], bytes);
      used -= bytes;
    } else if (charge(meters_[0], bytes)) {
      used += bytes;
    } else {
      EXPECT_GT(used + bytes, kLimit);
    }
    peak = std::max(peak, used);
    ASSERT_EQ(center_.used(), static_cast<std::size_t>(used));
    ASSERT_EQ(center_.peak(), static_cast<std::size_t>(peak));
  }
}

TEST_F(MeterCenterTest, PeakOfThreadsInTurnIsWithinTwoQuotasEach) {
  for (int i = 0; i < 30; ++i) {
    Meter& meter = meters_[static_cast<std::size_t>(i % 3)];
    ASSERT_TRUE(charge(meter, 50'000));
    uncharge(meter, 50'000);
  }
  EXPECT_GE(center_.peak(), 50'000u);
  EXPECT_LE(center_.peak(), static_cast<std::size_t>(50'000 + 3 * 2 * kQuota));
}

TEST_F(MeterCenterTest, ResetPeakFallsToWhatIsUsed) {
  ASSERT_TRUE(charge(meters_[0], 50'000));
  ASSERT_TRUE(charge(meters_[1], 1000));
  uncharge(meters_[0], 50'000);
  center_.reset_peak();
  EXPECT_EQ(center_.peak(), 1000u);
  ASSERT_TRUE(charge(meters_[1], 1000));
  EXPECT_EQ(center_.peak(), 2000u);
}

TEST_F(MeterCenterTest, NeverPassesTheUpperMarkSilently) {
  {
    const std::lock_guard lock(MeterCenter::mutex());
    center_.set_marks(0, 99'999);
  }
  ASSERT_TRUE(charge(meters_[0], 99'000));
  EXPECT_FALSE(center_.passed_mark());
  EXPECT_LE(Meter::load(meters_[0].allowance), 99'999);
  ASSERT_TRUE(charge(meters_[1], 999));
  EXPECT_FALSE(center_.passed_mark()) << "the mark itself is still below the threshold";
  ASSERT_TRUE(charge(meters_[1], 1));
  EXPECT_TRUE(center_.passed_mark());
}

TEST_F(MeterCenterTest, ShortensAllowancesThatReachBeyondANewMark) {
  ASSERT_TRUE(charge(meters_[0], 50'000));
  const std::lock_guard lock(MeterCenter::mutex());
  center_.set_marks(0, 50'100);
  EXPECT_LE(Meter::load(meters_[0].allowance), 50'100);
}

TEST_F(MeterCenterTest, SaysWhenUseFellBelowTheLowerMark) {
  ASSERT_TRUE(charge(meters_[0], 60'000));
  {
    const std::lock_guard lock(MeterCenter::mutex());
    center_.set_marks(50'000, SIZE_MAX);
    EXPECT_FALSE(center_.fell_below_mark());
  }
  EXPECT_TRUE(meters_[0].subtract(10'000)) << "every free asks while a lower mark is set";
  const std::lock_guard lock(MeterCenter::mutex());
  EXPECT_FALSE(center_.fell_below_mark()) << "at the mark is not below it";
  meters_[0].subtract(1);
  EXPECT_TRUE(center_.fell_below_mark());
}

}  // namespace
}  // namespace plimsoll
