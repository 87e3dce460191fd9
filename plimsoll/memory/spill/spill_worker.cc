#include "plimsoll/memory/spill/spill_worker.h"

#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

constexpr double kRemembered = 256.0 * (1 << 20);
constexpr std::int64_t kMeasuredNs = 250'000'000;  // At most, for each of three passes.

}  // namespace

SpillWorker::~SpillWorker() {
  {
    const std::lock_guard lock(mutex_);
    PLIMSOLL_CHECK(first_ == nullptr);
    ending_ = true;
  }
  work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void SpillWorker::submit(SpillTransfer& transfer) {
  {
    const std::lock_guard lock(mutex_);
    if (!thread_.joinable())
      thread_ = io_.start_thread([](void* worker) { static_cast<SpillWorker*>(worker)->run(); }, this);
    transfer.fault = {};
    transfer.state = SpillTransfer::State::kQueued;
    transfer.before = last_;
    transfer.after = nullptr;
    (last_ ? last_->after : first_) = &transfer;
    last_ = &transfer;
  }
  work_.notify_one();
}

void SpillWorker::finish(SpillTransfer& transfer) {
  std::unique_lock lock(mutex_);
  if (transfer.state != SpillTransfer::State::kDone) {
    const Stopwatch watch;
    done_.wait(lock, [&] { return transfer.state == SpillTransfer::State::kDone; });
    stats_.stall_ns += watch.ns();
  }
  transfer.state = SpillTransfer::State::kIdle;
}

void SpillWorker::take_back(SpillTransfer& transfer) noexcept {
  std::unique_lock lock(mutex_);
  if (transfer.state == SpillTransfer::State::kQueued)
    unlink(transfer);
  else if (transfer.state == SpillTransfer::State::kServed)
    done_.wait(lock, [&] { return transfer.state == SpillTransfer::State::kDone; });
  transfer.state = SpillTransfer::State::kIdle;
}

bool SpillWorker::is_busy(const SpillTransfer& transfer) const {
  const std::lock_guard lock(mutex_);
  return transfer.state == SpillTransfer::State::kQueued || transfer.state == SpillTransfer::State::kServed;
}

void SpillWorker::unlink(SpillTransfer& transfer) noexcept {
  (transfer.before ? transfer.before->after : first_) = transfer.after;
  (transfer.after ? transfer.after->before : last_) = transfer.before;
}

void SpillWorker::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return first_ != nullptr || ending_; });
    if (first_ == nullptr) return;
    SpillTransfer& transfer = *first_;
    unlink(transfer);
    transfer.state = SpillTransfer::State::kServed;
    lock.unlock();
    const Stopwatch watch;
    serve(transfer);
    const std::int64_t ns = watch.ns();
    lock.lock();
    count(transfer, ns);
    transfer.state = SpillTransfer::State::kDone;
    done_.notify_all();
  }
}

void SpillWorker::serve(SpillTransfer& transfer) noexcept {
  const std::span<std::byte> memory(transfer.memory, transfer.bytes);
  switch (transfer.kind) {
    case SpillTransfer::Kind::kStore:
      transfer.fault = pieces_.store(memory, transfer.offset, transfer.crc);
      return;
    case SpillTransfer::Kind::kLoad:
      transfer.fault = pieces_.load(memory, transfer.offset, transfer.crc);
      return;
    case SpillTransfer::Kind::kMeasure:
      measure(transfer);
      return;
  }
}

void SpillWorker::count(const SpillTransfer& transfer, std::int64_t ns) noexcept {
  if (transfer.kind == SpillTransfer::Kind::kMeasure) return;
  if (transfer.fault) {
    ++stats_.failures;
    return;
  }
  const bool is_store = transfer.kind == SpillTransfer::Kind::kStore;
  (is_store ? stats_.stores : stats_.loads) += 1;
  (is_store ? stats_.stored_bytes : stats_.loaded_bytes) += transfer.bytes;
  (is_store ? store_rate_ : load_rate_).add(transfer.bytes, ns);
}

// The first pass over fresh space is slower than all later ones, so it does not count.
void SpillWorker::measure(SpillTransfer& transfer) noexcept {
  const std::span<std::byte> block(transfer.memory, transfer.bytes);
  std::uint64_t measured = transfer.file_bytes;  // As far as the previous pass got.
  for (int pass = 0; pass < 3; ++pass) {
    const Stopwatch watch;
    std::uint64_t done = 0;
    for (; done < measured && (done == 0 || watch.ns() < kMeasuredNs); done += block.size()) {
      const std::uint64_t offset = transfer.offset + done;
      transfer.fault =
          pass < 2 ? pieces_.store(block, offset, transfer.crc) : pieces_.load(block, offset, transfer.crc);
      if (transfer.fault) return;
    }
    measured = done;
    const std::lock_guard lock(mutex_);
    if (pass > 0) (pass == 1 ? store_rate_ : load_rate_).add(done, watch.ns());
  }
}

void SpillWorker::Rate::add(std::uint64_t more_bytes, std::int64_t more_ns) noexcept {
  bytes += static_cast<double>(more_bytes);
  ns += static_cast<double>(more_ns > 0 ? more_ns : 1);
  if (bytes < kRemembered) return;
  bytes /= 2;
  ns /= 2;
}

bool SpillWorker::has_bandwidth() const {
  const std::lock_guard lock(mutex_);
  return store_rate_.ns > 0 && load_rate_.ns > 0;
}

SpillBandwidth SpillWorker::bandwidth() const {
  const std::lock_guard lock(mutex_);
  return {store_rate_.per_second(), load_rate_.per_second()};
}

SpillStats SpillWorker::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace plimsoll::internal
