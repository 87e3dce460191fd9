#include <algorithm>
#include <cctype>
#include <cstdio>
#include <exception>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/cli/command.h"

namespace plimsoll {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

bool is_command(const CLI::App& app, const std::string& name) {
  const auto all = commands_of(app);
  return std::any_of(all.begin(), all.end(), [&](const CLI::App* command) { return command->get_name() == name; });
}

// Letters to put in, take out or change to make one of the other.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j)
      corner = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, corner + (a[i - 1] == b[j - 1] ? 0 : 1)}));
  }
  return row[b.size()];
}

int refuse_command(const CLI::App& app, const std::string& name) {
  const CLI::App* nearest = nullptr;
  for (const CLI::App* command : commands_of(app))
    if (!nearest || distance(name, command->get_name()) < distance(name, nearest->get_name())) nearest = command;
  if (nearest && distance(name, nearest->get_name()) <= 2)
    std::fprintf(stderr, "plimsoll: no command \"%s\"; did you mean \"%s\"?\n", name.c_str(),
                 nearest->get_name().c_str());
  else
    std::fprintf(stderr, "plimsoll: no command \"%s\"; see plimsoll --help\n", name.c_str());
  return 2;
}

// One line: what is wrong, and where to read more.
int refuse_usage(const CLI::App& app, const CLI::ParseError& error) {
  std::string what = error.what();
  std::replace(what.begin(), what.end(), '\n', ' ');
  while (!what.empty() && (what.back() == ' ' || what.back() == '.')) what.pop_back();
  if (what.size() > 1 && std::isupper(static_cast<unsigned char>(what[0])) &&
      std::islower(static_cast<unsigned char>(what[1])))
    what[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(what[0])));
  const auto chosen = app.get_subcommands();
  const std::string name = chosen.empty() ? "plimsoll" : "plimsoll " + chosen.front()->get_name();
  std::fprintf(stderr, "%s: %s; see %s --help\n", name.c_str(), what.c_str(), name.c_str());
  return 2;
}

}  // namespace

int run_program(int argc, const char* const* argv) {
  CLI::App app("Plimsoll trains and runs models inside a memory budget you set.", "plimsoll");
  app.require_subcommand(1);
  app.set_version_flag("--version", "plimsoll 0.1.0");
  app.footer(
      "Each command explains itself: plimsoll COMMAND --help\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 does not "
      "fit, 130 interrupted.");
  add_demo_command(app);
  add_devices_command(app);
  add_doctor_command(app);
  add_forecast_command(app);
  add_inspect_command(app);
  add_plan_command(app);
  add_predict_command(app);
  add_replay_command(app);
  add_report_command(app);
  add_train_command(app);
  if (argc > 1 && argv[1][0] != '-' && !is_command(app, argv[1])) return refuse_command(app, argv[1]);
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : refuse_usage(app, error);
  } catch (const Exit& exit) {
    return exit.code;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "plimsoll: %s\n", error.what());
    return 1;
  }
}

}  // namespace plimsoll
