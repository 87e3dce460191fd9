#include "plimsoll/memory/spill/spill_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/memory/spill/spill_refusal.h"
#include "plimsoll/memory/spill/spill_space.h"
#include "plimsoll/memory/spill/spill_worker.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kMeasuredBytes = 64_MiB, kLeastMeasuredBytes = 1_MiB;

bool is_aligned(const void* address, std::size_t alignment) noexcept {
  return reinterpret_cast<std::uintptr_t>(address) % alignment == 0;
}

struct FreeBlock {
  void operator()(std::byte* block) const noexcept { std::free(block); }
};

std::unique_ptr<std::byte, FreeBlock> allocate_staging(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const std::size_t whole = round_up(bytes, kSpillAlignment);  // Other sizes are refused below.
  std::unique_ptr<std::byte, FreeBlock> block(static_cast<std::byte*>(std::aligned_alloc(kSpillAlignment, whole)));
  if (!block) throw std::bad_alloc();
  return block;
}

std::span<std::byte> checked_staging(std::span<std::byte> staging) {
  if (staging.empty() || (staging.size() % kSpillAlignment == 0 && is_aligned(staging.data(), kSpillAlignment)))
    return staging;
  throw InvalidArgument(
      fmt::format("spill: a staging block of {} bytes at an address that is {} bytes beyond a multiple "
                  "of {}; give it a multiple of that, at such an address: {} bytes serve well",
                  staging.size(), reinterpret_cast<std::uintptr_t>(staging.data()) % kSpillAlignment, kSpillAlignment,
                  SpillFile::staging_bytes()));
}

