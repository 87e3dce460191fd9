#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/cli/command.h"
#include "plimsoll/cli/command_list.h"
#include "plimsoll/cli/program_failure.h"

namespace plimsoll::internal {
namespace {

constexpr const char* kVersion = "0.1.0";

using Words = std::span<const char* const>;

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

Failure unknown_command(const CLI::App& app, const std::string& name) {
  const std::string nearest = nearest_to(name, command_names(app));
  return {2, "usage",
          nearest.empty() ? fmt::format("no command \"{}\"; see plimsoll --help", name)
                          : fmt::format("no command \"{}\"; did you mean \"{}\"?", name, nearest)};
}

// The first word that looks like an option and is not one of the command's; "" when there is none.
std::string unknown_option(const CLI::App& command, Words words, std::vector<std::string>& known) {
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  for (const char* word : words) {
    std::string name = std::string(word).substr(0, std::string_view(word).find('='));
    if (name == "--") break;
    if (name.starts_with("--") && !contains(known, name)) return name;
  }
  return "";
}

// One line: what is wrong, and where to read more.
Failure wrong_usage(const CLI::App& app, const CLI::ParseError& error, Words words) {
  Failure failure{2, "usage", error.what()};
  const auto chosen = app.get_subcommands();
  if (!chosen.empty()) {
    failure.who += " " + chosen.front()->get_name();
    std::vector<std::string> known;
    if (const std::string name = unknown_option(*chosen.front(), words, known); !name.empty()) {
      const std::string nearest = nearest_to(name, known);
      failure.message = nearest.empty() ? fmt::format("no option \"{}\"; see {} --help", name, failure.who)
                                        : fmt::format("no option \"{}\"; did you mean \"{}\"?", name, nearest);
      return failure;
    }
  }
  std::string& what = failure.message;
  std::replace(what.begin(), what.end(), '\n', ' ');
  while (!what.empty() && (what.back() == ' ' || what.back() == '.')) what.pop_back();
  if (what.size() > 1 && std::isupper(static_cast<unsigned char>(what[0])) &&
      std::islower(static_cast<unsigned char>(what[1])))
    what[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(what[0])));
  what += fmt::format("; see {} --help", failure.who);
  return failure;
}

// For the lists of commands; with_help() implements it.
void add_help_command(CommandLine& app) {
  auto name = std::make_shared<std::string>();
  Command command(app, "help", "Explain a command, as plimsoll COMMAND --help does");
  command.option("COMMAND", *name, "One of the commands in plimsoll --help").value("");
  command.run([name] {});
}

// "help COMMAND" as "COMMAND --help"; other words as they are.
std::vector<const char*> with_help(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<const char*> words(argv, argv + argc);
  if (argc < 2 || argc > 3 || std::strcmp(argv[1], "help") != 0 || (argc == 3 && argv[2][0] == '-')) return words;
  if (argc == 3 && !contains(command_names(app), argv[2])) throw unknown_command(app, argv[2]);
  words.erase(words.begin() + 1);
  words.push_back("--help");
  return words;
}

void add_completions_command(CommandLine& app) {
  auto shell = std::make_shared<std::string>();
  Command command(app, "completions", "Print a script that lets a shell complete commands and options");
  command.option("SHELL", *shell, "The shell").required().one_of({"bash", "zsh", "fish"}).value("");
  command.notes("bash: source <(plimsoll completions bash), in ~/.bashrc. Installed packages include these files.");
  command.run([&app, shell] {
    const std::vector<CommandInfo> commands = list_commands(app);
    std::printf("%s", (*shell == "bash"  ? bash_completions(commands)
                       : *shell == "zsh" ? zsh_completions(commands)
                                         : fish_completions(commands))
                          .c_str());
  });
}

void add_manual_command(CommandLine& app) {
  Command command(app, "manual", "Print the manual page, for man(1)");
  command.notes("Read it: plimsoll manual | man -l -");
  command.run([&app] { std::printf("%s", manual_page(list_commands(app), kVersion).c_str()); });
}

int run(CLI::App& app, int argc, const char* const* argv, bool json) {
  const Words words(argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0));
  try {
    if (!words.empty() && words[0][0] != '-' && !contains(command_names(app), words[0]))
      throw unknown_command(app, words[0]);
    const std::vector<const char*> all = with_help(app, argc, argv);
    app.parse(static_cast<int>(all.size()), all.data());
    return 0;
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : fail(wrong_usage(app, error, words), json);
  } catch (const Failure& failure) {
    return fail(failure, json);
  } catch (const Exit& exit) {
    return exit.code;
  } catch (const std::exception& error) {
    return fail(failure_of(error), json);
  }
}

}  // namespace

int run_program(int argc, const char* const* argv) {
  CLI::App app("Plimsoll trains and runs models inside a memory budget you set.", "plimsoll");
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("plimsoll {}", kVersion));
  app.footer(
      "Each command explains itself: plimsoll COMMAND --help\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 does not "
      "fit,\n75 another process of the job is gone (go on from the last checkpoint), 130 interrupted, 143 terminated.");
  add_budget_command(app);
  add_demo_command(app);
  add_devices_command(app);
  add_doctor_command(app);
  add_export_command(app);
  add_forecast_command(app);
  add_inspect_command(app);
  add_new_command(app);
  add_plan_command(app);
  add_predict_command(app);
  add_replay_command(app);
  add_report_command(app);
  add_serve_command(app);
  add_top_command(app);
  add_train_command(app);
  add_help_command(app);
  add_completions_command(app);
  add_manual_command(app);
  const bool json = std::any_of(argv, argv + argc, [](const char* word) { return std::strcmp(word, "--json") == 0; });
  std::clearerr(stdout);
  const int code = run(app, argc, argv, json);
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "plimsoll: cannot write standard output%s%s; the output is incomplete\n", errno == 0 ? "" : ": ",
               errno == 0 ? "" : std::strerror(errno));
  return code == 0 ? 1 : code;
}

}  // namespace plimsoll::internal
