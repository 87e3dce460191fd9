// The bytes of a trace file, shared by the writer and the reader. docs/trace_format.md describes the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "plimsoll/base/api.h"

namespace plimsoll::trace_format {

inline constexpr char kMagic[8] = {'P', 'L', 'M', 'T', 'R', 'A', 'C', 'E'};
inline constexpr std::uint32_t kVersion = 4;  // 1 had no plans, 2 no phases in them, 3 refusals by arenas only.
inline constexpr std::size_t kHeaderBytes = 40;
inline constexpr std::size_t kBlockHeaderBytes = 32;
inline constexpr std::size_t kMaxText = 1024;  // Of a marker or a refusal; longer ones are cut.
inline constexpr std::size_t kMaxName = 4096;  // Of an op, a scope, a device; longer ones are cut.
inline constexpr std::size_t kMaxBlockBytes = std::size_t{1} << 24;

enum class BlockType : std::uint32_t {
  kNames = 0x314D414E,   // "NAM1"
  kArenas = 0x314E5241,  // "ARN1"
  kEvents = 0x31545645,  // "EVT1"
  kPlans = 0x314E4C50,   // "PLN1"
  kEnd = 0x31444E45,     // "END1"
};

// Bits of an allocation's flags byte.
inline constexpr std::uint8_t kHasShape = 1, kHasSite = 2, kHasBudget = 4;

struct FileHeader {
  std::uint32_t version = kVersion;
  std::uint32_t mode = 0;          // 0 stream, 1 ring.
  std::int64_t start_unix_ns = 0;  // Wall clock when recording began: time 0 of all events.
  std::uint32_t process = 0;
  std::uint32_t granularity = 64;  // Unit of sizes and offsets.
};

struct BlockHeader {
  BlockType type = BlockType::kEvents;
  std::uint32_t payload_bytes = 0;
  std::uint32_t checksum = 0;  // CRC-32 of this header, with 0 here, and the payload.
  std::uint32_t thread = 0;
  std::uint32_t system_thread = 0;
  std::uint32_t items = 0;
  std::int64_t base_time_ns = 0;
};

template <class T>
std::byte* put_fixed(std::byte* at, T value) noexcept {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    *at++ = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
  return at;
}

template <class T>
T get_fixed(const std::byte* at) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= std::to_integer<std::uint64_t>(at[i]) << (8 * i);
  return static_cast<T>(value);
}

// LEB128: seven bits a byte, lowest first, at most ten bytes.
inline std::byte* put_number(std::byte* at, std::uint64_t value) noexcept {
  for (; value >= 0x80; value >>= 7) *at++ = static_cast<std::byte>(value | 0x80);
  *at++ = static_cast<std::byte>(value);
  return at;
}

constexpr std::uint64_t zigzag(std::int64_t value) noexcept {
  return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

void put_header(std::byte* at, const FileHeader& header) noexcept;
std::uint32_t header_checksum(const std::byte* header) noexcept;  // Of the 32 bytes before it.
// Also sets the checksum.
void put_block_header(std::byte* at, BlockHeader header, const std::byte* payload) noexcept;
BlockHeader get_block_header(const std::byte* at) noexcept;
std::uint32_t checksum_of(const std::byte* block_header, const std::byte* payload, std::size_t payload_bytes) noexcept;

}  // namespace plimsoll::trace_format