// While it lives, passing a file size limit gives EFBIG instead of a signal.
class WithoutSizeSignal {
 public:
  WithoutSizeSignal() noexcept {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    sigset_t pending;
    was_pending_ = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  ~WithoutSizeSignal() {
    const timespec now{};
    const int error = errno;
    if (!was_pending_) sigtimedwait(&signal_, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
  }
  WithoutSizeSignal(const WithoutSizeSignal&) = delete;
  WithoutSizeSignal& operator=(const WithoutSizeSignal&) = delete;

 private:
  sigset_t signal_, before_;
  bool was_pending_;
};

struct FreeMemory {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};

}  // namespace

struct SpillFile::State {
  explicit State(const SpillOptions& options)
      : directory(options.directory),
        limit(options.limit),
        own_staging(allocate_staging(options.own_staging_bytes)),
        staging(
            checked_staging(own_staging ? std::span(own_staging.get(), options.own_staging_bytes) : options.staging)),
        io(options.io ? *options.io : SpillIo::system()),
        opened(open_spill_file(io, directory)),
        pieces(io, opened, staging, directory),
        worker(io, pieces) {}
  ~State() { close(opened.file); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // In a forked child, locks may be held by threads that do not exist there, and the transfers belong to the parent.
  bool is_mine() const noexcept { return getpid() == process; }
  void require_mine(const char* verb) const {
    if (!is_mine())
      throw FailedPrecondition(fmt::format(
          "spill directory \"{}\": cannot {} in a forked child; open a file of its own", directory.native(), verb));
  }
  SpillRoom room(std::size_t requested, int error_number) {
    SpillIo::FileSystem facts;
    io.file_system(opened.file, facts);
    const std::size_t end = space.end();
    return {directory,        requested,   end + facts.free_bytes, end + requested, space.taken_bytes(),
            facts.free_bytes, error_number};
  }
  SpillSpace::Taken take(std::size_t bytes);

  const std::filesystem::path directory;
  const std::size_t limit;
  const std::unique_ptr<std::byte, FreeBlock> own_staging;
  const std::span<std::byte> staging;
  SpillIo& io;
  const pid_t process = getpid();
  const OpenedSpill opened;
  std::mutex mutex;  // Guards space and the file's length.
  SpillSpace space;
  SpillPieces pieces;
  SpillWorker worker;
};

struct SpillSlot::Entry {
  std::shared_ptr<SpillFile::State> file;
  SpillSpace::Taken place;
  std::size_t bytes = 0;
  std::size_t stored_bytes = 0;
  std::uint32_t crc = 0;  // Of the stored bytes.
  bool is_begun = false;  // A transfer has begun that was not waited for.
  SpillTransfer transfer{};
};

SpillSpace::Taken SpillFile::State::take(std::size_t bytes) {
  constexpr std::size_t kLargest = std::size_t{1} << 62;
  const std::size_t whole = bytes > kLargest ? kLargest : round_up(bytes, kSpillAlignment);
  const std::lock_guard lock(mutex);
  const std::size_t taken = space.taken_bytes();
  if (whole > limit || taken > limit - whole)
    refuse_spill(
        {.directory = directory, .requested = bytes, .limit = limit, .limit_needed = taken + whole, .reserved = taken});
  const std::uint64_t growth = space.growth_for(whole);
  if (growth > 0) {
    const WithoutSizeSignal without_signal;
    int failed = io.allocate(opened.file, space.end(), growth);
    while (failed != 0 && errno == EINTR) failed = io.allocate(opened.file, space.end(), growth);
    if (failed != 0) {
      SpillRoom refused = room(bytes, errno);
      refused.limit_needed = space.end() + growth;
      refuse_spill(refused);
    }
    space.grow(growth);  // When memory runs out here, the next request asks for the same range again.
  }
  return space.take(whole);
}

SpillFile::SpillFile(const SpillOptions& options)
    : state_(new State(options), [](State* state) {
        if (state->is_mine()) delete state;  // Otherwise its thread and locks belong to the parent.
      }) {}

SpillSlot SpillFile::reserve(std::size_t bytes) {
  state_->require_mine("reserve");
  if (bytes == 0)
    throw InvalidArgument(fmt::format("spill directory \"{}\": cannot reserve 0 bytes", state_->directory.native()));
  auto entry = std::make_unique<SpillSlot::Entry>();
  entry->place = state_->take(bytes);
  entry->bytes = bytes;
  entry->file = state_;
  return SpillSlot(std::move(entry));
}

SpillBandwidth SpillFile::bandwidth() {
  state_->require_mine("measure");
  if (state_->worker.has_bandwidth()) return state_->worker.bandwidth();
  std::span<std::byte> block = state_->staging;
  std::unique_ptr<std::byte, FreeMemory> own;
  if (block.empty()) {
    own.reset(static_cast<std::byte*>(std::aligned_alloc(kSpillAlignment, kLeastMeasuredBytes)));
    if (!own) throw std::bad_alloc();
    block = {own.get(), kLeastMeasuredBytes};
  }
  SpillSlot slot;
  for (std::size_t bytes = kMeasuredBytes; !slot; bytes /= 2) try {
      slot = reserve(bytes);
    } catch (const OutOfMemory&) {
      if (bytes / 2 < kLeastMeasuredBytes) throw;
    }
  SpillTransfer& transfer = slot.entry_->transfer;
  transfer.kind = SpillTransfer::Kind::kMeasure;
  transfer.memory = block.data();
  transfer.bytes = block.size();
  transfer.offset = slot.offset();
  transfer.file_bytes = slot.bytes();
  slot.submit();
  slot.wait();
  return state_->worker.bandwidth();
}

SpillStats SpillFile::stats() const {
  SpillStats stats = state_->worker.stats();
  const std::lock_guard lock(state_->mutex);
  stats.reserved_bytes = state_->space.taken_bytes();
  stats.file_bytes = state_->space.end();
  return stats;
}

const std::filesystem::path& SpillFile::directory() const noexcept { return state_->directory; }
std::size_t SpillFile::limit() const noexcept { return state_->limit; }
bool SpillFile::is_direct() const noexcept { return state_->pieces.is_direct(); }
std::size_t SpillFile::address_alignment() const noexcept { return state_->pieces.address_alignment(); }

SpillSlot::SpillSlot() noexcept = default;
SpillSlot::SpillSlot(std::unique_ptr<Entry> entry) noexcept : entry_(std::move(entry)) {}
SpillSlot::SpillSlot(SpillSlot&& other) noexcept = default;
SpillSlot::~SpillSlot() { release(); }

SpillSlot& SpillSlot::operator=(SpillSlot&& other) noexcept {
  if (this == &other) return *this;
  release();
  entry_ = std::move(other.entry_);
  return *this;
}

void SpillSlot::give_up() noexcept {
  if (!entry_ || !entry_->is_begun || !entry_->file->is_mine()) return;
  entry_->file->worker.take_back(entry_->transfer);
  entry_->is_begun = false;
}

void SpillSlot::release() noexcept {
  if (!entry_) return;
  SpillFile::State& file = *entry_->file;
  if (!file.is_mine()) {
    static_cast<void>(entry_.release());  // The parent's thread may be using it.
    return;
  }
  give_up();
  {
    const std::lock_guard lock(file.mutex);
    file.space.give(std::move(entry_->place));
  }
  entry_.reset();
}

std::size_t SpillSlot::bytes() const noexcept { return entry_ ? entry_->bytes : 0; }
std::size_t SpillSlot::stored_bytes() const noexcept { return entry_ ? entry_->stored_bytes : 0; }
bool SpillSlot::is_of(const SpillFile& file) const noexcept { return entry_ && entry_->file == file.state_; }
std::uint64_t SpillSlot::offset() const noexcept { return entry_ ? entry_->place.offset() : 0; }

bool SpillSlot::is_busy() const noexcept {
  return entry_ && entry_->is_begun && entry_->file->is_mine() && entry_->file->worker.is_busy(entry_->transfer);
}

void SpillSlot::store(std::span<const std::byte> source) {
  prepare("store", source.data(), source.size());
  if (source.empty() || source.size() > entry_->bytes)
    throw InvalidArgument(
        fmt::format("spill slot at offset {}: cannot store {} bytes in one of {}; reserve one that is "
                    "large enough",
                    offset(), source.size(), entry_->bytes));
  begin(true, const_cast<std::byte*>(source.data()), source.size());  // Only read.
}

void SpillSlot::load(std::span<std::byte> target) {
  prepare("load", target.data(), target.size());
  if (entry_->stored_bytes == 0)
    throw FailedPrecondition(
        fmt::format("spill slot at offset {}: nothing is stored in it; store before load", offset()));
  if (target.size() != entry_->stored_bytes)
    throw InvalidArgument(fmt::format("spill slot at offset {}: cannot load {} bytes of the {} stored; load them all",
                                      offset(), target.size(), entry_->stored_bytes));
  begin(false, target.data(), target.size());
}

// Checks what both directions require.
void SpillSlot::prepare(const char* verb, const void* memory, std::size_t bytes) {
  if (!entry_) throw FailedPrecondition(fmt::format("spill slot: cannot {}: it is empty; reserve one", verb));
  wait();
  const SpillFile::State& file = *entry_->file;
  file.require_mine(verb);
  if (file.staging.empty() && bytes > kSpillAlignment && !is_aligned(memory, file.pieces.address_alignment()))
    throw InvalidArgument(
        fmt::format("spill slot at offset {}: cannot {} memory at an address that is not a multiple of "
                    "{} without a staging block; give the file one or align the memory",
                    offset(), verb, file.pieces.address_alignment()));
}

void SpillSlot::begin(bool is_store, std::byte* memory, std::size_t bytes) {
  SpillTransfer& transfer = entry_->transfer;
  transfer.kind = is_store ? SpillTransfer::Kind::kStore : SpillTransfer::Kind::kLoad;
  transfer.memory = memory;
  transfer.bytes = bytes;
  transfer.offset = offset();
  transfer.crc = entry_->crc;
  submit();
  if (is_store) entry_->stored_bytes = 0;
}

void SpillSlot::submit() {
  SpillFile::State& file = *entry_->file;
  try {
    file.worker.submit(entry_->transfer);
  } catch (const std::system_error& error) {
    throw Error(fmt::format("spill directory \"{}\": cannot start a thread: {}; end others or raise the limit",
                            file.directory.native(), error.what()));
  }
  entry_->is_begun = true;
}

void SpillSlot::wait() {
  if (!entry_ || !entry_->is_begun) return;
  SpillFile::State& file = *entry_->file;
  file.require_mine("wait for a transfer");
  SpillTransfer& transfer = entry_->transfer;
  file.worker.finish(transfer);
  entry_->is_begun = false;
  if (transfer.fault) {
    const std::lock_guard lock(file.mutex);
    throw_spill_fault(transfer.fault, file.room(transfer.bytes, transfer.fault.error_number));
  }
  if (transfer.kind != SpillTransfer::Kind::kStore) return;
  entry_->stored_bytes = transfer.bytes;
  entry_->crc = transfer.crc;
}

}  // namespace plimsoll::internal
