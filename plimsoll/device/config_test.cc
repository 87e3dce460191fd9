#include "plimsoll/device/config.h"

#include <gmock/gmock.h>

#include <cmath>

#include "plimsoll/device/allocate.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/device/device_scope.h"
#include "plimsoll/device/device_testing.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/system_memory.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::ThrowsMessage;

class Config : public DeviceFixture {};

TEST_F(Config, ListsTheProcessorAndNoGraphicsCard) {
  const auto all = config::list_physical_devices();
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].name, "CPU:0");
  EXPECT_EQ(all[0].type, "CPU");
  EXPECT_EQ(all[0].memory_bytes, read_system_memory().capacity());
  EXPECT_THAT(config::list_physical_devices("cpu"), SizeIs(1));
  EXPECT_THAT(config::list_physical_devices("GPU"), IsEmpty());
  EXPECT_THAT(config::list_logical_devices("GPU"), IsEmpty());
}

TEST_F(Config, ListingPhysicalDevicesDoesNotStartTheRuntime) {
  config::list_physical_devices("CPU");
  config::get_visible_devices();
  config::get_memory_growth(cpu());
  EXPECT_EQ(trim(), 0u);
  collect_garbage();
  config::set_memory_growth(cpu(), true);  // Still allowed.
  config::list_logical_devices();
  EXPECT_THROW(config::set_memory_growth(cpu(), false), FailedPrecondition);
}

TEST_F(Config, MakesLogicalDevicesWithTheirOwnLimits) {
  config::set_logical_device_configuration(cpu(), {{.memory_limit = 32_MiB}, {.memory_limit = 16_MiB}});
  EXPECT_THAT(config::get_logical_device_configuration(cpu()), SizeIs(2));
  const auto devices = config::list_logical_devices("CPU");
  ASSERT_THAT(devices, SizeIs(2));
  EXPECT_EQ(devices[0].name, "CPU:0");
  EXPECT_EQ(devices[1].name, "CPU:1");
  EXPECT_EQ(devices[1].memory_limit, 16_MiB);
  EXPECT_EQ(memory_stats("CPU:1").bytes_limit, 16_MiB);
}

TEST_F(Config, AppliesTheDefaultLimitToAnUnsetDevice) {
  const std::size_t limit = config::list_logical_devices().at(0).memory_limit;
  EXPECT_LE(limit, cpu().memory_bytes);
  EXPECT_NEAR(static_cast<double>(limit), static_cast<double>(default_memory_limit().bytes),
              static_cast<double>(256_MiB));
}

TEST_F(Config, TakesAFractionOfTheMachine) {
  config::set_memory_fraction(cpu(), 0.25);
  EXPECT_EQ(config::get_memory_fraction(cpu()), 0.25);
  const double limit = static_cast<double>(config::list_logical_devices().at(0).memory_limit);
  EXPECT_NEAR(limit, 0.25 * static_cast<double>(cpu().memory_bytes), 1);
}

TEST_F(Config, ChecksArgumentsBeforeTheMoment) {
  config::list_logical_devices();  // Started, yet the wrong arguments are reported.
  const PhysicalDevice unknown{"GPU:0", "GPU", 1_GiB};
  EXPECT_THAT(
      [&] { config::set_memory_growth(unknown, true); },
      ThrowsMessage<InvalidArgument>(HasSubstr("\"GPU:0\" is not a physical device of this machine; it has CPU:0")));
  EXPECT_THROW(config::get_memory_growth(unknown), InvalidArgument);
  EXPECT_THROW(config::set_memory_fraction(unknown, 0.5), InvalidArgument);
  EXPECT_THROW(config::set_visible_devices({unknown}, "GPU"), InvalidArgument);
  EXPECT_THROW(config::set_visible_devices({cpu()}, "GPU"), InvalidArgument);
  EXPECT_THROW(config::set_logical_device_configuration(unknown, {{.memory_limit = 1_GiB}}), InvalidArgument);
  EXPECT_THROW(config::set_logical_device_configuration(cpu(), {{.memory_limit = 1}}), InvalidArgument);
  EXPECT_THROW(config::set_logical_device_configuration(cpu(), std::vector<LogicalDeviceConfiguration>(65)),
               InvalidArgument);
  for (const double fraction : {-0.1, 1.1, std::nan(""), static_cast<double>(INFINITY)})
    EXPECT_THROW(config::set_memory_fraction(cpu(), fraction), InvalidArgument);
  EXPECT_THROW(config::set_memory_growth({"", "", 0}, true), InvalidArgument);
}

