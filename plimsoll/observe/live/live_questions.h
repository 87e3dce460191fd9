// LiveQuestions: answers questions about this process's memory on a socket, $XDG_RUNTIME_DIR/plimsoll/PID.socket.
//
//   holders 10            who holds: the largest groups of live blocks by operation, scope and category
//   trim                  gives free pages back to the system; answers how many bytes
//   flush                 which trace is being recorded, and brings its partial file up to date
//   record PATH SECONDS   records a trace into the new file PATH for so long, then answers
//   follow PATH           records until the asker closes the connection; PATH.partial grows meanwhile
//
// A question is one line; the answer is one JSON object and a newline ({"error": "..."} when it failed), then the
// connection is closed; `follow` answers once it records and continues. Only processes of the same user (SO_PEERCRED)
// get an answer. One client at a time in addition to one that follows; a line longer than 4 KiB or slower than a second
// is refused.
//
//   ask_live_process(4711, "trim")              // {"freed_bytes":1048576}
#pragma once

#include <memory>
#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/observe/live/live_file.h"

namespace plimsoll::internal {

class PLIMSOLL_API LiveQuestions {
 public:
  // Borrows nothing. Throws Error when the socket cannot be made.
  LiveQuestions(const LiveFolder& folder, int process);
  ~LiveQuestions();  // Ends a recording, then removes the socket.
  LiveQuestions(const LiveQuestions&) = delete;
  LiveQuestions& operator=(const LiveQuestions&) = delete;

  void remove() noexcept;           // The name.
  void leave_to_parent() noexcept;  // In a forked child.

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Asks another process; returns the answer without its newline. Throws NotFound when it does not answer there, Error
// when it refuses or takes longer than `seconds`.
PLIMSOLL_API std::string ask_live_process(int process, const std::string& question, double seconds = 10);

// A process that records into `path` for us while this lives.
class PLIMSOLL_API FollowedProcess {
 public:
  // Throws as ask_live_process() does, and FailedPrecondition when it cannot record.
  FollowedProcess(int process, const std::string& path);
  ~FollowedProcess();
  FollowedProcess(const FollowedProcess&) = delete;
  FollowedProcess& operator=(const FollowedProcess&) = delete;
  bool is_alive() const;  // The process still holds the connection.

 private:
  int file_ = -1;
};

}  // namespace plimsoll::internal
