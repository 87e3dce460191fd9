#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "plimsoll/base/json.h"
#include "plimsoll/cli/cli_testing.h"
#include "plimsoll/cli/command_list.h"
#include "plimsoll/cli/program_failure.h"

namespace plimsoll::internal {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(Program, HelpOfACommandIsTheCommandsOwn) {
  EXPECT_EQ(run_cli({"help", "replay"}).out, run_cli({"replay", "--help"}).out);
  EXPECT_EQ(run_cli({"help"}).out, run_cli({"--help"}).out);
  const CliResult unknown = run_cli({"help", "repaly"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.errors, HasSubstr("did you mean \"replay\"?"));
}

TEST(Program, SaysWhichOptionOrCommandWasMeant) {
  const CliResult option = run_cli({"demo", "--epoch", "3"});
  EXPECT_EQ(option.code, 2);
  EXPECT_EQ(option.errors, "plimsoll demo: no option \"--epoch\"; did you mean \"--epochs\"?\n");
  EXPECT_THAT(run_cli({"train", "m.json", "--learningrate=3"}).errors, HasSubstr("did you mean \"--learning-rate\"?"));
  EXPECT_THAT(run_cli({"train", "--valid", "x"}).errors, HasSubstr("did you mean \"--validation\"?"));
  EXPECT_EQ(run_cli({"demo", "--zzzzzzzz"}).errors,
            "plimsoll demo: no option \"--zzzzzzzz\"; see plimsoll demo --help\n");
  EXPECT_EQ(run_cli({"dotcor"}).errors, "plimsoll: no command \"dotcor\"; did you mean \"doctor\"?\n");
}

TEST(Program, ASizeMustBePositive) {
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"demo", "--budget", "-1"},
                                             {"train", "m.json", "--data", "d.csv", "--budget", "-1"},
                                             {"predict", "m.json", "--input", "d.csv", "--budget=-1"},
                                             {"forecast", "m.json", "--batch", "1", "--budget", "-1"},
                                             {"replay", "t.csv", "--limit", "-1"},
                                             {"plan", "t.csv", "--capacity", "-1"},
                                             {"plan", "t.csv", "--alignment", "-1"}}) {
    const CliResult result = run_cli(arguments);
    EXPECT_EQ(result.code, 2) << arguments[0];
    EXPECT_THAT(result.errors, HasSubstr("\"-1\": a size must be positive; write for example 4096, 64KiB or 1.5GiB"))
        << arguments[0];
  }
}

TEST(Program, WithJsonAFailureIsADocumentToo) {
  const std::vector<std::pair<std::vector<std::string>, std::pair<int, const char*>>> cases = {
      {{"doctor", "no_such.trace", "--json"}, {1, "not_found"}},
      {{"report", "no_such.trace", "--json"}, {1, "not_found"}},
      {{"plan", "no_such.csv", "--json"}, {1, "not_found"}},
      {{"inspect", "no_such.npz", "--json"}, {1, "not_found"}},
      {{"train", "no_such.json", "--data", "d.csv", "--json"}, {1, "not_found"}},
      {{"predict", "no_such.json", "--input", "d.csv", "--json"}, {1, "not_found"}},
      {{"forecast", "no_such.json", "--batch", "1", "--json"}, {1, "not_found"}},
      {{"demo", "--epoch", "1", "--json"}, {2, "usage"}},
      {{"nothing", "--json"}, {2, "usage"}},
  };
  for (const auto& [arguments, expected] : cases) {
    const CliResult result = run_cli(arguments);
    EXPECT_EQ(result.code, expected.first) << arguments[0];
    const auto json = try_parse_json(result.out);
    ASSERT_TRUE(json.is_object() && json.contains("error")) << arguments[0] << ": " << result.out;
    EXPECT_EQ(json["error"]["kind"], expected.second) << arguments[0];
    EXPECT_TRUE(json["error"]["smallest_sufficient_bytes"].is_null());
    EXPECT_THAT(result.errors, EndsWith(": " + json["error"]["message"].get<std::string>() + "\n"));
  }
  EXPECT_EQ(run_cli({"doctor", "no_such.trace"}).out, "");
}