TEST_F(Config, IsFixedOnceTheRuntimeHasStarted) {
  deallocate(allocate(1));
  EXPECT_THAT([&] { config::set_memory_growth(cpu(), true); },
              ThrowsMessage<FailedPrecondition>(HasSubstr("config::set_memory_growth: the runtime has started")));
  EXPECT_THROW(config::set_memory_fraction(cpu(), 0.5), FailedPrecondition);
  EXPECT_THROW(config::set_logical_device_configuration(cpu(), {{.memory_limit = 1_GiB}}), FailedPrecondition);
  EXPECT_THROW(config::set_visible_devices({}, "CPU"), InvalidArgument);
  EXPECT_THROW(config::set_lazy_allocation(true), FailedPrecondition);
  EXPECT_THROW(config::set_deferred_release(true), FailedPrecondition);
  EXPECT_FALSE(config::get_memory_growth(cpu()));  // Nothing has changed.
  EXPECT_EQ(config::get_memory_fraction(cpu()), 0);
  EXPECT_THAT(config::get_logical_device_configuration(cpu()), IsEmpty());
  EXPECT_FALSE(config::get_lazy_allocation());
}

TEST_F(Config, AcceptsTheValueInForceAtAnyTime) {
  config::set_memory_growth(cpu(), true);
  config::set_logical_device_configuration(cpu(), {{.memory_limit = 64_MiB}});
  config::set_lazy_allocation(true);
  config::list_logical_devices();
  config::set_memory_growth(cpu(), true);
  config::set_memory_fraction(cpu(), 0);
  config::set_logical_device_configuration(cpu(), {{.memory_limit = 64_MiB}});
  config::set_visible_devices({cpu()}, "CPU");
  config::set_visible_devices({cpu()});
  config::set_visible_devices({}, "GPU");
  config::set_lazy_allocation(true);
  config::set_deferred_release(false);
  EXPECT_THROW(config::set_logical_device_configuration(cpu(), {{.memory_limit = 65_MiB}}), FailedPrecondition);
  config::reset_for_testing();
  config::list_logical_devices();
  config::set_logical_device_configuration(cpu(), {{}});  // One device without a limit is what there is by default.
}

TEST_F(Config, LetsTheEnvironmentForceGrowth) {
  setenv("PLIMSOLL_FORCE_ALLOW_GROWTH", "true", 1);
  EXPECT_TRUE(config::get_memory_growth(cpu()));
  config::list_logical_devices();
  config::set_memory_growth(cpu(), true);   // In force.
  config::set_memory_growth(cpu(), false);  // What the program set without the environment.
  EXPECT_TRUE(config::get_memory_growth(cpu()));
}

TEST_F(Config, LogsAnEnvironmentThatMakesNoSense) {
  setenv("TF_FORCE_GPU_ALLOW_GROWTH", "maybe", 1);
  config::set_memory_growth(cpu(), true);
  config::list_logical_devices();
  EXPECT_TRUE(config::get_memory_growth(cpu()));
  ASSERT_THAT(logged_, SizeIs(1));
  EXPECT_THAT(logged_[0], HasSubstr("TF_FORCE_GPU_ALLOW_GROWTH is \"maybe\""));
}

TEST_F(Config, RefusesAFractionBesideLimits) {
  config::set_memory_fraction(cpu(), 0.5);
  EXPECT_THROW(config::set_logical_device_configuration(cpu(), {{.memory_limit = 1_GiB}}), InvalidArgument);
  config::set_logical_device_configuration(cpu(), {{}, {}});  // Two halves of that half.
  EXPECT_THAT(config::list_logical_devices(), SizeIs(2));
  config::reset_for_testing();
  config::set_logical_device_configuration(cpu(), {{.memory_limit = 1_GiB}});
  EXPECT_THROW(config::set_memory_fraction(cpu(), 0.5), InvalidArgument);
  EXPECT_EQ(config::get_memory_fraction(cpu()), 0);
}

