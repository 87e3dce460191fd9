// Threads of one process that communicate like the processes of a job: for tests, and for a job of one.
//
//   std::vector<std::shared_ptr<Communicator>> ranks = make_local_communicators(4);
//   std::thread other([&] { Job job(ranks[1], 2s); ... });
//
// A message is copied directly from the sender's memory to the receiver's when both have arrived. When one of them
// closes, the others' calls throw Unavailable. Thread safety: each communicator by one thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/distributed/communicator.h"

namespace plimsoll::distributed {

PLIMSOLL_API std::vector<std::shared_ptr<Communicator>> make_local_communicators(int size);

}  // namespace plimsoll::distributed
