// The options of a command: what the command line accepts, and the variables it sets.
//
//   void add_sum_command(CommandLine& line) {
//     auto arguments = std::make_shared<Arguments>();
//     Command command(line, "sum", "Add up a file");
//     command.option("FILE", arguments->file, "Numbers, one in a line").required();
//     command.option("--batch", arguments->batch, "Lines at a time").check(at_least(1)).show_default();
//     command.flag("--json", arguments->json, "Print one JSON document");
//     command.run([arguments] { sum(*arguments); });
//   }
//
// Targets must live as long as the command line: `run` keeps their owner alive. Only options.cc includes the parsing
// library (CLI11), which takes seconds to compile.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's.
class App;
class Option;
}  // namespace CLI

namespace plimsoll::internal {

using CommandLine = CLI::App;
using OptionCheck = std::function<std::string(const std::string&)>;  // What is wrong with a value; "" when nothing is.

// For errors that only the command itself can detect: exits with 2, like a bad option.
[[noreturn]] void refuse_usage(const std::string& option, const std::string& why);

class Option {
 public:
  explicit Option(CLI::Option& option) noexcept : option_(option) {}
  Option& required();
  Option& value(const std::string& name);  // The value's placeholder in the help: FILE, DIR, SIZE.
  Option& check(const OptionCheck& check);
  Option& one_of(const std::vector<std::string>& choices);
  Option& show_default();           // The help shows the target's current value.
  Option& delimiter(char between);  // Several values in one word: 20,3.
  Option& excludes(const Option& other);

 private:
  CLI::Option& option_;
};

class Command {
 public:
  Command(CommandLine& line, const std::string& name, const std::string& about);

  // `name`: "--batch", "-o,--out"; without dashes it is a positional argument: "TRACE".
  Option option(const std::string& name, std::string& target, const std::string& about);
  Option option(const std::string& name, std::vector<std::string>& target, const std::string& about);
  Option option(const std::string& name, std::vector<std::int64_t>& target, const std::string& about);
  Option option(const std::string& name, int& target, const std::string& about);
  Option option(const std::string& name, std::int64_t& target, const std::string& about);
  Option option(const std::string& name, std::uint64_t& target, const std::string& about);
  Option option(const std::string& name, std::optional<std::uint64_t>& target, const std::string& about);
  Option option(const std::string& name, double& target, const std::string& about);
  void flag(const std::string& name, bool& target, const std::string& about);
  void exactly_one_of(const std::vector<std::string>& names);  // Some of its options, such as "--budget" and "--slack".
  void notes(const std::string& text);                         // Shown below the options in its help.
  void run(const std::function<void()>& run);                  // Called when the command is chosen.

 private:
  CLI::App& command_;
};

}  // namespace plimsoll::internal
