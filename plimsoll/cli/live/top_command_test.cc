#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/cli_testing.h"
#include "plimsoll/cli/live/top_screen.h"
#include "plimsoll/observe/live/live_testing.h"
#include "plimsoll/observe/live/live_view.h"
#include "plimsoll/ops/creation.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;
using testing::Not;

LiveCounters process_of(std::uint32_t number, const std::string& name) {
  LiveCounters process;
  process.process = number;
  set_text(process.name, name);
  process.num_devices = 1;
  set_text(process.devices[0].name, "CPU:0");
  process.devices[0].used = 60_MiB;
  process.devices[0].peak = 80_MiB;
  process.devices[0].limit = 1_GiB;
  process.num_budgets = 2;
  set_text(process.budgets[0].name, "all");
  process.budgets[0].limit = 100_MiB;
  process.budgets[0].used = 60_MiB;
  set_text(process.budgets[1].name, "fit");
  process.budgets[1].parent = 0;
  process.budgets[1].limit = 64_MiB;
  process.budgets[1].used = 60_MiB;
  process.by_category[3] = 60_MiB;
  process.num_holders = 1;
  set_text(process.holders[0].op, "conv");
  set_text(process.holders[0].scope, "net/first");
  process.holders[0].category = 3;
  process.holders[0].bytes = 60_MiB;
  return process;
}

TEST(TopScreen, ShowsTheNearestLimitOfEachProcess) {
  const std::string text = top_screen({process_of(17, "trainer"), process_of(9999999, "server")}, {.width = 200});
  EXPECT_THAT(text, HasSubstr("     17 trainer"));
  EXPECT_THAT(text, HasSubstr("9999999 server "));
  EXPECT_THAT(text, HasSubstr("[###########.]  94% of  64.0 MiB  budget fit"));
  EXPECT_THAT(text, HasSubstr("activations"));
  EXPECT_THAT(text, Not(HasSubstr("\033")));
}

TEST(TopScreen, ShowsBudgetsHoldersAndDevicesOfTheChosenOne) {
  const std::vector<LiveCounters> processes = {process_of(17, "trainer")};
  const auto shown = [&](TopSection section) { return top_screen(processes, {.section = section, .chosen = 17}); };
  EXPECT_THAT(shown(TopSection::kBudgets), HasSubstr("\n  all "));
  EXPECT_THAT(shown(TopSection::kBudgets), HasSubstr("\n    fit "));
  EXPECT_THAT(shown(TopSection::kHolders), HasSubstr("conv                     net/first\n"));
  EXPECT_THAT(shown(TopSection::kDevices), HasSubstr("  CPU:0"));
  EXPECT_THAT(shown(TopSection::kProcesses), Not(HasSubstr("CPU:0")));
}

TEST(TopScreen, FitsTheTerminal) {
  const std::vector<LiveCounters> processes(30, process_of(17, "a name that is longer than its column"));
  for (const std::size_t width : {1u, 20u, 60u, 75u, 80u, 200u})
    for (const bool color : {false, true}) {
      const std::string text = top_screen(processes, {.section = TopSection::kHolders,
                                                      .chosen = 17,
                                                      .width = width,
                                                      .height = 10,
                                                      .color = color,
                                                      .unicode = true,
                                                      .keys = true});
      EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 10);
      std::size_t column = 0;
      for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\033') {
          i = text.find('m', i);
        } else if (text[i] == '\n') {
          column = 0;
        } else if ((text[i] & 0xC0) != 0x80) {
          EXPECT_LE(++column, width) << text;
        }
      }
    }
}

TEST(TopScreen, NarrowTerminalsKeepTheBar) {
  const std::vector<LiveCounters> processes = {process_of(17, "trainer")};
  const auto shown = [&](std::size_t width) {
    return top_screen(processes, {.section = TopSection::kBudgets, .chosen = 17, .width = width, .keys = true});
  };
  EXPECT_THAT(shown(80),
              HasSubstr("    17 trainer        -   60.0 MiB   80.0 MiB  [###########.]  94% of  64.0 MiB\n"));
  EXPECT_THAT(shown(80),
              HasSubstr("    fit                      60.0 MiB        0 B   64.0 MiB  [###########.]  94%\n"));
  EXPECT_THAT(shown(60), HasSubstr("    17 trainer   60.0 MiB  [###########.]  94%"));
  EXPECT_THAT(shown(44), HasSubstr("     17 trai   60.0 MiB  [###########.]  94%\n"));
  for (const std::size_t width : {20u, 44u, 60u, 75u}) EXPECT_THAT(shown(width), HasSubstr("q quit")) << width;
  EXPECT_THAT(shown(15), testing::EndsWith("q\n"));
}

TEST(TopScreen, MarksAProcessThatDoesNotUpdate) {
  LiveCounters process = process_of(17, "stuck");
  process.updated_unix_ns = 1'000'000'000;
  process.interval_ms = 1000;
  EXPECT_THAT(top_screen({process}, {.width = 200, .now = 60'000'000'000}), HasSubstr("(not updating)"));
  EXPECT_THAT(top_screen({process}, {.width = 200, .now = 2'000'000'000}), Not(HasSubstr("(not updating)")));
}

TEST(TopCommand, PrintsOnceInAPipe) {
  const OwnRuntimeFolder folder;
  EXPECT_THAT(run_cli({"top"}).out, HasSubstr("No process publishes its memory"));
  const Tensor tensor = ones({1024});
  LiveView view({.name = "tested"});
  view.publish();
  const CliResult list = run_cli({"top", "--all", "--once"});
  EXPECT_EQ(list.code, 0) << list.errors;
  EXPECT_THAT(list.out, HasSubstr(" tested "));
  const CliResult one = run_cli({"top", std::to_string(getpid())});
  EXPECT_THAT(one.out, HasSubstr("OPERATION"));
  EXPECT_THAT(one.out, HasSubstr("DEVICE"));
  const auto document = parse_json(run_cli({"top", "--json"}).out);
  EXPECT_EQ(document["processes"][0]["name"], "tested");
  EXPECT_GE(document["processes"][0]["used_bytes"], 4096);
}

TEST(TopCommand, SaysWhatIsWrong) {
  const OwnRuntimeFolder folder;
  EXPECT_EQ(run_cli({"top", "4000000"}).code, 1);
  EXPECT_THAT(run_cli({"top", "4000000"}).errors, HasSubstr("publishes nothing; start it with PLIMSOLL_LIVE=1"));
  EXPECT_EQ(run_cli({"top", "x"}).code, 2);
  EXPECT_EQ(run_cli({"top", "5", "--all"}).code, 2);
  EXPECT_EQ(run_cli({"top", "--interval", "0"}).code, 2);
  unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(run_cli({"top"}).code, 1);
  EXPECT_THAT(run_cli({"top"}).errors, HasSubstr("XDG_RUNTIME_DIR is not set"));
}

}  // namespace
}  // namespace plimsoll
