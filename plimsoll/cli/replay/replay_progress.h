// ReplayProgress: one line on standard error that shows the current pass, once a replay has taken a second.
//
//   ReplayProgress progress;
//   replay(trace, {.progress = [&](int pass, int of) { progress.show(pass, of); }});
//
// Silent when standard error is not a terminal. The destructor erases the line.
#pragma once

#include <chrono>

namespace plimsoll::internal {

class ReplayProgress {
 public:
  ReplayProgress();
  ~ReplayProgress();
  ReplayProgress(const ReplayProgress&) = delete;
  ReplayProgress& operator=(const ReplayProgress&) = delete;
  void show(int pass, int of);

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  const bool terminal_;
  bool shown_ = false;
};

}  // namespace plimsoll::internal
