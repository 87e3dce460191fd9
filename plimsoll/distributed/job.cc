#include "plimsoll/distributed/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/distributed/collectives.h"
#include "plimsoll/distributed/communicator.h"
#include "plimsoll/distributed/engine_library.h"
#include "plimsoll/distributed/local_communicator.h"
#include "plimsoll/distributed/unavailable.h"

namespace plimsoll::distributed {
namespace {

std::shared_ptr<Communicator> communicator_of(const std::string& engine) {
  if (engine == "none") return make_local_communicators(1)[0];
  if (engine == "mpi") return load_engine(engine);
  throw InvalidArgument(fmt::format("job: engine \"{}\" is not known; use \"mpi\" or \"none\"", engine));
}

std::chrono::milliseconds checked(std::chrono::milliseconds timeout) {
  if (timeout.count() <= 0)
    throw InvalidArgument(fmt::format("job: the timeout is {} ms; give 1 or more", timeout.count()));
  return timeout;
}

// Busy at first, then asleep for longer and longer: processes may be more than processors.
class Patience {
 public:
  void pause() {
    constexpr int kBusy = 64;
    if (++turns_ < kBusy) return std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(std::min(20 + turns_, 300)));
  }

 private:
  int turns_ = 0;
};

}  // namespace

Job::Job(const JobOptions& options)
    : communicator_((checked(options.timeout), communicator_of(options.engine))),
      timeout_(options.timeout),
      exceptions_(std::uncaught_exceptions()) {
  greet();
}

Job::Job(std::shared_ptr<Communicator> communicator, std::chrono::milliseconds timeout)
    : communicator_(std::move(communicator)), timeout_(checked(timeout)), exceptions_(std::uncaught_exceptions()) {
  greet();
}

// Everybody's host, for errors.
void Job::greet() {
  constexpr std::size_t kHost = 64;
  const auto count = static_cast<std::size_t>(size());
  hosts_.assign(count, "");
  heard_.assign(count, monotonic_ns());
  std::vector<char> names(count * kHost);
  char mine[kHost] = {};
  std::strncpy(mine, communicator_->host().c_str(), kHost - 1);
  exchange(*this, std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(names)), "hello");
  for (std::size_t i = 0; i < count; ++i) hosts_[i] = names.data() + i * kHost;
  traffic_ = {};
}

Job::~Job() {
  if (size() > 1 && std::uncaught_exceptions() > exceptions_)
    communicator_->close();
  else
    leave();
}

void Job::leave() noexcept {
  if (!open_) return;
  try {
    set_activity("its end");
    tag_ = 0;  // Whatever was said before.
    barrier(*this);
    communicator_->finish();
  } catch (const std::exception&) {  // The others are gone, and so is what could be told of them.
  }
  open_ = false;
}

int Job::rank() const noexcept { return communicator_->rank(); }
int Job::size() const noexcept { return communicator_->size(); }
const char* Job::engine() const noexcept { return communicator_->engine(); }

std::string Job::describe(int rank) const { return fmt::format("rank {} (host {})", rank, host(rank)); }

void Job::abort(int exit_code) noexcept {
  open_ = false;
  communicator_->abort(exit_code);
}

int Job::next_tag() noexcept {
  tag_ = (tag_ + 1) % kRequestTag;
  return tag_;
}

Job::Message Job::send(int to, int tag, std::span<const std::byte> bytes) {
  traffic_.sent_bytes += bytes.size();
  ++traffic_.sent_messages;
  return {communicator_->send(to, tag, bytes), to};
}

Job::Message Job::receive(int from, int tag, std::span<std::byte> bytes) {
  traffic_.received_bytes += bytes.size();
  return {communicator_->receive(from, tag, bytes), from};
}

void Job::forget_done(std::vector<Message>& messages) {
  std::erase_if(messages, [&](const Message& message) {
    if (!communicator_->test(message.transfer)) return false;
    heard_[static_cast<std::size_t>(message.peer)] = monotonic_ns();
    return true;
  });
}

bool Job::are_done(std::vector<Message>& messages, const char* doing) {
  try {
    forget_done(messages);
  } catch (const Unavailable& error) {
    give_up(error.rank(), doing, error.what());
  }
  return messages.empty();
}

void Job::wait(std::span<const Message> messages, const char* doing) {
  left_.assign(messages.begin(), messages.end());
  const std::int64_t begun = monotonic_ns();
  const std::int64_t limit = std::chrono::duration_cast<std::chrono::nanoseconds>(timeout_).count();
  Patience patience;
  try {
    while (true) {
      forget_done(left_);
      const std::int64_t now = monotonic_ns();
      if (left_.empty()) {
        traffic_.waited_seconds += static_cast<double>(now - begun) * 1e-9;
        return;
      }
      if (now - begun > limit) break;
      if (while_waiting_) while_waiting_();
      patience.pause();
    }
  } catch (const Unavailable& error) {
    give_up(error.rank(), doing, error.what());
  }
  const auto silent = std::min_element(left_.begin(), left_.end(), [&](const Message& a, const Message& b) {
    return heard_[static_cast<std::size_t>(a.peer)] < heard_[static_cast<std::size_t>(b.peer)];
  });
  give_up(silent->peer, doing, "");
}

void Job::give_up(int peer, const char* doing, const std::string& why) {
  open_ = false;
  communicator_->close();
  const double seconds = static_cast<double>(timeout_.count()) / 1000;
  const std::string who = peer >= 0 && peer < size() ? describe(peer) : "another rank";
  const std::string what = why.empty() ? fmt::format("did not answer for {:g} s", seconds)
                                       : fmt::format("is gone ({})", why.substr(0, why.find(';')));
  throw Unavailable(fmt::format("job: {} {} in {}, {}; see what became of it, and restart from the last checkpoint",
                                who, what, activity_, doing),
                    peer);
}

}  // namespace plimsoll::distributed
