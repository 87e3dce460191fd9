// The index of a bundle, which BundleReader reads before any data.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "plimsoll/base/error.h"
#include "plimsoll/io/bundle.h"
#include "plimsoll/io/internal/input_file.h"
#include "plimsoll/io/internal/slices.h"
#include "plimsoll/io/internal/table.h"
#include "plimsoll/io/internal/tensorflow_types.h"

namespace plimsoll {
namespace {

constexpr std::int64_t kVersion = 1;  // The format's version in TensorFlow.
constexpr std::int64_t kMaxShards = 100'000;

struct BundleHeader {
  std::int64_t num_shards = 0;
  bool big_endian = false;
  std::int64_t min_consumer = 0;
};

BundleHeader parse_header(std::string_view value) {
  BundleHeader header;
  for (WireReader in(value); in.next();) {
    if (in.field() == 1) header.num_shards = in.integer();
    if (in.field() == 2) header.big_endian = in.integer() != 0;
    if (in.field() != 3) continue;
    for (WireReader version(in.bytes()); version.next();)
      if (version.field() == 2) header.min_consumer = version.integer();
  }
  if (header.num_shards < 0 || header.num_shards > kMaxShards)
    throw WireError(fmt::format("{} data files", header.num_shards));
  return header;
}

BundleEntry parse_entry(std::string_view value) {
  BundleEntry entry;
  entry.shape = Shape::scalar();
  std::int64_t number = 0, shard = 0, offset = 0, size = 0;
  std::vector<std::string_view> slices;
  for (WireReader in(value); in.next();) switch (in.field()) {
      case 1:
        number = in.integer();
        break;
      case 2:
        entry.shape = parse_tensorflow_shape(in.bytes());
        break;
      case 3:
        shard = in.integer();
        break;
      case 4:
        offset = in.integer();
        break;
      case 5:
        size = in.integer();
        break;
      case 6:
        entry.checksum = in.fixed32();
        break;
      case 7:
        slices.push_back(in.bytes());
        break;
    }
  for (const std::string_view slice : slices) entry.slices.push_back(parse_slice(slice, entry.shape));
  entry.dtype = dtype_of_tensorflow(number);
  entry.dtype_name = tensorflow_dtype_name(number);
  if (shard < 0 || shard > kMaxShards || offset < 0 || size < 0)
    throw WireError(fmt::format("shard {}, offset {}, size {}", shard, offset, size));
  entry.shard = static_cast<std::uint32_t>(shard);
  entry.offset = static_cast<std::uint64_t>(offset);
  entry.size = static_cast<std::uint64_t>(size);
  const std::size_t element = tensorflow_element_bytes(number);
  if (!entry.is_partitioned() && element > 0 && entry.size != entry.shape.size() * element)
    throw WireError(fmt::format("{} bytes for {} {}, which has {}", size, entry.dtype_name, entry.shape.to_string(),
                                entry.shape.size() * element));
  return entry;
}

// Empty and partitioned tensors have no data of their own.
bool has_place(const BundleEntry& entry) { return !entry.is_partitioned() && entry.size > 0; }

}  // namespace

void BundleReader::load_index(const InputFile& index) {
  const std::vector<TableEntry> table = read_table(index, {.verify_checksums = options_.verify_checksums});
  if (table.empty() || !table[0].key.empty()) index.corrupt(0, "the index has no header");
  BundleHeader header;
  try {
    header = parse_header(table[0].value);
  } catch (const WireError& error) {
    index.corrupt(table[0].offset, fmt::format("the index's header is damaged: {}", error.what()));
  }
  if (header.min_consumer > kVersion)
    throw Unsupported(
        fmt::format("checkpoint \"{}\": written by a newer TensorFlow; it needs a reader of version {}, this "
                    "is version {}",
                    prefix_, header.min_consumer, kVersion));
  big_endian_ = header.big_endian;
  shards_.resize(static_cast<std::size_t>(header.num_shards));
  entries_.reserve(table.size() - 1);
  for (std::size_t i = 1; i < table.size(); ++i) add_entry(index, table[i].key, table[i].value, table[i].offset);
}

void BundleReader::add_entry(const InputFile& index, std::string_view key, std::string_view value, std::uint64_t at) {
  try {
    BundleEntry entry = parse_entry(value);
    if (has_place(entry) && entry.shard >= shards_.size())
      throw WireError(fmt::format("shard {} of {}", entry.shard, shards_.size()));
    entry.key = key;
    entries_.push_back(std::move(entry));
  } catch (const WireError& error) {
    index.corrupt(at, fmt::format("tensor \"{}\": the entry is damaged: {}", key, error.what()));
  }
}

void BundleReader::check_places(const InputFile& index) const {
  std::vector<const BundleEntry*> order;
  for (const BundleEntry& entry : entries_)
    if (has_place(entry)) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const BundleEntry* a, const BundleEntry* b) {
    return a->shard != b->shard ? a->shard < b->shard : a->offset < b->offset;
  });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const BundleEntry& entry = *order[i];
    if (i > 0 && order[i - 1]->shard == entry.shard && order[i - 1]->offset + order[i - 1]->size > entry.offset)
      index.corrupt(0, fmt::format("tensors \"{}\" and \"{}\" overlap at offset {} of data file {}", order[i - 1]->key,
                                   entry.key, entry.offset, entry.shard));
    const auto& shard = shards_[entry.shard];
    if (shard && (entry.offset > shard->size() || entry.size > shard->size() - entry.offset))
      shard->corrupt(entry.offset, fmt::format("tensor \"{}\": expected {} bytes, the file ends at {}; it is truncated",
                                               entry.key, entry.size, shard->size()));
  }
}

const BundleEntry* BundleReader::find(std::string_view key) const noexcept {
  const auto place = std::lower_bound(entries_.begin(), entries_.end(), key,
                                      [](const BundleEntry& entry, std::string_view name) { return entry.key < name; });
  return place != entries_.end() && place->key == key ? &*place : nullptr;
}

const BundleEntry& BundleReader::entry(std::string_view key) const {
  if (const BundleEntry* found = find(key)) return *found;
  throw NotFound(
      fmt::format("checkpoint \"{}\": there is no tensor \"{}\" among its {}; list them with plimsoll inspect", prefix_,
                  key, entries_.size()));
}

std::filesystem::path bundle_data_path(const std::filesystem::path& prefix, std::size_t shard, std::size_t num_shards) {
  std::filesystem::path path = prefix;
  path += fmt::format(".data-{:05}-of-{:05}", shard, num_shards);
  return path;
}

std::filesystem::path bundle_index_path(const std::filesystem::path& prefix) {
  std::filesystem::path path = prefix;
  path += ".index";
  return path;
}

}  // namespace plimsoll
