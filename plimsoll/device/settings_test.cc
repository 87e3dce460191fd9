#include "plimsoll/device/settings.h"

#include <gmock/gmock.h>

#include "plimsoll/device/device_testing.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SettingsTest : public DeviceFixture {
 protected:
  std::vector<LogicalDevicePlan> plan() {
    return plan_logical_devices(settings_, machine_, {.bytes = 6_GiB, .from = "test"}, warnings_);
  }
  std::vector<std::size_t> limits() {
    std::vector<std::size_t> limits;
    for (const LogicalDevicePlan& planned : plan()) limits.push_back(planned.device.memory_limit);
    return limits;
  }

  std::vector<PhysicalDevice> machine_ = {{"CPU:0", "CPU", 8_GiB}};
  Settings settings_;
  DeviceSettings& cpu_ = settings_.devices["CPU:0"];
  std::vector<std::string> warnings_;
};

TEST_F(SettingsTest, ApplyTheDefaultLimitToASingleDevice) {
  const auto plans = plan();
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].device.name, "CPU:0");
  EXPECT_EQ(plans[0].device.physical_device, "CPU:0");
  EXPECT_EQ(plans[0].device.memory_limit, 6_GiB);
  EXPECT_FALSE(plans[0].growth);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(SettingsTest, TakeAFractionOfAllMemoryWhateverIsFree) {
  cpu_.fraction = 0.25;
  EXPECT_THAT(limits(), ElementsAre(2_GiB));
}

TEST_F(SettingsTest, GiveDevicesWithoutALimitAShareOfTheRest) {
  cpu_.logical = {{.memory_limit = 2_GiB}, {}, {}};
  EXPECT_THAT(limits(), ElementsAre(2_GiB, 2_GiB, 2_GiB));
  cpu_.fraction = 0.5;
  cpu_.logical = {{}, {}};
  EXPECT_THAT(limits(), ElementsAre(2_GiB, 2_GiB));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(SettingsTest, CombineGrowthWithLimits) {
  cpu_.logical = {{.memory_limit = 1_GiB}, {.memory_limit = 512_MiB}};
  cpu_.growth = true;
  const auto plans = plan();
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_TRUE(plans[0].growth && plans[1].growth);
  EXPECT_EQ(plans[1].device.name, "CPU:1");
  EXPECT_EQ(plans[1].device.memory_limit, 512_MiB);
}

TEST_F(SettingsTest, NumberDevicesPerTypeAndLeaveHiddenOnesOut) {
  machine_ = {{"CPU:0", "CPU", 8_GiB}, {"GPU:0", "GPU", 1_GiB}, {"GPU:1", "GPU", 1_GiB}};
  settings_.devices["GPU:1"].logical = {{.memory_limit = 1_MiB}, {.memory_limit = 2_MiB}};
  settings_.hidden = {"GPU:0"};
  const auto plans = plan();
  ASSERT_EQ(plans.size(), 3u);
  EXPECT_EQ(plans[0].device.name, "CPU:0");
  EXPECT_EQ(plans[1].device.name, "GPU:0");
  EXPECT_EQ(plans[1].device.physical_device, "GPU:1");
  EXPECT_EQ(plans[2].device.name, "GPU:1");
}

TEST_F(SettingsTest, WarnWhenLimitsAddUpToMoreThanThereIs) {
  cpu_.logical = {{.memory_limit = 5_GiB}, {.memory_limit = 2_GiB}, {}};
  EXPECT_THAT(limits(), ElementsAre(5_GiB, 2_GiB, 1_MiB));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("add up to 7.0 GiB, but only 6.0 GiB")));
  cpu_.logical = {{.memory_limit = SIZE_MAX}, {.memory_limit = SIZE_MAX}};
  EXPECT_THAT(limits(), ElementsAre(SIZE_MAX, SIZE_MAX));
}

TEST_F(SettingsTest, LetTheEnvironmentDecideGrowth) {
  setenv("TF_FORCE_GPU_ALLOW_GROWTH", "true", 1);
  EXPECT_TRUE(plan()[0].growth);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("turns memory growth on")));
  setenv("PLIMSOLL_FORCE_ALLOW_GROWTH", "false", 1);  // Ours takes precedence.
  EXPECT_FALSE(plan()[0].growth);
  cpu_.growth = true;
  EXPECT_FALSE(plan()[0].growth);
  EXPECT_THAT(warnings_.back(), HasSubstr("turns memory growth off"));
}

TEST_F(SettingsTest, KeepTheOptionWhenTheEnvironmentMakesNoSense) {
  cpu_.growth = true;
  for (const char* text : {"yes", "1", "TRUE", ""}) {
    setenv("PLIMSOLL_FORCE_ALLOW_GROWTH", text, 1);
    setenv("TF_FORCE_GPU_ALLOW_GROWTH", "false", 1);  // Ignored: ours is set.
    warnings_.clear();
    EXPECT_TRUE(plan()[0].growth) << text;
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("neither \"true\" nor \"false\"")));
  }
}

}  // namespace
}  // namespace plimsoll
