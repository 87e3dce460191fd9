// Completions of "plimsoll" for bash, zsh and fish.
#include <fmt/format.h>

#include "plimsoll/cli/command_list.h"

namespace plimsoll::internal {
namespace {

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::vector<std::string> names_of(const std::vector<CommandInfo>& commands) {
  std::vector<std::string> names;
  for (const CommandInfo& command : commands) names.push_back(command.name);
  return names;
}

std::string option_names(const CommandInfo& command) {
  std::vector<std::string> names;
  for (const OptionInfo& option : command.options)
    if (!option.is_positional) names.insert(names.end(), option.names.begin(), option.names.end());
  return joined(names, " ");
}

const OptionInfo* positional_of(const CommandInfo& command) {
  for (const OptionInfo& option : command.options)
    if (option.is_positional) return &option;
  return nullptr;
}

// The statement that fills COMPREPLY.
std::string bash_reply(const OptionInfo& option) {
  switch (option.kind) {
    case ValueKind::kFile:
      return "_plimsoll_paths -f";
    case ValueKind::kFolder:
      return "_plimsoll_paths -d";
    case ValueKind::kChoice:
      return fmt::format("_plimsoll_words \"{}\"", joined(option.choices, " "));
    default:
      return "COMPREPLY=()";
  }
}

// In single quotes, for all three shells.
std::string in_quotes(std::string_view text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

// A message inside a zsh specification.
std::string zsh_message(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_action(const OptionInfo& option) {
  switch (option.kind) {
    case ValueKind::kFile:
      return "_files";
    case ValueKind::kFolder:
      return "_files -/";
    case ValueKind::kChoice:
      return fmt::format("({})", joined(option.choices, " "));
    default:
      return " ";
  }
}

std::string zsh_specification(const OptionInfo& option, const std::string& name) {
  const std::string value = fmt::format(":{}:{}", zsh_message(option.value), zsh_action(option));
  if (option.is_positional) return in_quotes((option.repeats ? "*" : "") + value);
  return in_quotes(fmt::format("{}{}[{}]{}", option.repeats ? "*" : "", name, zsh_message(option.about),
                               option.kind == ValueKind::kNone ? "" : value));
}

std::string fish_value(const OptionInfo& option) {
  switch (option.kind) {
    case ValueKind::kNone:
      return "";
    case ValueKind::kFile:
      return " -r -F";
    case ValueKind::kFolder:
      return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kChoice:
      return fmt::format(" -x -a {}", in_quotes(joined(option.choices, " ")));
    case ValueKind::kOther:
      return " -x";
  }
  return "";
}

}  // namespace

std::string bash_completions(const std::vector<CommandInfo>& commands) {
  std::string text = R"(# bash completion for plimsoll; `plimsoll completions bash` writes it.
_plimsoll_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "${COMP_WORDS[COMP_CWORD]}"); }
_plimsoll_paths() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "${COMP_WORDS[COMP_CWORD]}")
}
_plimsoll() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
)";
  text +=
      fmt::format("    _plimsoll_words \"{} --help --version\"\n    return\n  fi\n", joined(names_of(commands), " "));
  text += "  case ${COMP_WORDS[1]} in\n";
  for (const CommandInfo& command : commands) {
    text += fmt::format("    {})\n      case $before in\n", command.name);
    for (const OptionInfo& option : command.options)
      if (!option.is_positional && option.kind != ValueKind::kNone)
        text += fmt::format("        {}) {}; return ;;\n", joined(option.names, "|"), bash_reply(option));
    const OptionInfo* positional = positional_of(command);
    text += fmt::format("      esac\n      if [[ $word == -* ]]; then _plimsoll_words \"{}\"\n      else {}; fi ;;\n",
                        option_names(command), positional ? bash_reply(*positional) : "COMPREPLY=()");
  }
  return text + "  esac\n}\ncomplete -F _plimsoll plimsoll\n";
}

std::string zsh_completions(const std::vector<CommandInfo>& commands) {
  std::string text =
      "#compdef plimsoll\n# zsh completion for plimsoll; `plimsoll completions zsh` writes it.\n_plimsoll() {\n";
  text += "  if (( CURRENT == 2 )); then\n    local -a commands=(\n";
  for (const CommandInfo& command : commands)
    text += fmt::format("      {}\n", in_quotes(fmt::format("{}:{}", command.name, zsh_message(command.about))));
  text += "    )\n    _describe command commands\n    return\n  fi\n";
  text += "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n";
  for (const CommandInfo& command : commands) {
    text += fmt::format("    {})\n      _arguments", command.name);
    for (const OptionInfo& option : command.options)
      for (const std::string& name : option.names)
        text += fmt::format(" \\\n        {}", zsh_specification(option, name));
    text += " ;;\n";
  }
  return text + "  esac\n}\n_plimsoll \"$@\"\n";
}

std::string fish_completions(const std::vector<CommandInfo>& commands) {
  std::string text =
      "# fish completion for plimsoll; `plimsoll completions fish` writes it.\ncomplete -c plimsoll -f\n";
  for (const CommandInfo& command : commands) {
    text += fmt::format("complete -c plimsoll -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        in_quotes(command.about));
    const std::string chosen = fmt::format("complete -c plimsoll -n '__fish_seen_subcommand_from {}'", command.name);
    for (const OptionInfo& option : command.options) {
      std::string names;
      for (const std::string& name : option.names)
        if (name.starts_with("-")) names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!option.is_positional)
        text += fmt::format("{}{}{} -d {}\n", chosen, names, fish_value(option), in_quotes(option.about));
      else if (option.kind == ValueKind::kChoice)
        text += fmt::format("{} -a {}\n", chosen, in_quotes(joined(option.choices, " ")));
      else
        text += fmt::format("{} -F\n", chosen);
    }
  }
  return text;
}

}  // namespace plimsoll::internal
