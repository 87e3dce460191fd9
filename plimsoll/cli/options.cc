#include "plimsoll/cli/options.h"

#include <CLI/CLI.hpp>

namespace plimsoll::internal {

void refuse_usage(const std::string& option, const std::string& why) { throw CLI::ValidationError(option, why); }

Option& Option::required() {
  option_.required();
  return *this;
}

Option& Option::value(const std::string& name) {
  option_.type_name(name);
  return *this;
}

Option& Option::check(const OptionCheck& check) {
  option_.check(check);
  return *this;
}

Option& Option::one_of(const std::vector<std::string>& choices) {
  option_.check(CLI::IsMember(choices));
  return *this;
}

Option& Option::show_default() {
  option_.capture_default_str();
  return *this;
}

Option& Option::delimiter(char between) {
  option_.delimiter(between);
  return *this;
}

Option& Option::excludes(const Option& other) {
  option_.excludes(&other.option_);
  return *this;
}

Command::Command(CommandLine& line, const std::string& name, const std::string& about)
    : command_(*line.add_subcommand(name, about)) {}

Option Command::option(const std::string& name, std::string& target, const std::string& about) {
  return Option(*command_.add_option(name, target, about));
}

Option Command::option(const std::string& name, std::vector<std::string>& target, const std::string& about) {
  return Option(*command_.add_option(name, target, about));
}

Option Command::option(const std::string& name, std::vector<std::int64_t>& target, const std::string& about) {
  return Option(*command_.add_option(name, target, about));
}

Option Command::option(const std::string& name, std::int64_t& target, const std::string& about) {
  return Option(*command_.add_option(name, target, about));
}

Option Command::option(const std::string& name, int& target, const std::string& about) {
  return Option(*command_.add_option(name, target, about));
}

Option Command::option(const std::string& name, std::uint64_t& target, const std::string& about) {
  return Option(*command_.add_option(name, target, about));
}

Option Command::option(const std::string& name, std::optional<std::uint64_t>& target, const std::string& about) {
  return Option(*command_.add_option(name, target, about));
}

Option Command::option(const std::string& name, double& target, const std::string& about) {
  return Option(*command_.add_option(name, target, about));
}

void Command::flag(const std::string& name, bool& target, const std::string& about) {
  command_.add_flag(name, target, about);
}

void Command::exactly_one_of(const std::vector<std::string>& names) {
  command_.parse_complete_callback([&command = command_, names] {
    std::string list;
    std::size_t given = 0;
    for (const std::string& name : names) {
      given += command.count(name) > 0;
      list += (list.empty() ? "" : " and ") + name;
    }
    if (given != 1) throw CLI::ValidationError(list, "give exactly one of them");
  });
}

void Command::notes(const std::string& text) { command_.footer(text); }

void Command::run(const std::function<void()>& run) { command_.callback(run); }

}  // namespace plimsoll::internal
