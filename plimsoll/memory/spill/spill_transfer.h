// Transfers between memory and a spill file, piece by piece. Handles short, interrupted and refused calls, alignment
// and checksums.
//
//   SpillPieces pieces(io, opened, staging, directory);
//   SpillFault fault = pieces.store(bytes, offset, crc);       // crc: of the stored bytes
//   if (!fault) fault = pieces.load(elsewhere, offset, crc);
//   if (fault) throw_spill_fault(fault, room);                 // spill_refusal.h
//
// Nothing is thrown or allocated during a transfer: faults are numbers until they are turned into text.
// Thread safety: one thread at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/spill/open_spill_file.h"
#include "plimsoll/memory/spill/spill_file.h"
#include "plimsoll/memory/spill/spill_io.h"

namespace plimsoll::internal {

struct SpillFault {
  enum class Kind : std::uint8_t {
    kNone,
    kSystem,    // A call failed.
    kEnd,       // The file ends too early.
    kChecksum,  // The bytes differ.
  };
  Kind kind = Kind::kNone;
  bool is_store = false;
  int error_number = 0;
  std::uint64_t offset = 0;  // Of the call, or of the range.
  std::uint64_t bytes = 0;
  std::uint32_t stored_crc = 0, loaded_crc = 0;
  explicit operator bool() const noexcept { return kind != Kind::kNone; }
};

// Whether a call failed because a disk, a quota or a file is full.
[[nodiscard]] bool is_full(int error_number) noexcept;

class SpillPieces {
 public:
  static constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

  SpillPieces(SpillIo& io, const OpenedSpill& opened, std::span<std::byte> staging,
              const std::filesystem::path& directory) noexcept;  // All borrowed.

  SpillFault store(std::span<const std::byte> source, std::uint64_t offset, std::uint32_t& crc) noexcept;
  SpillFault load(std::span<std::byte> target, std::uint64_t offset, std::uint32_t crc) noexcept;

  bool is_direct() const noexcept { return is_direct_.load(std::memory_order_relaxed); }
  std::size_t address_alignment() const noexcept { return is_direct() ? opened_.address_alignment : 1; }

 private:
  struct Piece {
    std::byte* memory;       // To write from or read into.
    std::size_t bytes;       // Of the source or target.
    std::size_t file_bytes;  // Rounded up.
    bool in_place;
  };
  Piece next_piece(std::byte* at, std::size_t left) noexcept;
  template <bool kStore>
  SpillFault transfer(std::byte* memory, std::size_t bytes, std::uint64_t offset) noexcept;
  bool leave_direct() noexcept;

  SpillIo& io_;
  const OpenedSpill opened_;
  const std::span<std::byte> staging_;
  const std::filesystem::path& directory_;
  std::atomic<bool> is_direct_;  // Written by the thread that transfers.
  alignas(kSpillAlignment) std::array<std::byte, kSpillAlignment> last_part_{};
};

}  // namespace plimsoll::internal
