// The commands of the program and their options as plain data: what --help shows, for those who print it otherwise.
//
//   for (const CommandInfo& command : list_commands(line)) std::cout << command.name << '\n';
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/cli/options.h"

namespace plimsoll {

enum class ValueKind { kNone, kFile, kFolder, kChoice, kOther };  // kNone: a flag.

struct OptionInfo {
  std::vector<std::string> names;  // "--out", "-o"; of a positional its one name: "TRACE".
  ValueKind kind = ValueKind::kNone;
  std::string value;  // What stands for it: "FILE", "SIZE"; "" for flags.
  std::vector<std::string> choices;
  std::string about, default_value;
  bool is_positional = false, is_required = false, repeats = false;
};

struct CommandInfo {
  std::string name, about, notes;
  std::vector<OptionInfo> options;  // In the order of --help.
};

std::vector<CommandInfo> list_commands(const CommandLine& line);

// The program's commands as shells complete them, and as a page for man(1).
std::string bash_completions(const std::vector<CommandInfo>& commands);
std::string zsh_completions(const std::vector<CommandInfo>& commands);
std::string fish_completions(const std::vector<CommandInfo>& commands);
std::string manual_page(const std::vector<CommandInfo>& commands, std::string_view version);

}  // namespace plimsoll
