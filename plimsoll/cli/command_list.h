// The commands of the program and their options as plain data, from which --help and other formats are made.
//
//   for (const CommandInfo& command : list_commands(line)) std::cout << command.name << '\n';
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/cli/options.h"

namespace plimsoll::internal {

enum class ValueKind { kNone, kFile, kFolder, kChoice, kOther };  // kNone: a flag.

struct OptionInfo {
  std::vector<std::string> names;  // "--out", "-o"; for a positional only its name: "TRACE".
  ValueKind kind = ValueKind::kNone;
  std::string value;  // Its placeholder: "FILE", "SIZE"; "" for flags.
  std::vector<std::string> choices;
  std::string about, default_value;
  bool is_positional = false, is_required = false, repeats = false;
};

struct CommandInfo {
  std::string name, about, notes;
  std::vector<OptionInfo> options;  // In the order of --help.
};

std::vector<CommandInfo> list_commands(const CommandLine& line);

// Completions of the program's commands for shells, and a page for man(1).
std::string bash_completions(const std::vector<CommandInfo>& commands);
std::string zsh_completions(const std::vector<CommandInfo>& commands);
std::string fish_completions(const std::vector<CommandInfo>& commands);
std::string manual_page(const std::vector<CommandInfo>& commands, std::string_view version);

}  // namespace plimsoll::internal
