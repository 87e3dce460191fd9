// LiveView: while it lives, other programs of the same user can watch this process's memory.
//
//   LiveView live({.name = "trainer"});         // then, in another terminal: plimsoll top
//
// It publishes what the arenas and budgets hold in $XDG_RUNTIME_DIR/plimsoll/PID, a file that only the user can read,
// and answers questions on a socket next to it: who holds, trim, record a trace (live_questions.h). Nothing is
// published without it; PLIMSOLL_LIVE=1 in the environment makes one when the runtime starts. Another LiveView of the
// process replaces the one from the environment.
//
// Cost: a MemoryMonitor's thread writes about 10 KiB per interval and a second thread waits for questions; allocations
// are not affected. Blocks are counted by category so rarely that it takes at most a thousandth of the time: a
// millisecond for about 30,000 live blocks, during which threads that allocate wait. Thread safety: make and destroy it
// on any thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "plimsoll/base/api.h"

namespace plimsoll {

struct LiveOptions {
  std::string name = {};  // What `plimsoll top` calls the process; the program's name when empty.
  std::chrono::milliseconds every{1000};
};

class PLIMSOLL_API LiveView {
 public:
  // Throws FailedPrecondition without XDG_RUNTIME_DIR, when the folder is another user's, and while the process has a
  // LiveView already; InvalidArgument for an interval below 10 ms; Error when the system refuses.
  explicit LiveView(const LiveOptions& options = {});
  ~LiveView();  // Stops publishing. Does nothing in a forked child.
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  std::filesystem::path file() const;  // Where the counters are.
  void publish();                      // Publishes now; for programs that end soon.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Called by the runtime when it has started: publishes when PLIMSOLL_LIVE is 1, until the process ends. A failure is
// logged as a warning.
void start_live_view_from_environment() noexcept;

}  // namespace plimsoll
