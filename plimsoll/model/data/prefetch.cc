#include "plimsoll/model/data/prefetch.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "plimsoll/device/device_scope.h"
#include "plimsoll/memory/budget_node.h"
#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {
namespace {

// The device and the budget that the calling thread allocates from, for use on another thread.
class Charge {
 public:
  Charge() : token_(make_token()) {
    if (const Meter* budget = ThreadMemory::current().budget) node_ = static_cast<BudgetNode*>(budget->center);
  }
  std::string device() const { return token_.device(); }
  void take_over() const {
    ThreadMemory& thread = ThreadMemory::current();
    if (node_ != nullptr) thread.budget = &thread.meter(*node_);
  }
  static void leave() { ThreadMemory::current().budget = nullptr; }

 private:
  static Tensor make_token() {
    const Untracked outside;
    return make_tensor({.op = "prefetch", .category = Category::kInputs}, {1}, u8, current_device());
  }
  const Tensor token_;  // A block of the budget, which keeps it alive.
  BudgetNode* node_ = nullptr;
};

class PrefetchStream final : public ExampleStream {
 public:
  PrefetchStream(std::unique_ptr<ExampleStream> from, std::size_t count, std::size_t max_bytes)
      : from_(std::move(from)), count_(count), max_bytes_(max_bytes) {
    thread_ = std::thread([this] { run(); });
  }
  ~PrefetchStream() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  bool next(Example& out) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !ready_.empty() || ended_; });
    if (ready_.empty()) {
      if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
      return false;
    }
    out = std::move(ready_.front());
    ready_.pop_front();
    bytes_ -= bytes_of(out);
    lock.unlock();
    changed_.notify_all();
    return true;
  }

 private:
  void run() {
    try {
      const DeviceScope device(charge_.device());
      charge_.take_over();
      Example example;
      while (from_->next(example)) {
        const std::size_t bytes = bytes_of(example);
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return has_room(bytes) || stop_; });
        if (stop_) break;
        ready_.push_back(std::move(example));
        bytes_ += bytes;
        lock.unlock();
        changed_.notify_all();
        example = {};
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
    from_.reset();
    Charge::leave();
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
  }
  bool has_room(std::size_t bytes) const {
    return ready_.empty() || (ready_.size() < count_ && (max_bytes_ == 0 || bytes_ + bytes <= max_bytes_));
  }

  std::unique_ptr<ExampleStream> from_;  // The thread's.
  const std::size_t count_, max_bytes_;
  const Charge charge_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Example> ready_;  // Guarded by mutex_, as what follows.
  std::size_t bytes_ = 0;
  std::exception_ptr error_;
  bool ended_ = false, stop_ = false;
  std::thread thread_;
};

class PrefetchNode final : public DatasetNode {
 public:
  PrefetchNode(std::shared_ptr<const DatasetNode> from, std::size_t count, std::size_t max_bytes)
      : from_(std::move(from)), count_(count), max_bytes_(max_bytes) {}
  std::unique_ptr<ExampleStream> open() const override {
    return std::make_unique<PrefetchStream>(from_->open(), count_, max_bytes_);
  }
  std::optional<std::size_t> size() const override { return from_->size(); }
  std::optional<std::size_t> batch_size() const override { return from_->batch_size(); }
  std::optional<std::size_t> last_batch_size() const override { return from_->last_batch_size(); }
  // The ready examples, one that is being made or waits for room, and the token.
  HeldBytes held(const std::vector<std::size_t>& tensor_bytes) const override {
    const HeldBytes from = from_->held(tensor_bytes);
    const std::size_t each = whole_blocks_of(tensor_bytes);
    const std::size_t ready = max_bytes_ == 0 ? count_ * each : std::min(count_ * each, std::max(each, max_bytes_));
    return {.resident = from.resident + from.loading + ready + each + whole_blocks(1)};
  }
  std::shared_ptr<const DatasetNode> frozen(bool draws) const override {
    auto from = from_->frozen(draws);
    return from ? std::make_shared<PrefetchNode>(std::move(from), count_, max_bytes_) : nullptr;
  }
  std::shared_ptr<const DatasetNode> part_of_batches(const RowsOfBatch& rows) const override {
    auto from = from_->part_of_batches(rows);
    return from ? std::make_shared<PrefetchNode>(std::move(from), count_, max_bytes_) : nullptr;
  }
  std::shared_ptr<const DatasetNode> seeded(std::uint64_t seed) const override {
    auto from = from_->seeded(seed);
    return from ? std::make_shared<PrefetchNode>(std::move(from), count_, max_bytes_) : nullptr;
  }

 private:
  const std::shared_ptr<const DatasetNode> from_;
  const std::size_t count_, max_bytes_;
};

}  // namespace

std::shared_ptr<const DatasetNode> make_prefetch(std::shared_ptr<const DatasetNode> from, std::size_t count,
                                                 std::size_t max_bytes) {
  return std::make_shared<PrefetchNode>(std::move(from), count, max_bytes);
}

}  // namespace plimsoll::internal
