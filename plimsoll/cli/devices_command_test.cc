#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/cli_testing.h"
#include "plimsoll/device/config.h"

namespace plimsoll {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

class DevicesCommand : public testing::Test {
 protected:
  void SetUp() override { config::reset_for_testing(); }
  void TearDown() override { config::reset_for_testing(); }

  static std::string run(std::vector<std::string> arguments, int expected_code = 0) {
    arguments.insert(arguments.begin(), "devices");
    const CliResult result = run_cli(arguments);
    EXPECT_EQ(result.code, expected_code);
    return result.out;
  }
};

TEST_F(DevicesCommand, PrintsDevicesAndWhereTheDefaultLimitComesFrom) {
  const std::string text = run({});
  EXPECT_THAT(text, ContainsRegex("physical device +memory"));
  EXPECT_THAT(text, HasSubstr("CPU:0"));
  EXPECT_THAT(text, ContainsRegex("available memory +[0-9.]+ [KMG]iB"));
  EXPECT_THAT(text, ContainsRegex("Default limit: .* bytes\\), from "));
  EXPECT_THAT(text, HasSubstr("vm.max_map_count"));
}

TEST_F(DevicesCommand, PrintsOneJsonDocument) {
  const PhysicalDevice cpu = config::list_physical_devices("CPU").at(0);
  config::set_logical_device_configuration(cpu, {{.memory_limit = 32_MiB}, {.memory_limit = 16_MiB}});
  config::set_memory_growth(cpu, true);
  const auto json = parse_json(run({"--json"}));
  EXPECT_EQ(json["physical_devices"][0]["name"], "CPU:0");
  EXPECT_EQ(json["physical_devices"][0]["memory_bytes"], cpu.memory_bytes);
  ASSERT_GE(json["logical_devices"].size(), 2u);
  EXPECT_EQ(json["logical_devices"][1]["name"], "CPU:1");
  EXPECT_EQ(json["logical_devices"][1]["memory_limit"], 16_MiB);
  EXPECT_EQ(json["logical_devices"][1]["growth"], true);
  EXPECT_GE(json["default_limit"]["bytes"], 1_MiB);
  EXPECT_EQ(json["default_limit"]["candidates"][0]["from"], "available memory");
  EXPECT_GE(json["page_bytes"], 4096);
  EXPECT_GE(json["threads"], 1);
  EXPECT_TRUE(json["max_map_count"].is_number());
}

TEST_F(DevicesCommand, ShowsVariablesOfTheEnvironmentAndWhetherTheyAreInForce) {
  EXPECT_TRUE(parse_json(run({"--json"}))["environment"].empty());
  config::reset_for_testing();
  setenv("PLIMSOLL_MEMORY_LIMIT", "512MiB", 1);
  setenv("PLIMSOLL_LOG_LEVEL", "error", 1);
  config::set_log_level("warning");
  const auto json = parse_json(run({"--json"}));
  EXPECT_EQ(json["logical_devices"][0]["memory_limit"], 512_MiB);
  ASSERT_EQ(json["environment"].size(), 2u);
  EXPECT_EQ(json["environment"][0]["name"], "PLIMSOLL_MEMORY_LIMIT");
  EXPECT_EQ(json["environment"][0]["value"], "512MiB");
  EXPECT_EQ(json["environment"][0]["in_force"], true);
  EXPECT_EQ(json["environment"][1]["in_force"], false);
  const std::string text = run({});
  EXPECT_THAT(text, ContainsRegex("PLIMSOLL_MEMORY_LIMIT +512MiB +yes"));
  EXPECT_THAT(text, ContainsRegex("PLIMSOLL_LOG_LEVEL +error +no"));
  config::reset_for_testing();
  setenv("PLIMSOLL_MEMORY_LIMIT", "much", 1);
  run({}, 1);
  unsetenv("PLIMSOLL_MEMORY_LIMIT");
  unsetenv("PLIMSOLL_LOG_LEVEL");
}

TEST_F(DevicesCommand, RefusesUnknownArguments) { run({"--loud"}, 2); }

}  // namespace
}  // namespace plimsoll
