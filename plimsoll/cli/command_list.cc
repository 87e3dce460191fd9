#include "plimsoll/cli/command_list.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace plimsoll::internal {
namespace {

std::vector<std::string> split_choices(std::string text) {  // "{a,b}"
  std::vector<std::string> choices;
  text = text.substr(1, text.find('}') - 1);
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    choices.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return choices;
}

// CLI11's names of types, and of checks after a colon: "TEXT:{arena,bfc}", ":SIZE", "INT:INT in [1 - 1000]".
void read_type(const CLI::Option& option, OptionInfo& info) {
  std::string type = option.get_type_name();
  const std::size_t colon = type.find(':');
  std::string check = colon == std::string::npos ? "" : type.substr(colon + 1);
  type = type.substr(0, colon);
  if (check.starts_with('{')) {
    info.choices = split_choices(check);
    check.clear();
  }
  if (type.empty()) type = check;
  if (type.starts_with("INT") || type.starts_with("UINT")) type = "N";
  if (type == "FLOAT") type = "NUMBER";
  if (type.empty()) type = info.is_positional ? info.names[0] : "VALUE";
  info.value = type;
  info.kind = !info.choices.empty()                   ? ValueKind::kChoice
              : type == "DIR"                         ? ValueKind::kFolder
              : info.is_positional                    ? ValueKind::kFile
              : type == "FILE" || type == "PREFIX"    ? ValueKind::kFile
              : type.find("csv") != std::string::npos ? ValueKind::kFile
                                                      : ValueKind::kOther;
}

OptionInfo info_of(const CLI::Option& option) {
  OptionInfo info;
  info.about = option.get_description();
  info.default_value = option.get_default_str();
  info.is_required = option.get_required();
  info.is_positional = !option.nonpositional();
  if (info.is_positional) info.names.push_back(option.get_name(true));
  for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
  const bool is_flag = option.get_items_expected_max() == 0;
  if (is_flag) return info;
  info.repeats = option.get_items_expected_max() > 1;
  read_type(option, info);
  return info;
}

}  // namespace

std::vector<CommandInfo> list_commands(const CommandLine& app) {
  std::vector<CommandInfo> list;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    CommandInfo info{command->get_name(), command->get_description(), command->get_footer(), {}};
    if (info.notes == app.get_footer()) info.notes.clear();  // Commands without notes inherit the program's.
    for (const CLI::Option* option : command->get_options()) info.options.push_back(info_of(*option));
    list.push_back(std::move(info));
  }
  return list;
}

}  // namespace plimsoll::internal
