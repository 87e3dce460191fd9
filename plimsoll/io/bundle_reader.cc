#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/crc32c.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/system_error.h"
#include "plimsoll/base/wire.h"
#include "plimsoll/io/bundle.h"
#include "plimsoll/io/internal/input_file.h"
#include "plimsoll/io/internal/parallel_read.h"
#include "plimsoll/io/internal/pieces.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

constexpr std::uint64_t kMaxStringBytes = 1_GiB;  // The most for one string tensor, which is held in memory.
constexpr std::uint64_t kTableMagic = 0xdb4775248b80fb57u;

// TensorFlow before 0.12 wrote the table itself, with the data in it, under the plain name.
bool is_version_1(const std::filesystem::path& prefix) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(prefix, ignored)) return false;
  const InputFile file(prefix);
  return file.size() >= 48 && load_number<std::uint64_t>(file.read_string(file.size() - 8, 8, 8).data()) == kTableMagic;
}

}  // namespace

BundleReader::BundleReader(const std::filesystem::path& prefix, const BundleReadOptions& options)
    : prefix_(prefix.native()), options_(options) {
  const std::filesystem::path index_path = bundle_index_path(prefix);
  if (!std::filesystem::exists(index_path)) {
    if (is_version_1(prefix))
      throw Unsupported(
          fmt::format("checkpoint \"{}\": has format version 1, from TensorFlow before 0.12; save it again "
                      "with a later one",
                      prefix_));
    if (prefix_.empty())
      throw NotFound(
          "checkpoint: the name is empty, which latest_checkpoint returns for a folder without checkpoints; check the "
          "folder");
    throw_system_error("checkpoint", prefix_, fmt::format("open \"{}\"", index_path.native()), ENOENT);
  }
  const InputFile index(index_path);
  load_index(index);
  for (std::size_t shard = 0; shard < shards_.size(); ++shard) {
    const std::filesystem::path path = bundle_data_path(prefix, shard, shards_.size());
    if (std::filesystem::exists(path)) shards_[shard] = std::make_unique<InputFile>(path);
  }
  check_places(index);
}

BundleReader::BundleReader(std::span<const std::byte> index, std::span<const std::span<const std::byte>> shards,
                           const BundleReadOptions& options)
    : prefix_("memory"), options_(options) {
  const InputFile file("memory.index", index);
  load_index(file);
  for (std::size_t shard = 0; shard < std::min(shards.size(), shards_.size()); ++shard)
    shards_[shard] =
        std::make_unique<InputFile>(bundle_data_path("memory", shard, shards_.size()).native(), shards[shard]);
  check_places(file);
}

BundleReader::BundleReader(BundleReader&&) noexcept = default;
BundleReader::~BundleReader() = default;

std::string BundleReader::where(const BundleEntry& entry) const {
  return fmt::format("checkpoint \"{}\": tensor \"{}\"", prefix_, entry.key);
}

const InputFile& BundleReader::shard_of(const BundleEntry& entry) const {
  if (entry.shard < shards_.size() && shards_[entry.shard]) return *shards_[entry.shard];
  throw NotFound(fmt::format("{}: its data file \"{}\" is missing", where(entry),
                             bundle_data_path(prefix_, entry.shard, shards_.size()).native()));
}

void BundleReader::check_crc(const BundleEntry& entry, std::uint32_t crc) const {
  if (!options_.verify_checksums || mask_crc32c(crc) == entry.checksum) return;
  shard_of(entry).corrupt(entry.offset,
                          fmt::format("tensor \"{}\": the checksum of its {} bytes is {:#010x} instead of "
                                      "{:#010x}",
                                      entry.key, entry.size, mask_crc32c(crc), entry.checksum));
}

Tensor BundleReader::read(std::string_view key) const {
  const BundleEntry& found = entry(key);
  // Checked before memory is allocated for something that cannot be read.
  found.is_partitioned() ? check_slices(found) : void(shard_of(found));
  if (!found.dtype)
    throw Unsupported(fmt::format("{}: its dtype {} is not supported{}", where(found), found.dtype_name,
                                  found.is_string() ? "; use read_strings" : ""));
  Tensor tensor = make_tensor({.op = "LoadCheckpoint", .category = Category::kParameters}, found.shape, *found.dtype,
                              current_device());
  if (tensor.nbytes() > 0)
    read_into(key, HostWrite(tensor));
  else if (!found.is_partitioned())
    check_crc(found, 0);
  return tensor;
}

