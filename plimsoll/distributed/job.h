// Job: the processes that train together. Each of them makes one object at the start and keeps it until the end.
//
//   mpirun -n 4 ./train
//
//   distributed::Job job({.engine = "mpi", .timeout = std::chrono::seconds(30)});
//   if (job.rank() == 0) std::cout << job.size() << " processes\n";
//   model.fit(x, y, {.batch_size = 256, .distributed = {.job = &job, .slices = 32}});
//
// Engines: "mpi", an adapter library that is loaded now (NotFound without it); "none", this process alone, with the
// same code. What processes do together succeeds for all of them or for none: a process that does not answer within the
// timeout is Unavailable in the others, and the job is over for them. The destructor waits for the others up to the
// timeout; when it runs because of an exception it does not, and the launcher ends the others. Thread safety: one
// thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"

namespace plimsoll::distributed {

class Communicator;

struct JobOptions {
  std::string engine = "mpi";
  // How long a process may keep the others waiting. Choose it longer than the longest step.
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
};

// What this process has sent and received, without the overhead of engines.
struct Traffic {
  std::uint64_t sent_bytes = 0, received_bytes = 0, sent_messages = 0;
  std::uint64_t early_bytes = 0;  // Of those sent, gradients that left while others were still computed.
  double waited_seconds = 0;      // For others.
};

class PLIMSOLL_API Job {
 public:
  // Throws InvalidArgument for an unknown engine or an invalid timeout, NotFound, Unavailable.
  explicit Job(const JobOptions& options = {});
  explicit Job(std::shared_ptr<Communicator> communicator,
               std::chrono::milliseconds timeout = std::chrono::seconds(30));
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  int rank() const noexcept;
  int size() const noexcept;
  const char* engine() const noexcept;
  const std::string& host(int rank) const { return hosts_.at(static_cast<std::size_t>(rank)); }
  std::string describe(int rank) const;  // "rank 3 (host b)"
  std::chrono::milliseconds timeout() const noexcept { return timeout_; }
  const Traffic& traffic() const noexcept { return traffic_; }
  bool is_open() const noexcept { return open_; }
  // Ends all processes of the job with this exit code, if the engine can.
  void abort(int exit_code) noexcept;
  // What the destructor does without an exception: an orderly end, when all ranks leave.
  void leave() noexcept;

  // For operations made of messages (collectives.h). Tags count calls, the same in all processes.
  int next_tag() noexcept;
  static constexpr int kGatherTag = 32766;   // For messages to the first rank, one after the other.
  static constexpr int kReplyTag = 32765;    // For a ShardStore, like the next one.
  static constexpr int kRequestTag = 32764;  // Tags that count calls are smaller.
  struct Message {
    std::uint64_t transfer = 0;
    int peer = 0;
  };
  Message send(int to, int tag, std::span<const std::byte> bytes);
  Message receive(int from, int tag, std::span<std::byte> bytes);
  // Waits for all of them. Throws Unavailable after the timeout, or when the engine reports a failure; the job is then
  // over.
  void wait(std::span<const Message> messages, const char* doing);
  // Whether all of them have come or gone, without waiting; those that have leave the list. Throws as wait() does, but
  // for the timeout.
  bool are_done(std::vector<Message>& messages, const char* doing);
  void count_early(std::uint64_t bytes) noexcept { traffic_.early_bytes += bytes; }
  // Called again and again while this process waits, to answer others; what it throws, wait() throws. {}: no longer.
  void set_while_waiting(std::function<void()> serve) { while_waiting_ = std::move(serve); }
  // What errors say it was in: "step 120".
  void set_activity(std::string activity) { activity_ = std::move(activity); }
  const std::string& activity() const noexcept { return activity_; }

 private:
  void greet();
  void forget_done(std::vector<Message>& messages);
  [[noreturn]] void give_up(int peer, const char* doing, const std::string& why);

  std::shared_ptr<Communicator> communicator_;
  const std::chrono::milliseconds timeout_;
  std::vector<std::string> hosts_;
  std::vector<std::int64_t> heard_;  // When, in nanoseconds.
  std::vector<Message> left_;        // While it waits.
  std::function<void()> while_waiting_;
  std::string activity_ = "its beginning";
  Traffic traffic_;
  int tag_ = 0;
  bool open_ = true;
  int exceptions_ = 0;  // Under way when it was made.
};

// How a fit is distributed over the processes of a job; see docs/distributed.md.
struct TrainingOptions {
  Job* job = nullptr;  // Must outlive the fit. None: this process trains alone.
  // A batch is cut into this many slices, whose gradients are added in one fixed tree: the same slices give the same
  // bits for any number of processes. 0: one per process, which is fastest, and depends on their number.
  std::size_t slices = 0;
  bool shard_optimizer = false;  // Each process keeps only the optimizer's state of its part of the parameters.
  // It also keeps only its part of the parameters during the steps of an epoch, and fetches the rest for each operation
  // that reads them. Includes shard_optimizer.
  bool shard_parameters = false;
};

}  // namespace plimsoll::distributed
