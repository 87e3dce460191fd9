// A subcommand of the program: it adds its options to the command line and runs when it was chosen.
//
// To add one: write `xyz_command.cc` with `void add_xyz_command(CLI::App& app)` and name it in `main.cc`.
// Exit codes: 0 done, 1 failed (thrown Error: a file that is not there, damaged data), 2 wrong usage (what the command
// line itself says: checks of CLI11), 3 does not fit (throw Exit(3)), 130 interrupted by Ctrl-C.
#pragma once

#include <CLI/CLI.hpp>

namespace plimsoll {

// Thrown by a command that has said all it has to say and ends with `code`.
struct Exit {
  int code;
};

void add_plan_command(CLI::App& app);
void add_replay_command(CLI::App& app);
void add_devices_command(CLI::App& app);
void add_demo_command(CLI::App& app);
void add_forecast_command(CLI::App& app);
void add_inspect_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_doctor_command(CLI::App& app);
void add_train_command(CLI::App& app);
void add_predict_command(CLI::App& app);

// Runs the program; what main() does. Never throws.
int run_program(int argc, const char* const* argv);

}  // namespace plimsoll
