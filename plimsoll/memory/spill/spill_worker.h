// SpillWorker: the thread that performs the transfers of a spill file, in the order in which they were submitted.
//
//   SpillWorker worker(io, pieces);
//   SpillTransfer transfer{.kind = SpillTransfer::Kind::kStore, .memory = ..., .bytes = ..., .offset = ...};
//   worker.submit(transfer);       // the worker owns the transfer until finish() or take_back()
//   worker.finish(transfer);       // blocks; then transfer.fault says what went wrong, if anything
//
// The thread starts with the first transfer and ends with the worker, which by then has none left. Thread safety: any
// thread. Cost: no allocation; transfers form a linked list.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/spill/spill_file.h"
#include "plimsoll/memory/spill/spill_transfer.h"

namespace plimsoll::internal {

struct SpillTransfer {
  enum class Kind : std::uint8_t { kStore, kLoad, kMeasure };
  enum class State : std::uint8_t { kIdle, kQueued, kServed, kDone };

  Kind kind = Kind::kStore;
  std::byte* memory = nullptr;  // kMeasure: an aligned block that is written repeatedly.
  std::size_t bytes = 0;        // Of memory.
  std::uint64_t offset = 0;
  std::uint64_t file_bytes = 0;  // kMeasure: of the range that is measured.
  std::uint32_t crc = 0;         // Computed by a store, expected by a load.
  SpillFault fault{};

  State state = State::kIdle;  // This and below: guarded by the worker's mutex.
  SpillTransfer* before = nullptr;
  SpillTransfer* after = nullptr;
};

class SpillWorker {
 public:
  SpillWorker(SpillIo& io, SpillPieces& pieces) noexcept : io_(io), pieces_(pieces) {}
  ~SpillWorker();
  SpillWorker(const SpillWorker&) = delete;
  SpillWorker& operator=(const SpillWorker&) = delete;

  void submit(SpillTransfer& transfer);              // Throws std::system_error when the thread cannot be started.
  void finish(SpillTransfer& transfer);              // Waits; afterwards the transfer is idle.
  void take_back(SpillTransfer& transfer) noexcept;  // As finish(), but does not perform a transfer that has not begun.
  bool is_busy(const SpillTransfer& transfer) const;

  bool has_bandwidth() const;
  SpillBandwidth bandwidth() const;
  SpillStats stats() const;  // Without the size of the file.

 private:
  // Bytes and time of about the last 256 MiB.
  struct Rate {
    double bytes = 0, ns = 0;
    void add(std::uint64_t more_bytes, std::int64_t more_ns) noexcept;
    double per_second() const noexcept { return ns > 0 ? bytes / ns * 1e9 : 0; }
  };
  void run();
  void serve(SpillTransfer& transfer) noexcept;
  void measure(SpillTransfer& transfer) noexcept;
  void count(const SpillTransfer& transfer, std::int64_t ns) noexcept;
  void unlink(SpillTransfer& transfer) noexcept;

  SpillIo& io_;
  SpillPieces& pieces_;
  mutable std::mutex mutex_;
  std::condition_variable work_, done_;
  SpillTransfer* first_ = nullptr;  // This and below: guarded by mutex_.
  SpillTransfer* last_ = nullptr;
  bool ending_ = false;
  SpillStats stats_;
  Rate store_rate_, load_rate_;
  std::thread thread_;
};

}  // namespace plimsoll::internal
