#include "plimsoll/memory/trace/trace_format.h"

#include <zlib.h>

namespace plimsoll::trace_format {

void put_header(std::byte* at, const FileHeader& header) noexcept {
  std::byte* const start = at;
  std::memcpy(at, kMagic, sizeof(kMagic));
  at = put_fixed(at + sizeof(kMagic), header.version);
  at = put_fixed(at, header.mode);
  at = put_fixed(at, header.start_unix_ns);
  at = put_fixed(at, header.process);
  at = put_fixed(at, header.granularity);
  at = put_fixed(at, header_checksum(start));
  put_fixed(at, std::uint32_t{0});
}

std::uint32_t header_checksum(const std::byte* header) noexcept {
  return static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(header), 32));
}

void put_block_header(std::byte* at, BlockHeader header, const std::byte* payload) noexcept {
  std::byte* to = put_fixed(at, static_cast<std::uint32_t>(header.type));
  to = put_fixed(to, header.payload_bytes);
  to = put_fixed(to, std::uint32_t{0});
  to = put_fixed(to, header.thread);
  to = put_fixed(to, header.system_thread);
  to = put_fixed(to, header.items);
  put_fixed(to, header.base_time_ns);
  put_fixed(at + 8, checksum_of(at, payload, header.payload_bytes));
}

BlockHeader get_block_header(const std::byte* at) noexcept {
  BlockHeader header;
  header.type = static_cast<BlockType>(get_fixed<std::uint32_t>(at));
  header.payload_bytes = get_fixed<std::uint32_t>(at + 4);
  header.checksum = get_fixed<std::uint32_t>(at + 8);
  header.thread = get_fixed<std::uint32_t>(at + 12);
  header.system_thread = get_fixed<std::uint32_t>(at + 16);
  header.items = get_fixed<std::uint32_t>(at + 20);
  header.base_time_ns = get_fixed<std::int64_t>(at + 24);
  return header;
}

std::uint32_t checksum_of(const std::byte* block_header, const std::byte* payload, std::size_t payload_bytes) noexcept {
  Bytef header[kBlockHeaderBytes];
  std::memcpy(header, block_header, kBlockHeaderBytes);
  std::memset(header + 8, 0, 4);
  const uLong first = crc32(0, header, kBlockHeaderBytes);
  return static_cast<std::uint32_t>(
      crc32(first, reinterpret_cast<const Bytef*>(payload), static_cast<uInt>(payload_bytes)));
}

}  // namespace plimsoll::trace_format
