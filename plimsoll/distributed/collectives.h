// Collective operations of the processes of a job on bytes: exchange, broadcast, barrier, agree.
//
//   barrier(job);                                        // Returns when all have arrived.
//   broadcast(job, bytes, 0);                            // Everybody's bytes become those of rank 0.
//   Verdict verdict = agree(job, {.error = caught});     // All continue, or none.
//
// Every process makes the same calls in the same order. All throw Unavailable when one does not arrive in time; the job
// is then over. Cost: exchange and agree send a message to every other process, broadcast uses a tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/distributed/job.h"

namespace plimsoll::distributed {

// `all` gets the bytes of each rank, one after the other; each provides the same number.
PLIMSOLL_API void exchange(Job& job, std::span<const std::byte> mine, std::span<std::byte> all, const char* doing);
PLIMSOLL_API void barrier(Job& job);
PLIMSOLL_API void broadcast(Job& job, std::span<std::byte> bytes, int root, const char* doing = "broadcast");

// What a process reports before a change that all make, or none.
struct Opinion {
  std::exception_ptr error;     // Why it cannot, or nullptr.
  bool wants_stop = false;      // It asks to stop after this change.
  std::uint64_t signature = 0;  // Must be the same everywhere; otherwise all throw InvalidArgument, naming `what`.
  const char* what = "the work";
  std::uint64_t bytes_used = 0, bytes_peak = 0;  // For the progress bar.
};
struct Verdict {
  bool stop = false;                             // Some process asked to stop:
  int stopped_by = -1;                           // the lowest rank that did.
  std::uint64_t bytes_used = 0, bytes_peak = 0;  // The sum, and the largest.
};
// Returns when nobody has an error. Otherwise the process with the error rethrows it, and the others throw one of the
// same kind that begins with the rank; with several errors, that of the lowest rank.
PLIMSOLL_API Verdict agree(Job& job, const Opinion& opinion);

}  // namespace plimsoll::distributed
