#include "plimsoll/distributed/local_communicator.h"

#include <fmt/format.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>

#include "plimsoll/base/error.h"
#include "plimsoll/distributed/unavailable.h"

namespace plimsoll::distributed {
namespace {

struct Route {
  int from, to, tag;
  auto operator<=>(const Route&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 mistakes it.
};

struct Half {  // A send that waits for its receive, or the other way round.
  Transfer transfer = 0;
  std::byte* bytes = nullptr;
  std::size_t size = 0;
};

// What all of them share.
class Exchange {
 public:
  explicit Exchange(int size) : size_(size) {}
  int size() const noexcept { return size_; }

  Transfer begin(const Route& route, bool sends, std::byte* bytes, std::size_t size) {
    const std::lock_guard lock(mutex_);
    require_open();
    const Transfer transfer = ++last_;
    std::deque<Half>& others = (sends ? receives_ : sends_)[route];
    if (others.empty()) {
      (sends ? sends_ : receives_)[route].push_back({transfer, bytes, size});
      done_[transfer] = false;
      return transfer;
    }
    const Half other = others.front();
    others.pop_front();
    PLIMSOLL_CHECK(other.size == size);
    if (size > 0) std::memcpy(sends ? other.bytes : bytes, sends ? bytes : other.bytes, size);
    done_[transfer] = done_[other.transfer] = true;
    return transfer;
  }
  bool test(Transfer transfer) {
    const std::lock_guard lock(mutex_);
    const auto found = done_.find(transfer);
    PLIMSOLL_CHECK(found != done_.end());
    if (!found->second) {
      require_open();
      return false;
    }
    done_.erase(found);
    return true;
  }
  void close(int rank) noexcept {
    const std::lock_guard lock(mutex_);
    if (closed_by_ < 0) closed_by_ = rank;
    sends_.clear();
    receives_.clear();
  }

 private:
  void require_open() const {
    if (closed_by_ >= 0)
      throw Unavailable(fmt::format("job: rank {} has left it; start the job again", closed_by_), closed_by_);
  }

  const int size_;
  std::mutex mutex_;
  int closed_by_ = -1;  // Guarded by mutex_, as what follows.
  Transfer last_ = 0;
  std::map<Route, std::deque<Half>> sends_, receives_;
  std::unordered_map<Transfer, bool> done_;
};

class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(std::shared_ptr<Exchange> exchange, int rank) : exchange_(std::move(exchange)), rank_(rank) {}

  const char* engine() const noexcept override { return size() == 1 ? "none" : "threads"; }
  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return exchange_->size(); }
  std::string host() const override {
    char name[HOST_NAME_MAX + 1] = {};
    return ::gethostname(name, HOST_NAME_MAX) == 0 ? name : "localhost";
  }
  Transfer send(int to, int tag, std::span<const std::byte> bytes) override {
    return exchange_->begin({rank_, to, tag}, true, const_cast<std::byte*>(bytes.data()), bytes.size());
  }
  Transfer receive(int from, int tag, std::span<std::byte> bytes) override {
    return exchange_->begin({from, rank_, tag}, false, bytes.data(), bytes.size());
  }
  bool test(Transfer transfer) override { return exchange_->test(transfer); }
  void close() noexcept override { exchange_->close(rank_); }
  void abort(int) noexcept override { close(); }
  void finish() noexcept override {}

 private:
  const std::shared_ptr<Exchange> exchange_;
  const int rank_;
};

}  // namespace

Communicator::~Communicator() = default;

std::vector<std::shared_ptr<Communicator>> make_local_communicators(int size) {
  if (size < 1) throw InvalidArgument(fmt::format("job: {} ranks; give 1 or more", size));
  const auto exchange = std::make_shared<Exchange>(size);
  std::vector<std::shared_ptr<Communicator>> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(std::make_shared<LocalCommunicator>(exchange, rank));
  return ranks;
}

}  // namespace plimsoll::distributed
