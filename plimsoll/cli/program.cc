#include <cstdio>
#include <exception>

#include "plimsoll/cli/command.h"

namespace plimsoll {

int run_program(int argc, const char* const* argv) {
  CLI::App app("Plimsoll trains and runs models inside a memory budget you set.", "plimsoll");
  app.require_subcommand(1);
  app.set_version_flag("--version", "plimsoll 0.1.0");
  app.footer(
      "Each command explains itself: plimsoll COMMAND --help\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 does not "
      "fit.");
  add_demo_command(app);
  add_devices_command(app);
  add_doctor_command(app);
  add_inspect_command(app);
  add_plan_command(app);
  add_predict_command(app);
  add_replay_command(app);
  add_report_command(app);
  add_train_command(app);
  const CLI::App& known = app;
  const auto is_asked = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && known.get_subcommands(is_asked).empty()) {
    std::fprintf(stderr, "plimsoll: no command \"%s\"; see plimsoll --help\n", argv[1]);
    return 2;
  }
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const Exit& exit) {
    return exit.code;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "plimsoll: %s\n", error.what());
    return 1;
  }
}

}  // namespace plimsoll