void BundleReader::read_into(std::string_view key, const TensorView& destination) const {
  const BundleEntry& found = entry(key);
  if (found.dtype != destination.dtype() || found.shape != destination.shape())
    throw InvalidArgument(fmt::format("{}: it is {} {}, the destination {} {}", where(found), found.dtype_name,
                                      found.shape.to_string(), dtype_name(destination.dtype()),
                                      destination.shape().to_string()));
  const std::span<std::byte> bytes(destination.bytes(), destination.nbytes());
  if (found.is_partitioned()) {
    check_slices(found);
    read_slices(found, bytes.data());
  } else {
    check_crc(found, bytes.empty() ? 0 : read_with_crc(shard_of(found), found.offset, bytes));
  }
  if (big_endian_) swap_bytes(bytes, size_of(*found.dtype));
  if (found.dtype == boolean) make_bools(bytes);
}

void BundleReader::verify(std::string_view key) const {
  const BundleEntry& found = entry(key);
  if (found.is_partitioned()) {
    check_slices(found);
    return read_slices(found, nullptr);
  }
  if (found.is_string()) return void(read_strings(key));
  const std::uint32_t crc = found.size > 0 ? crc_of_file(shard_of(found), found.offset, found.size) : 0;
  if (found.dtype_name != "variant") check_crc(found, crc);  // Variants contain their own checksums.
}

std::vector<std::string> BundleReader::read_strings(std::string_view key) const {
  const BundleEntry& found = entry(key);
  if (!found.is_string())
    throw InvalidArgument(fmt::format("{}: it has {} elements, not strings", where(found), found.dtype_name));
  if (found.is_partitioned()) check_slices(found);  // Throws: strings in slices cannot be read.
  if (found.size == 0 && found.shape.size() > 0)
    throw Corruption(fmt::format("{}: no bytes for {} strings", where(found), found.shape.size()));
  if (found.size == 0) return {};
  return parse_strings(found, shard_of(found).read_string(found.offset, found.size, kMaxStringBytes));
}

// Lengths, their checksum, and the strings. The checksum covers the lengths as fixed-size numbers.
std::vector<std::string> BundleReader::parse_strings(const BundleEntry& entry, std::string_view payload) const {
  const InputFile& file = shard_of(entry);
  const auto damaged = [&](const char* what) {
    file.corrupt(entry.offset + entry.size - payload.size(), fmt::format("tensor \"{}\": {}", entry.key, what));
  };
  if (entry.shape.size() > payload.size()) damaged("more strings than bytes");
  std::vector<std::uint64_t> lengths(entry.shape.size());
  std::string fixed;
  for (std::uint64_t& length : lengths) {
    if (!take_varint(payload, length)) damaged("the lengths of its strings are damaged");
    length > UINT32_MAX ? append_number(fixed, length) : append_number(fixed, static_cast<std::uint32_t>(length));
  }
  if (payload.size() < 4) damaged("the checksum of the lengths is missing");
  const auto stored = load_number<std::uint32_t>(payload.data());
  std::uint32_t crc = crc32c(fixed);
  if (options_.verify_checksums && stored != mask_crc32c(crc)) damaged("the checksum of the lengths is wrong");
  check_crc(entry, crc32c(payload, crc));  // Over the stored checksum, too.
  payload.remove_prefix(4);
  std::vector<std::string> strings;
  strings.reserve(lengths.size());
  for (const std::uint64_t length : lengths) {
    if (length > payload.size()) damaged("a string is longer than the bytes that are left");
    strings.emplace_back(payload.substr(0, static_cast<std::size_t>(length)));
    payload.remove_prefix(static_cast<std::size_t>(length));
  }
  if (!payload.empty()) damaged("more bytes than the strings have");
  return strings;
}

}  // namespace plimsoll
