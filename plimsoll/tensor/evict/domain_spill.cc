// The part of a domain that stores values in the file of a spilling budget.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/device.h"
#include "plimsoll/memory/spill/spill_file.h"
#include "plimsoll/tensor/evict/domain.h"
#include "plimsoll/tensor/evict/recipe_book.h"

namespace plimsoll::evict {
namespace {

// Bytes stored or loaded while an operation of cost 1 runs: a nominal rate, as in plans (Program::kSpillBytesPerCost).
constexpr double kBytesPerCost = 0.015;
constexpr std::size_t kMostFailures = 8;  // Failed stores after which no more are tried.

}  // namespace

// Storages begin where the arena puts them, so transfers use a block of the file's own. It is part of the reported
// overhead.
struct Domain::Spiller {
  static constexpr std::size_t kStagingBytes = std::size_t{256} << 10;

  explicit Spiller(const std::string& directory) : file({.directory = directory, .own_staging_bytes = kStagingBytes}) {}

  SpillFile file;
  std::size_t failures = 0;
  std::string last_failure;
};

Domain::Domain(const EvictorOptions& options)
    : limit_(options.limit), spiller_(options.spill.empty() ? nullptr : std::make_unique<Spiller>(options.spill)) {}
Domain::~Domain() = default;

bool Domain::remove_slot() noexcept {
  --num_slots_;
  return is_ended();
}

double Domain::storing_cost(const Value& value) const noexcept {
  if (!value.is_stored() && (value.cannot_store || spiller_->failures >= kMostFailures || !value.device->is_host()))
    return std::numeric_limits<double>::infinity();
  return static_cast<double>(value.bytes) / kBytesPerCost * (value.is_stored() ? 1 : 2);
}

// Releases the lock during the transfer; the value is locked. True: its bytes may be dropped now. When the disk fails
// the value stays in memory.
bool Domain::store(Value& value, std::unique_lock<std::mutex>& lock, Trash& trash) {
  ++value.locks;
  const std::span bytes(static_cast<const std::byte*>(value.storage->base()), value.bytes);
  std::unique_ptr<SpillSlot> slot;
  std::string failure;
  lock.unlock();
  try {
    slot = std::make_unique<SpillSlot>(spiller_->file.reserve(bytes.size()));
    slot->store(bytes);
    slot->wait();
  } catch (const std::exception& error) {
    slot.reset();
    failure = error.what();
  }
  if (!failure.empty())
    log_message(LogLevel::warning, fmt::format("eviction: a tensor stays in memory, it cannot be stored: {}", failure));
  lock.lock();
  --value.locks;
  if (slot) {
    value.slot = std::move(slot);
    value.home = this;
    ++num_slots_;
  } else {
    value.cannot_store = true;
    ++spiller_->failures;
    spiller_->last_failure = std::move(failure);
  }
  const bool may_go = value.is_stored() && value.candidate != Value::kNone && value.locks == 0;
  RecipeBook& book = RecipeBook::instance();
  book.queue(value);
  book.end_queued(trash);
  return may_go;
}

std::string Domain::explain_spilling(std::size_t in_use) const {
  const std::lock_guard lock(RecipeBook::instance().mutex());
  if (spiller_->failures > 0)
    return fmt::format(
        "nothing is left to drop or to store: {} are read by the operations at hand, and storing failed: {}",
        format_bytes(in_use), spiller_->last_failure);
  return fmt::format(
      "nothing is left to drop or to store: {} are read by the operations at hand, the rest are variables, inputs and "
      "what the program looks at",
      format_bytes(in_use));
}

}  // namespace plimsoll::evict
