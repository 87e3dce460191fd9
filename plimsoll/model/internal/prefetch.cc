#include "plimsoll/model/internal/prefetch.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

namespace plimsoll {
namespace {

class PrefetchStream final : public ExampleStream {
 public:
  PrefetchStream(std::unique_ptr<ExampleStream> from, std::size_t count) : from_(std::move(from)), count_(count) {
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
    lock.unlock();
    changed_.notify_all();
    return true;
  }

 private:
  void run() {
    try {
      Example example;
      while (from_->next(example)) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return ready_.size() < count_ || stop_; });
        if (stop_) break;
        ready_.push_back(std::move(example));
        lock.unlock();
        changed_.notify_all();
        example = {};
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
    }
    from_.reset();
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
  }

  std::unique_ptr<ExampleStream> from_;  // The thread's.
  const std::size_t count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Example> ready_;  // Guarded by mutex_, as what follows.
  std::exception_ptr error_;
  bool ended_ = false, stop_ = false;
  std::thread thread_;
};

class PrefetchNode final : public DatasetNode {
 public:
  PrefetchNode(std::shared_ptr<const DatasetNode> from, std::size_t count) : from_(std::move(from)), count_(count) {}
  std::unique_ptr<ExampleStream> open() const override {
    return std::make_unique<PrefetchStream>(from_->open(), count_);
  }
  std::optional<std::size_t> size() const override { return from_->size(); }

 private:
  const std::shared_ptr<const DatasetNode> from_;
  const std::size_t count_;
};

}  // namespace

std::shared_ptr<const DatasetNode> make_prefetch(std::shared_ptr<const DatasetNode> from, std::size_t count) {
  return std::make_shared<PrefetchNode>(std::move(from), count);
}

}  // namespace plimsoll
