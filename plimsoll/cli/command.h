// A subcommand of the program: adds its options to the command line and runs when it is chosen.
//
// To add one: write `xyz_command.cc` with `void add_xyz_command(CommandLine& line)` and name it in `program.cc`.
// A command prints its result on standard output and throws on failure; the program prints the error, as text and with
// --json as a document too (program_failure.h). Exit codes: 0 done, 1 failed (any Error; output that cannot be
// written), 2 wrong usage (detected by the command line itself: checks of CLI11), 3 does not fit (OutOfMemory, or
// Exit{3} after an answer that says so), 75 another process of the job is gone, 130 interrupted by Ctrl-C, 143
// terminated.
#pragma once

#include "plimsoll/cli/options.h"

namespace plimsoll::internal {

// Thrown by a command that has printed everything and ends with `code`.
struct Exit {
  int code;
};

void add_budget_command(CommandLine& line);
void add_plan_command(CommandLine& line);
void add_replay_command(CommandLine& line);
void add_devices_command(CommandLine& line);
void add_demo_command(CommandLine& line);
void add_export_command(CommandLine& line);
void add_forecast_command(CommandLine& line);
void add_inspect_command(CommandLine& line);
void add_report_command(CommandLine& line);
void add_doctor_command(CommandLine& line);
void add_serve_command(CommandLine& line);
void add_top_command(CommandLine& line);
void add_train_command(CommandLine& line);
void add_new_command(CommandLine& line);
void add_predict_command(CommandLine& line);

// Runs the program; called by main(). Never throws.
int run_program(int argc, const char* const* argv);

}  // namespace plimsoll::internal
