// run_ranks: a function on several threads that are the ranks of a job; what one throws is thrown after all have ended.
#pragma once

#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "plimsoll/distributed/job.h"
#include "plimsoll/distributed/local_communicator.h"

namespace plimsoll::distributed {

inline void run_ranks(int ranks, const std::function<void(Job&)>& f,
                      std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
  const auto communicators = make_local_communicators(ranks);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        Job job(communicators[static_cast<std::size_t>(rank)], timeout);
        f(job);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace plimsoll::distributed