TEST_F(Config, NeverHidesTheProcessor) {
  EXPECT_THAT([] { config::set_visible_devices({}, "cpu"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("CPU:0 cannot be hidden")));
  EXPECT_THAT(config::get_visible_devices("CPU"), SizeIs(1));
  config::set_visible_devices({});
  EXPECT_THAT(config::get_visible_devices(), SizeIs(1));
  ASSERT_THAT(config::list_logical_devices(), SizeIs(1));
  EXPECT_EQ(config::list_logical_devices()[0].name, "CPU:0");
  config::set_visible_devices({});  // In force.
}

TEST_F(Config, NamesTheDevicesThatExistWhenAskedForAnother) {
  config::set_logical_device_configuration(cpu(), {{.memory_limit = 1_MiB}, {.memory_limit = 1_MiB}});
  EXPECT_THAT(
      [] { config::get_memory_info("CPU:7"); },
      ThrowsMessage<NotFound>(HasSubstr("device \"CPU:7\": there is no such device; these exist: CPU:0, CPU:1")));
  EXPECT_THROW(memory_stats("GPU:0"), NotFound);
  EXPECT_THROW(memory_resource("GPU:0"), NotFound);
  EXPECT_THROW(DeviceScope("CPU:2"), NotFound);
  EXPECT_THROW(config::get_memory_info("CPU"), InvalidArgument);
  EXPECT_EQ(config::get_memory_info("/device:cpu:1").current, 0u);
}

TEST_F(Config, ChangesThreadsSeedAndLogLevelAtAnyTime) {
  config::list_logical_devices();
  EXPECT_FALSE(config::get_seed());
  config::set_seed(7);
  EXPECT_EQ(config::get_seed(), 7u);
  const std::uint64_t version = config::seed_state().version;
  config::set_seed(7);
  EXPECT_EQ(config::seed_state().seed, 7u);
  EXPECT_NE(config::seed_state().version, version);  // Also with the same seed.
  config::set_threads(3);
  EXPECT_EQ(config::get_threads(), 3);
  EXPECT_THROW(config::set_threads(0), InvalidArgument);
  config::set_log_level("error");
  EXPECT_EQ(config::get_log_level(), "error");
  EXPECT_THROW(config::set_log_level("loud"), InvalidArgument);
  config::reset_for_testing();
  EXPECT_FALSE(config::get_seed());
  EXPECT_EQ(config::get_log_level(), "warning");
}

TEST_F(Config, RefusesToResetWhileBlocksLive) {
  const Block block = allocate(1_KiB);
  EXPECT_THAT([] { config::reset_for_testing(); },
              ThrowsMessage<FailedPrecondition>(HasSubstr("1.0 KiB (1024 bytes) of \"CPU:0\" are in use")));
  deallocate(block);  // The runtime is unchanged.
  config::reset_for_testing();
  EXPECT_THROW(deallocate(block), InvalidArgument);  // Its device no longer exists.
}

TEST_F(Config, StartsAgainWhenAStartFailed) {
  const std::vector<LogicalDeviceConfiguration> all(9, {.memory_limit = kMostLimit});  // More than all addresses.
  config::set_logical_device_configuration(cpu(), all);
  EXPECT_THROW(config::list_logical_devices(), OutOfMemory);
  config::set_logical_device_configuration(cpu(), {{.memory_limit = 1_MiB}});
  EXPECT_THAT(config::list_logical_devices(), SizeIs(1));
}

TEST_F(Config, RefusesLimitsThatCannotBeMeant) {
  EXPECT_THAT([] { set_limit(static_cast<std::size_t>(-1)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("18446744073709551615 bytes is -1 as a signed number")));
  EXPECT_THAT([] { set_limit(std::size_t{1} << 47); },
              ThrowsMessage<InvalidArgument>(HasSubstr("more than a process can address; give at most 16.0 TiB")));
  EXPECT_THAT([] { set_limit(1024); },
              ThrowsMessage<InvalidArgument>(HasSubstr("limits are in bytes: did you mean 1024_MiB?")));
  set_limit(8192);
  EXPECT_THAT([] { deallocate(allocate(1_MiB)); },
              ThrowsMessage<OutOfMemory>(HasSubstr("limits are in bytes: did you mean 8192_MiB?")));
}

TEST_F(Config, ChargesOverheadOnlyWhenAsked) {
  EXPECT_FALSE(config::get_charge_overhead());
  config::set_charge_overhead(true);
  set_limit(4_MiB);
  EXPECT_THROW(OwnedBlock(4_MiB), OutOfMemory) << "records take some of it";
  EXPECT_NO_THROW(OwnedBlock(3_MiB + 768_KiB));
  EXPECT_THROW(config::set_charge_overhead(false), FailedPrecondition);
  config::reset_for_testing();
  EXPECT_FALSE(config::get_charge_overhead());
  set_limit(4_MiB);
  EXPECT_NO_THROW(OwnedBlock(4_MiB));
}

}  // namespace
}  // namespace plimsoll
