#include "plimsoll/memory/spill/spill_transfer.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "plimsoll/base/crc32c.h"

namespace plimsoll::internal {
namespace {

constexpr int kFruitlessCalls = 16;  // Successful calls that transfer less than a block, before it gives up.

std::size_t sectors_within(std::size_t bytes) noexcept { return bytes / kSpillAlignment * kSpillAlignment; }
std::size_t whole_sectors(std::size_t bytes) noexcept { return sectors_within(bytes + kSpillAlignment - 1); }

// Keeps transfers and fork() apart: when a page is shared with a child forked while a device was writing to it, older
// kernels give the bytes to only one of the two.
class ForkGate {
 public:
  static ForkGate& instance() noexcept {
    static ForkGate* const gate = [] {
      auto* const made = new ForkGate;
      pthread_atfork([] { instance().before_fork(); }, [] { instance().in_parent(); }, [] { instance().in_child(); });
      return made;
    }();
    return *gate;
  }
  void lock() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return forks_ == 0; });
    ++transfers_;
  }
  void unlock() {
    const std::lock_guard lock(mutex_);
    if (--transfers_ == 0) changed_.notify_all();
  }

 private:
  void before_fork() {
    std::unique_lock lock(mutex_);
    ++forks_;
    changed_.wait(lock, [&] { return transfers_ == 0; });
    --forks_;
    lock.release();  // Held during the fork.
  }
  void in_parent() {
    mutex_.unlock();
    changed_.notify_all();
  }
  void in_child() {
    forks_ = 0;  // Other threads that waited to fork do not exist here.
    mutex_.unlock();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int transfers_ = 0, forks_ = 0;
};

SpillFault system_fault(bool is_store, int error_number, std::uint64_t offset, std::size_t bytes) noexcept {
  return {.kind = SpillFault::Kind::kSystem,
          .is_store = is_store,
          .error_number = error_number,
          .offset = offset,
          .bytes = bytes};
}

bool lacks_direct_io(int error_number) noexcept {
  return error_number == EINVAL || error_number == EOPNOTSUPP || error_number == ENOSYS;
}

}  // namespace

bool is_full(int error_number) noexcept {
  return error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
}

SpillPieces::SpillPieces(SpillIo& io, const OpenedSpill& opened, std::span<std::byte> staging,
                         const std::filesystem::path& directory) noexcept
    : io_(io), opened_(opened), staging_(staging), directory_(directory), is_direct_(opened.is_direct) {
  ForkGate::instance();
}

// Whole blocks in place; then the rest, through a block of its own.
SpillPieces::Piece SpillPieces::next_piece(std::byte* at, std::size_t left) noexcept {
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(at) % address_alignment() == 0;
  if (is_aligned && left >= kSpillAlignment) {
    const std::size_t bytes = std::min(sectors_within(left), kPieceBytes);
    return {at, bytes, bytes, true};
  }
  if (left <= kSpillAlignment) return {last_part_.data(), left, kSpillAlignment, false};
  const std::size_t bytes = std::min(left, staging_.size());
  return {staging_.data(), bytes, whole_sectors(bytes), false};
}

SpillFault SpillPieces::store(std::span<const std::byte> source, std::uint64_t offset, std::uint32_t& crc) noexcept {
  crc = 0;
  auto* at = const_cast<std::byte*>(source.data());  // Only read.
  for (std::size_t left = source.size(); left > 0;) {
    const Piece piece = next_piece(at, left);
    crc = crc32c(std::span<const std::byte>(at, piece.bytes), crc);
    if (!piece.in_place) {
      std::memcpy(piece.memory, at, piece.bytes);
      std::memset(piece.memory + piece.bytes, 0, piece.file_bytes - piece.bytes);
    }
    if (const SpillFault fault = transfer<true>(piece.memory, piece.file_bytes, offset)) return fault;
    at += piece.bytes;
    left -= piece.bytes;
    offset += piece.file_bytes;
  }
  return {};
}

SpillFault SpillPieces::load(std::span<std::byte> target, std::uint64_t offset, std::uint32_t crc) noexcept {
  const std::uint64_t begin = offset;
  std::uint32_t loaded = 0;
  std::byte* at = target.data();
  for (std::size_t left = target.size(); left > 0;) {
    const Piece piece = next_piece(at, left);
    if (const SpillFault fault = transfer<false>(piece.memory, piece.file_bytes, offset)) return fault;
    if (!piece.in_place) std::memcpy(at, piece.memory, piece.bytes);
    loaded = crc32c(std::span<const std::byte>(at, piece.bytes), loaded);
    at += piece.bytes;
    left -= piece.bytes;
    offset += piece.file_bytes;
  }
  if (loaded == crc) return {};
  return {.kind = SpillFault::Kind::kChecksum,
          .offset = begin,
          .bytes = target.size(),
          .stored_crc = crc,
          .loaded_crc = loaded};
}

// Direct I/O continues only at whole blocks, so what a short call transferred beyond one is transferred again.
template <bool kStore>
SpillFault SpillPieces::transfer(std::byte* memory, std::size_t bytes, std::uint64_t offset) noexcept {
  int fruitless = 0;
  while (bytes > 0) {
    ssize_t done = 0;
    int error = 0;
    {
      const std::lock_guard no_fork(ForkGate::instance());
      done = kStore ? io_.write(opened_.file, memory, bytes, offset) : io_.read(opened_.file, memory, bytes, offset);
      error = errno;
    }
    if (done < 0 && (error == EINTR || (error == EINVAL && leave_direct()))) continue;
    if (done < 0) return system_fault(kStore, error, offset, bytes);
    if (done == 0 && !kStore) return {.kind = SpillFault::Kind::kEnd, .offset = offset, .bytes = bytes};
    const std::size_t moved =
        is_direct() ? sectors_within(static_cast<std::size_t>(done)) : static_cast<std::size_t>(done);
    if (moved == 0 && ++fruitless > kFruitlessCalls) return system_fault(kStore, EIO, offset, bytes);
    if (!is_direct() && moved > 0 && io_.drop_from_cache(opened_.file, offset, moved) != 0 && kStore &&
        !lacks_direct_io(errno))
      return system_fault(kStore, errno, offset, bytes);  // Writing it out failed.
    memory += moved;
    bytes -= moved;
    offset += moved;
  }
  return {};
}

// Some file systems report only now that they do not support direct I/O, or need larger blocks.
bool SpillPieces::leave_direct() noexcept {
  if (!is_direct() || io_.use_page_cache(opened_.file) != 0) return false;
  is_direct_.store(false, std::memory_order_relaxed);
  warn_of_page_cache(directory_);
  return true;
}

}  // namespace plimsoll::internal
