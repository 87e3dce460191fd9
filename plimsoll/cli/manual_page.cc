// plimsoll(1), as man(1) reads it.
#include <fmt/format.h>

#include "plimsoll/cli/command_list.h"

namespace plimsoll::internal {
namespace {

// Text that roff prints unchanged.
std::string plain(std::string_view text) {
  std::string result;
  bool starts_line = true;
  for (const char c : text) {
    if (starts_line && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
    starts_line = c == '\n';
  }
  return result;
}

std::string bold(std::string_view text) { return "\\fB" + plain(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + plain(text) + "\\fR"; }

std::string in_synopsis(const OptionInfo& option) {
  const std::string text =
      option.is_positional ? italic(option.names[0]) : bold(option.names[0]) + " " + italic(option.value);
  return text + (option.repeats ? "..." : "");
}

std::string option_item(const OptionInfo& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += (names.empty() ? "" : ", ") + (option.is_positional ? italic(name) : bold(name));
  if (!option.is_positional && option.kind != ValueKind::kNone) names += " " + italic(option.value);
  std::string about = option.about;
  if (option.kind == ValueKind::kChoice) {
    std::string choices;
    for (const std::string& choice : option.choices) choices += (choices.empty() ? "" : ", ") + choice;
    about += fmt::format(" (one of {})", choices);
  }
  if (!option.default_value.empty() && option.kind != ValueKind::kNone)
    about += fmt::format(" (default: {})", option.default_value);
  return fmt::format(".TP\n{}\n{}.\n", names, plain(about));
}

std::string command_section(const CommandInfo& command) {
  std::string text = fmt::format(".SS {}\n.B plimsoll {}\n", plain(command.name), plain(command.name));
  for (const OptionInfo& option : command.options)
    if (option.is_required) text += in_synopsis(option) + "\n";
  text += fmt::format("[\\fIoptions\\fR]\n.PP\n{}.\n", plain(command.about));
  for (const OptionInfo& option : command.options) text += option_item(option);
  if (!command.notes.empty()) text += fmt::format(".PP\n.nf\n{}\n.fi\n", plain(command.notes));
  return text;
}

}  // namespace

std::string manual_page(const std::vector<CommandInfo>& commands, std::string_view version) {
  std::string text = fmt::format(".TH PLIMSOLL 1 \"\" \"plimsoll {}\" \"User Commands\"\n", version);
  text += ".SH NAME\nplimsoll \\- train and run models inside a memory budget\n";
  text += ".SH SYNOPSIS\n.B plimsoll\n\\fIcommand\\fR [\\fIoptions\\fR]\n.br\n.B plimsoll help\n[\\fIcommand\\fR]\n";
  text +=
      ".SH DESCRIPTION\nPlimsoll trains and runs models inside a memory budget you set: it says in advance what a "
      "training takes, never passes the budget, and shows afterwards where the memory was.\n";
  text += ".SH COMMANDS\n";
  for (const CommandInfo& command : commands) text += command_section(command);
  text += ".SH EXIT STATUS\n";
  for (const auto& [code, about] :
       {std::pair("0", "Done."), std::pair("1", "Failed."), std::pair("2", "Wrong usage."),
        std::pair("3", "Does not fit the budget or the limit."), std::pair("75", "Another process of the job is gone."),
        std::pair("129", "The terminal was closed (SIGHUP), after saving."),
        std::pair("130", "Interrupted by Ctrl\\-C, after saving."),
        std::pair("143", "Terminated by SIGTERM, after saving.")})
    text += fmt::format(".TP\n{}\n{}\n", code, about);
  text +=
      ".PP\nWith \\fB\\-\\-json\\fR a failure also prints a document on standard output, "
      "{\"error\": {\"kind\", \"message\", \"smallest_sufficient_bytes\"}}, with the same exit status.\n";
  text += ".SH ENVIRONMENT\n.TP\nNO_COLOR\nWhen set and not empty, nothing is printed in color.\n";
  text += ".TP\nTERM\nOn a \\fIdumb\\fR terminal nothing is in color and no line is overwritten.\n";
  return text;
}

}  // namespace plimsoll::internal
