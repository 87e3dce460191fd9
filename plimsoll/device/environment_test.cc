#include "plimsoll/device/environment.h"

#include <gmock/gmock.h>

#include "plimsoll/device/allocate.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/device/device_testing.h"
#include "plimsoll/device/runtime.h"

namespace plimsoll {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class EnvironmentTest : public DeviceFixture {
 protected:
  static void set(const char* name, const char* value) { setenv(name, value, 1); }

  template <class F>
  static std::string refusal(F&& f) {
    try {
      f();
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "nothing was refused";
  }
  static std::vector<std::string> names(const std::vector<PhysicalDevice>& devices) {
    std::vector<std::string> result;
    for (const PhysicalDevice& device : devices) result.push_back(device.name);
    return result;
  }

  const std::vector<PhysicalDevice> machine_ = {
      {"CPU:0", "CPU", 8_GiB}, {"OPENCL:0", "OPENCL", 4_GiB}, {"OPENCL:1", "OPENCL", 4_GiB}};
};

TEST_F(EnvironmentTest, LimitsEachDeviceThatTheProgramDidNot) {
  set("PLIMSOLL_MEMORY_LIMIT", "512MiB");
  EXPECT_EQ(memory_stats().bytes_limit, 512_MiB);
  const OwnedBlock most(511_MiB);
  EXPECT_THROW(OwnedBlock(2_MiB), OutOfMemory);
  EXPECT_NO_THROW(set_limit(512_MiB)) << "in force already";
  EXPECT_THROW(set_limit(256_MiB), FailedPrecondition);
}

TEST_F(EnvironmentTest, YieldsToLimitsAndFractionsOfTheProgram) {
  set("PLIMSOLL_MEMORY_LIMIT", "512MiB");
  set_limit(64_MiB);
  EXPECT_EQ(memory_stats().bytes_limit, 64_MiB);
  EXPECT_FALSE(environment_variables().at(0).in_force);
  config::reset_for_testing();
  config::set_memory_fraction(cpu(), 0.01);
  EXPECT_EQ(memory_stats().bytes_limit, static_cast<std::size_t>(0.01 * static_cast<double>(cpu().memory_bytes)));
}

TEST_F(EnvironmentTest, IsSharedByLogicalDevicesWithoutLimits) {
  set("PLIMSOLL_MEMORY_LIMIT", "512MiB");
  config::set_logical_device_configuration(cpu(), {{.memory_limit = 128_MiB}, {}, {}});
  EXPECT_EQ(memory_stats("CPU:0").bytes_limit, 128_MiB);
  EXPECT_EQ(memory_stats("CPU:1").bytes_limit, 192_MiB);
  EXPECT_EQ(memory_stats("CPU:2").bytes_limit, 192_MiB);
  EXPECT_TRUE(environment_variables().at(0).in_force);
}

TEST_F(EnvironmentTest, RefusesInvalidLimits) {
  for (const char* value : {"", "lots", "-5", "12 parsecs", "1024", "0", "18446744073709551615", "9999999GiB"}) {
    set("PLIMSOLL_MEMORY_LIMIT", value);
    EXPECT_THAT(refusal([] { static_cast<void>(memory_stats()); }),
                AllOf(HasSubstr(std::string("environment: PLIMSOLL_MEMORY_LIMIT is \"") + value + "\""),
                      HasSubstr("such as 512MiB")));
    EXPECT_FALSE(Runtime::instance().started());
  }
  set("PLIMSOLL_MEMORY_LIMIT", "16 MiB");
  EXPECT_EQ(memory_stats().bytes_limit, 16_MiB) << "a good value starts it";
}

TEST_F(EnvironmentTest, ChoosesAndOrdersVisibleDevicesAndAlwaysKeepsTheHost) {
  const Settings settings;
  const auto visible = [&](const char* value) {
    set("PLIMSOLL_VISIBLE_DEVICES", value);
    return names(visible_devices(settings, machine_, read_device_environment(machine_)));
  };
  EXPECT_THAT(visible("CPU:0,OPENCL:1"), ElementsAre("CPU:0", "OPENCL:1"));
  EXPECT_THAT(visible("opencl:1,OPENCL:0"), ElementsAre("CPU:0", "OPENCL:1", "OPENCL:0"));
  EXPECT_THAT(visible("OPENCL:1,CPU:0"), ElementsAre("CPU:0", "OPENCL:1"));  // The default device stays.
  EXPECT_THAT(visible(""), ElementsAre("CPU:0"));
  unsetenv("PLIMSOLL_VISIBLE_DEVICES");
  EXPECT_THAT(names(visible_devices(settings, machine_, read_device_environment(machine_))),
              ElementsAre("CPU:0", "OPENCL:0", "OPENCL:1"));
}

TEST_F(EnvironmentTest, NumbersVisibleDevicesFromZero) {
  set("PLIMSOLL_VISIBLE_DEVICES", "OPENCL:1");
  set("PLIMSOLL_MEMORY_LIMIT", "1GiB");
  std::vector<std::string> warnings;
  const auto plans =
      plan_logical_devices({}, machine_, {.bytes = 6_GiB, .from = "test"}, warnings, read_device_environment(machine_));
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[1].device.name, "OPENCL:0");
  EXPECT_EQ(plans[1].device.physical_device, "OPENCL:1");
  EXPECT_EQ(plans[1].device.memory_limit, 1_GiB);
}

TEST_F(EnvironmentTest, LeavesVisibleDevicesToTheProgramWhenItChose) {
  set("PLIMSOLL_VISIBLE_DEVICES", "CPU:0");
  Settings settings;
  settings.visible_chosen = true;
  settings.hidden = {"CPU:0"};
  EXPECT_THAT(names(visible_devices(settings, machine_, read_device_environment(machine_))),
              ElementsAre("CPU:0", "OPENCL:0", "OPENCL:1"));  // The processor cannot be hidden.
  settings.hidden = {"OPENCL:0"};
  EXPECT_THAT(names(visible_devices(settings, machine_, read_device_environment(machine_))),
              ElementsAre("CPU:0", "OPENCL:1"));
}

TEST_F(EnvironmentTest, RefusesDevicesThatTheMachineDoesNotHave) {
  for (const char* value : {"GPU:0", "CPU", "CPU:0,", "CPU:0,CPU:0", "CPU:0 OPENCL:0", "all"}) {
    set("PLIMSOLL_VISIBLE_DEVICES", value);
    EXPECT_THAT(refusal([] { static_cast<void>(memory_stats()); }),
                AllOf(HasSubstr(std::string("environment: PLIMSOLL_VISIBLE_DEVICES is \"") + value + "\""),
                      HasSubstr("(CPU:0)")));
  }
}

TEST_F(EnvironmentTest, SetsThreadsUnlessTheProgramDoes) {
  set("PLIMSOLL_THREADS", "3");
  EXPECT_EQ(config::get_threads(), 3);
  config::set_threads(2);
  EXPECT_EQ(config::get_threads(), 2);
  config::reset_for_testing();
  config::set_threads(1);
  static_cast<void>(memory_stats());  // The start does not change what the program chose.
  EXPECT_EQ(config::get_threads(), 1);
  EXPECT_FALSE(environment_variables().at(0).in_force);
}

TEST_F(EnvironmentTest, RefusesInvalidThreadCounts) {
  for (const char* value : {"", "0", "-1", "two", "1.5", "1025", "99999999999999"}) {
    set("PLIMSOLL_THREADS", value);
    EXPECT_THAT(refusal([] { static_cast<void>(memory_stats()); }),
                std::string("environment: PLIMSOLL_THREADS is \"") + value + "\"; give a number from 1 to 1024");
    EXPECT_THROW(static_cast<void>(config::get_threads()), InvalidArgument);
  }
}

TEST_F(EnvironmentTest, SetsTheLogLevelUnlessTheProgramDoes) {
  set("PLIMSOLL_LOG_LEVEL", "error");
  static_cast<void>(memory_stats());
  EXPECT_EQ(log_level(), LogLevel::error);
  config::set_log_level("info");
  EXPECT_EQ(config::get_log_level(), "info");
  config::reset_for_testing();
  set("PLIMSOLL_LOG_LEVEL", "loud");
  EXPECT_THAT(refusal([] { static_cast<void>(memory_stats()); }),
              "environment: PLIMSOLL_LOG_LEVEL is \"loud\"; give \"debug\", \"info\", \"warning\", \"error\" or "
              "\"off\"");
}

TEST_F(EnvironmentTest, ListsTheVariablesThatAreSet) {
  EXPECT_THAT(environment_variables(), IsEmpty());
  config::reset_for_testing();
  set("PLIMSOLL_THREADS", "2");
  set("PLIMSOLL_FORCE_ALLOW_GROWTH", "true");
  const auto variables = environment_variables();
  ASSERT_EQ(variables.size(), 2u);
  EXPECT_EQ(variables[0].name, "PLIMSOLL_THREADS");
  EXPECT_EQ(variables[0].value, "2");
  EXPECT_TRUE(variables[0].in_force);
  EXPECT_EQ(variables[1].name, "PLIMSOLL_FORCE_ALLOW_GROWTH");
}

}  // namespace
}  // namespace plimsoll
