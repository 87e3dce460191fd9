// The demo's training: a recurrent network that learns to predict the demo's series, inside a budget.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace plimsoll::internal {

struct DemoOptions {
  std::size_t budget = 0;
  std::filesystem::path out;  // Where checkpoint, logs, trace and report are written.
  int epochs = 10;
  int verbose = 1;          // As in fit.
  double max_slowdown = 8;  // As in fit.
  std::string spill = {};   // As in fit.
  std::string device = {};  // Where the network is; "": on the default device.
};

struct DemoResult {
  std::size_t forecast_bytes = 0, peak_bytes = 0;
  double recomputed = 0;  // The fraction of the steps' work that was recomputing.
  std::size_t spilled_bytes = 0;
  int epochs = 0;
  double seconds = 0;
  float loss = 0, validation_loss = 0;
  float error_metres = 0;         // Mean distance from the truth on the last part of the series, not used in training.
  float simple_error_metres = 0;  // Of predicting the level of 25 hours ago.
  int signal = 0;                 // Ended it early.
  std::string checkpoint, logs, trace, report;  // report is "" when the library has no page.
};

// Throws OutOfMemory when it does not fit the budget, and what files throw.
DemoResult run_demo(const DemoOptions& options);

}  // namespace plimsoll::internal
