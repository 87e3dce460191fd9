// Communicator: the processes of a job, numbered, and messages between them. Engines (MPI, threads of one process)
// implement it; everything above it is the same for all of them.
//
//   Transfer out = comm.send(1, 7, bytes), in = comm.receive(1, 7, room);      // Begin; the memory stays in place
//   while (!comm.test(in)) ...;                                                // until test() says true.
//
// Messages from one rank to another with one tag arrive in the order they were sent, and have the requested length. No
// call waits: the caller handles time limits. Thread safety: one thread of a process at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "plimsoll/base/api.h"

namespace plimsoll::distributed {

// A running transfer; 0: none.
using Transfer = std::uint64_t;

class PLIMSOLL_API Communicator {
 public:
  virtual ~Communicator();

  virtual const char* engine() const noexcept = 0;  // "mpi", "threads", "none"
  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  virtual std::string host() const = 0;  // Of this process.

  // They throw Unavailable when the engine knows that the other process is gone. Tags are 0 to kMaxTag.
  static constexpr int kMaxTag = 32767;
  virtual Transfer send(int to, int tag, std::span<const std::byte> bytes) = 0;
  virtual Transfer receive(int from, int tag, std::span<std::byte> bytes) = 0;
  // Whether it has arrived, or has been handed over. Returns true once; the transfer then ends. Throws as send() does.
  virtual bool test(Transfer transfer) = 0;

  // After a failure: no transfer touches memory any more, and every later call throws Unavailable.
  virtual void close() noexcept = 0;
  // Ends the processes of the job, including this one, with this exit code if the engine can; otherwise closes.
  virtual void abort(int exit_code) noexcept = 0;
  // An orderly end, when all have reported that they are done.
  virtual void finish() noexcept = 0;
};

}  // namespace plimsoll::distributed
