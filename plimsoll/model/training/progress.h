// Progress: the output of fit: a bar on terminals, a line per epoch elsewhere, with the memory gauge.
//
//   Epoch 2/10
//   12/16 [===============>....] - eta 0s - loss 0.4312 - accuracy 0.8125 - 41.2 of 64.0 MiB, peak 58.8, recomputing 12
//   %
#pragma once

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>

#include "plimsoll/model/training/logs.h"

namespace plimsoll::internal {

class StepBudget;

struct ProgressOptions {
  int verbose = 1;  // 0: nothing; 1: a bar when `to` is a terminal, else as 2; 2: a line per epoch.
  int epochs = 1;
  std::optional<std::size_t> batches = {};  // Of an epoch, when it is known.
  std::string device = {};                  // Whose memory is shown.
  const StepBudget* budget = nullptr;       // Shown instead when there is no surrounding one.
  std::FILE* to = stdout;
};

class Progress {
 public:
  explicit Progress(const ProgressOptions& options);
  // Called before the first step when a budget makes steps slower.
  void show_slowdown(double predicted);
  void begin_epoch(int epoch);
  void batch_ended(std::size_t done, const Logs& logs);  // Prints at most about twenty times a second.
  void end_epoch(std::size_t batches, const Logs& logs);
  bool wants_batches() const noexcept { return bar_; }
  void set_ranks(int ranks, std::size_t used) noexcept { ranks_ = ranks, used_by_ranks_ = used; }  // Of a job.

  // The parts, for tests.
  static std::string bar(std::size_t done, std::optional<std::size_t> all, std::size_t width = 30);
  // Bar and text in one line of this many columns: first the bar is shortened, then the text is cut.
  static std::string line(std::size_t done, std::optional<std::size_t> all, const std::string& text,
                          std::size_t columns);
  static std::string numbers(const Logs& logs);
  static std::string gauge(std::size_t used, std::size_t limit, std::size_t peak);
  static std::string recomputing(double fraction);     // ", recomputing 12 %", or "" when there is nothing to say.
  static std::string spilled(std::size_t step_bytes);  // ", spilled 1.5 MiB": of the last step; the same.

 private:
  std::string memory() const;
  std::size_t columns() const noexcept;  // Of the terminal.
  void show(const std::string& line, const char* end);

  const ProgressOptions options_;
  const bool bar_;
  int epoch_ = 0, ranks_ = 1;
  std::size_t used_by_ranks_ = 0;
  double begun_ = 0, shown_ = 0;  // Seconds.
  std::size_t width_ = 0;         // Of the line that is shown.
};

}  // namespace plimsoll::internal
