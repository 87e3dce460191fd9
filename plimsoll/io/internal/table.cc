#include "plimsoll/io/internal/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "plimsoll/base/crc32c.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/wire.h"
#include "plimsoll/io/internal/snappy.h"

namespace plimsoll::internal {
namespace {

constexpr std::uint64_t kMagic = 0xdb4775248b80fb57u;
constexpr std::size_t kFooterBytes = 48, kTrailerBytes = 5;
constexpr std::size_t kMaxRatio = 64;  // Snappy cannot do better.

struct Handle {
  std::uint64_t offset = 0, size = 0;
};

bool take_handle(std::string_view& in, Handle& handle) {
  return take_varint(in, handle.offset) && take_varint(in, handle.size);
}

struct BlockContents {
  std::string bytes;
  std::uint64_t offset = 0;
  bool compressed = false;
};

BlockContents read_block(const InputFile& file, const Handle& handle, const TableLimits& limits) {
  const std::uint64_t end = file.size() - kFooterBytes;
  if (handle.offset > end || handle.size > end || handle.offset + handle.size + kTrailerBytes > end)
    file.corrupt(handle.offset, fmt::format("a block of {} bytes does not fit", handle.size));
  BlockContents block{file.read_string(handle.offset, handle.size + kTrailerBytes, limits.max_bytes), handle.offset};
  const auto size = static_cast<std::size_t>(handle.size);
  const auto stored = load_number<std::uint32_t>(block.bytes.data() + size + 1);
  const std::uint32_t actual = mask_crc32c(crc32c(std::string_view(block.bytes).substr(0, size + 1)));
  if (limits.verify_checksums && stored != actual)
    file.corrupt(handle.offset, fmt::format("a block's checksum is {:#010x} instead of {:#010x}", actual, stored));
  const char type = block.bytes[size];
  block.bytes.resize(size);
  if (type == 0) return block;
  if (type != 1) file.corrupt(handle.offset + size, fmt::format("a block of unknown type {}", type));
  auto plain = snappy_uncompress(block.bytes, std::min<std::uint64_t>(limits.max_bytes, kMaxRatio * size + kMaxRatio));
  if (!plain) file.corrupt(handle.offset, "a compressed block is damaged");
  return {std::move(*plain), handle.offset, true};
}

// Calls f(key, value, offset) for each entry of the block.
template <class F>
void for_each_entry(const InputFile& file, const BlockContents& block, F&& f) {
  const auto damaged = [&](std::size_t at, const char* what) {
    file.corrupt(block.offset + (block.compressed ? 0 : at), what);
  };
  const std::string_view all = block.bytes;
  if (all.size() < 4) damaged(0, "a block is too short");
  const std::uint64_t restarts = load_number<std::uint32_t>(all.data() + all.size() - 4);
  if (restarts > (all.size() - 4) / 4) damaged(all.size() - 4, "a block's restarts do not fit");
  std::string_view left = all.substr(0, all.size() - 4 - 4 * static_cast<std::size_t>(restarts));
  std::string key;
  while (!left.empty()) {
    const auto at = static_cast<std::size_t>(left.data() - all.data());
    std::uint64_t shared = 0, unshared = 0, value_size = 0;
    if (!take_varint(left, shared) || !take_varint(left, unshared) || !take_varint(left, value_size))
      damaged(at, "an entry's sizes are damaged");
    if (shared > key.size() || unshared > left.size() || value_size > left.size() - unshared)
      damaged(at, "an entry does not fit its block");
    key.resize(static_cast<std::size_t>(shared));
    key += left.substr(0, static_cast<std::size_t>(unshared));
    f(key, left.substr(static_cast<std::size_t>(unshared), static_cast<std::size_t>(value_size)),
      block.offset + (block.compressed ? 0 : at));
    left.remove_prefix(static_cast<std::size_t>(unshared + value_size));
  }
}

BlockContents read_index(const InputFile& file, const TableLimits& limits) {
  if (file.size() < kFooterBytes) file.corrupt(0, fmt::format("has {} bytes, too few for an index table", file.size()));
  const std::uint64_t footer_offset = file.size() - kFooterBytes;
  const std::string footer = file.read_string(footer_offset, kFooterBytes, kFooterBytes);
  if (load_number<std::uint64_t>(footer.data() + 40) != kMagic)
    file.corrupt(footer_offset + 40, "is not an index table (wrong last 8 bytes), or its end is missing");
  std::string_view handles = std::string_view(footer).substr(0, 40);
  Handle metaindex, index;
  if (!take_handle(handles, metaindex) || !take_handle(handles, index))
    file.corrupt(footer_offset, "the table's footer is damaged");
  return read_block(file, index, limits);
}

}  // namespace

std::vector<TableEntry> read_table(const InputFile& file, const TableLimits& limits) {
  const BlockContents index = read_index(file, limits);
  std::vector<TableEntry> entries;
  std::uint64_t bytes = 0, end_of_last = 0;
  for_each_entry(file, index, [&](std::string_view, std::string_view value, std::uint64_t at) {
    Handle handle;
    if (!take_handle(value, handle)) file.corrupt(at, "a block's place is damaged");
    if (handle.offset < end_of_last) file.corrupt(at, "blocks overlap or are not in order");
    end_of_last = handle.offset + handle.size;
    const BlockContents block = read_block(file, handle, limits);
    for_each_entry(file, block, [&](std::string_view key, std::string_view content, std::uint64_t offset) {
      if (!entries.empty() && entries.back().key >= key)
        file.corrupt(offset, fmt::format("key \"{}\" is not after the one before it", key));
      bytes += key.size() + content.size() + sizeof(TableEntry);
      if (bytes > limits.max_bytes)
        throw Unsupported(fmt::format("file \"{}\": a table of more than {} bytes", file.name(), limits.max_bytes));
      entries.push_back({std::string(key), std::string(content), offset});
    });
  });
  return entries;
}

void TableWriter::Block::add(std::string_view key, std::string_view value) {
  std::size_t shared = 0;
  if (since_restart == interval) {
    restarts.push_back(static_cast<std::uint32_t>(bytes.size()));
    since_restart = 0;
  } else {
    const std::size_t most = std::min(key.size(), last_key.size());
    while (shared < most && key[shared] == last_key[shared]) ++shared;
  }
  append_varint(bytes, shared);
  append_varint(bytes, key.size() - shared);
  append_varint(bytes, value.size());
  bytes += key.substr(shared);
  bytes += value;
  last_key = key;
  ++since_restart;
}

std::string TableWriter::Block::finish() {
  for (const std::uint32_t restart : restarts) append_number(bytes, restart);
  append_number(bytes, static_cast<std::uint32_t>(restarts.size()));
  restarts.assign(1, 0);
  last_key.clear();
  since_restart = 0;
  return std::exchange(bytes, {});
}

namespace {

unsigned byte_at(std::string_view text, std::size_t place) { return static_cast<unsigned char>(text[place]); }

// The shortest key not below `last` and below `next`, when dropping bytes finds one.
std::string separator(std::string last, std::string_view next) {
  const std::size_t most = std::min(last.size(), next.size());
  std::size_t same = 0;
  while (same < most && last[same] == next[same]) ++same;
  if (same < most && byte_at(last, same) < 0xff && byte_at(last, same) + 1 < byte_at(next, same)) {
    ++last[same];
    last.resize(same + 1);
  }
  return last;
}

// The shortest key not below `last`.
std::string successor(std::string last) {
  for (std::size_t place = 0; place < last.size(); ++place) {
    if (byte_at(last, place) == 0xff) continue;
    ++last[place];
    last.resize(place + 1);
    break;
  }
  return last;
}

}  // namespace

void TableWriter::add(std::string_view key, std::string_view value) {
  if (!pending_handle_.empty()) index_.add(separator(last_key_, key), std::exchange(pending_handle_, {}));
  if (!block_.bytes.empty() && key.size() + value.size() >= 2 * block_bytes_) {
    end_block();
    index_.add(separator(last_key_, key), std::exchange(pending_handle_, {}));
  }
  last_key_ = key;
  block_.add(key, value);
  if (block_.size_estimate() >= block_bytes_) end_block();
}

void TableWriter::end_block() {
  if (!block_.bytes.empty()) pending_handle_ = write_block(block_.finish());
}

std::string TableWriter::write_block(std::string contents) {
  std::string handle;
  append_varint(handle, file_.size());
  append_varint(handle, contents.size());
  contents.push_back(0);
  const std::uint32_t crc = mask_crc32c(crc32c(contents));
  file_ += contents;
  append_number(file_, crc);
  return handle;
}

std::string TableWriter::finish() {
  end_block();
  std::string footer = write_block(Block(1).finish());
  if (!pending_handle_.empty()) index_.add(successor(last_key_), std::exchange(pending_handle_, {}));
  footer += write_block(index_.finish());
  footer.resize(kFooterBytes - 8);
  append_number(footer, kMagic);
  file_ += footer;
  return std::move(file_);
}

}  // namespace plimsoll::internal