TEST(Program, EndsWith1WhenItsOutputCannotBeWritten) {
  const auto into = [](const char* path, std::vector<const char*> arguments) {
    dup2(open(path, O_WRONLY), STDOUT_FILENO);
    arguments.insert(arguments.begin(), "plimsoll");
    _exit(run_program(static_cast<int>(arguments.size()), arguments.data()));
  };
  for (const char* command : {"devices", "manual", "help"})
    EXPECT_EXIT(into("/dev/full", {command}), testing::ExitedWithCode(1), "plimsoll: cannot write standard output");
  EXPECT_EXIT(into("/dev/full", {"devices", "--json"}), testing::ExitedWithCode(1), "cannot write standard output");
  EXPECT_EXIT(into("/dev/full", {"completions", "zsh"}), testing::ExitedWithCode(1), "cannot write standard output");
  EXPECT_EXIT(into("/dev/full", {"doctor", "none", "--json"}), testing::ExitedWithCode(1),
              "cannot write standard output");
  EXPECT_EXIT(into("/dev/null", {"devices"}), testing::ExitedWithCode(0), "");
}

TEST(Program, ManualAndCompletionsNameEveryOption) {
  const CliResult manual = run_cli({"manual"});
  EXPECT_THAT(manual.out, StartsWith(".TH PLIMSOLL 1"));
  std::vector<std::string> texts = {manual.out};
  for (const char* shell : {"bash", "zsh", "fish"}) texts.push_back(run_cli({"completions", shell}).out);
  for (const char* command : {"demo", "train", "predict", "replay", "plan", "doctor", "report", "inspect", "devices"}) {
    const std::string help = run_cli({command, "--help"}).out;
    for (std::size_t at = help.find("--"); at != std::string::npos; at = help.find("--", at + 2)) {
      const std::size_t end = help.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at);
      const std::string name = help.substr(at + 2, end - at - 2);
      if (name.empty()) continue;
      std::string in_roff = name;
      for (std::size_t dash = in_roff.find('-'); dash != std::string::npos; dash = in_roff.find('-', dash + 2))
        in_roff.insert(dash, "\\");
      EXPECT_THAT(texts[0], HasSubstr("\\-\\-" + in_roff)) << command;
      EXPECT_THAT(texts[1], HasSubstr("--" + name)) << command;
      EXPECT_THAT(texts[2], HasSubstr("--" + name)) << command;
      EXPECT_THAT(texts[3], HasSubstr("-l " + name)) << command;
    }
  }
  EXPECT_EQ(run_cli({"completions", "csh"}).code, 2);
}

TEST(CommandList, KnowsWhatAnOptionTakes) {
  CLI::App app;
  CLI::App* command = app.add_subcommand("go", "Goes");
  std::string text, folder, model;
  std::vector<std::string> many;
  bool flag = false;
  int number = 3;
  command->add_option("MODEL", model, "The model")->required()->type_name("FILE");
  command->add_option("-o,--out", folder, "Where")->type_name("DIR");
  command->add_option("--kind", text, "Which")->check(CLI::IsMember({"one", "two"}));
  command->add_option("--many", many, "Some");
  command->add_option("--number", number, "How many")->check(CLI::Range(1, 9))->capture_default_str();
  command->add_flag("--flag", flag, "Whether");
  const std::vector<CommandInfo> list = list_commands(app);
  ASSERT_EQ(list.size(), 1u);
  const std::vector<OptionInfo>& options = list[0].options;
  ASSERT_EQ(options.size(), 7u);  // With --help.
  EXPECT_EQ(options[1].kind, ValueKind::kFile);
  EXPECT_TRUE(options[1].is_positional && options[1].is_required);
  EXPECT_THAT(options[2].names, testing::ElementsAre("--out", "-o"));
  EXPECT_EQ(options[2].kind, ValueKind::kFolder);
  EXPECT_THAT(options[3].choices, testing::ElementsAre("one", "two"));
  EXPECT_TRUE(options[4].repeats);
  EXPECT_EQ(options[5].value, "N");
  EXPECT_EQ(options[5].default_value, "3");
  EXPECT_EQ(options[6].kind, ValueKind::kNone);
}

TEST(NearestTo, FindsTyposButNothingFar) {
  const std::vector<std::string> words = {"--epochs", "--batch", "--budget"};
  EXPECT_EQ(nearest_to("--epoch", words), "--epochs");
  EXPECT_EQ(nearest_to("--bugdet", words), "--budget");
  EXPECT_EQ(nearest_to("--optimizer", words), "");
}

}  // namespace
}  // namespace plimsoll::internal
