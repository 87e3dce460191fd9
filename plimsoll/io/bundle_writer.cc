#include <fmt/format.h>

#include <map>
#include <utility>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/crc32c.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/make_directories.h"
#include "plimsoll/io/bundle.h"
#include "plimsoll/io/internal/pieces.h"
#include "plimsoll/io/internal/pinned_bytes.h"
#include "plimsoll/io/internal/table.h"
#include "plimsoll/io/internal/tensorflow_types.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

// Shards of the existing checkpoint; 0 when there is none that can be read.
std::size_t existing_shards(const fs::path& prefix) {
  try {
    return BundleReader(prefix).num_shards();
  } catch (const Error&) {
    return 0;
  }
}

// Whether `name` is a data file of the prefix of this name: "NAME.data-00000-of-00001".
bool is_data_name(std::string_view name, std::string_view prefix_name) {
  if (!name.starts_with(prefix_name)) return false;
  name.remove_prefix(prefix_name.size());
  return name.starts_with(".data-") && name.find("-of-") != std::string_view::npos &&
         name.find(".tmp-") == std::string_view::npos;
}

void remove_data(const fs::path& prefix, std::string_view except_end) {
  std::error_code ignored;
  for (const std::string& name : list_directory(prefix.parent_path()))
    if (is_data_name(name, prefix.filename().native()) && (except_end.empty() || !name.ends_with(except_end)))
      fs::remove(prefix.parent_path() / name, ignored);
}

}  // namespace

struct BundleWriter::Inside {
  fs::path prefix;
  std::size_t num_shards = 1;
  std::vector<std::unique_ptr<AtomicFile>> shards;
  std::map<std::string, std::string, std::less<>> entries;
  bool committed = false;

  AtomicFile& begin_entry(std::string_view key, std::size_t shard) {
    const auto refuse = [&](std::string_view what) {
      throw InvalidArgument(fmt::format("checkpoint \"{}\": cannot add tensor \"{}\": {}", prefix.native(), key, what));
    };
    if (committed) throw FailedPrecondition(fmt::format("checkpoint \"{}\": already committed", prefix.native()));
    if (key.empty()) refuse("it has no name");
    if (entries.contains(key)) refuse("the name is already in use");
    if (shard >= shards.size()) refuse(fmt::format("shard {} of {}", shard, shards.size()));
    return *shards[shard];
  }
  void end_entry(std::string_view key, int dtype, const Shape& shape, std::size_t shard, std::uint64_t offset,
                 std::uint32_t crc) {
    WireWriter out;
    out.integer(1, dtype);
    out.message(2, tensorflow_shape(shape));
    out.integer(3, static_cast<std::int64_t>(shard));
    out.integer(4, static_cast<std::int64_t>(offset));
    out.integer(5, static_cast<std::int64_t>(shards[shard]->bytes_written() - offset));
    out.fixed32(6, mask_crc32c(crc));
    entries.emplace(key, out.bytes());
  }

  // Data first; the index turns them into a checkpoint.
  void commit() {
    for (const auto& shard : shards) shard->commit();
    WireWriter header, version;
    version.integer(1, 1);
    header.integer(1, static_cast<std::int64_t>(num_shards));
    header.message(3, version);
    TableWriter table;
    table.add("", header.bytes());
    for (const auto& [key, value] : entries) table.add(key, value);
    AtomicFile index(bundle_index_path(prefix));
    index.write(table.finish());
    index.commit();
  }
};

BundleWriter::BundleWriter(const fs::path& prefix, const BundleWriteOptions& options)
    : inside_(std::make_unique<Inside>()) {
  if (!prefix.has_filename() || options.num_shards == 0 || options.num_shards > 99'998)
    throw InvalidArgument(fmt::format("checkpoint \"{}\": needs a file name and 1 to 99998 shards, not {}",
                                      prefix.native(), options.num_shards));
  if (prefix.has_parent_path()) make_directories(prefix.parent_path());
  remove_stale_temporaries(prefix.parent_path(), prefix.filename().native() + ".");
  inside_->prefix = prefix;
  inside_->num_shards = options.num_shards + (existing_shards(prefix) == options.num_shards ? 1 : 0);
  for (std::size_t shard = 0; shard < inside_->num_shards; ++shard)
    inside_->shards.push_back(std::make_unique<AtomicFile>(bundle_data_path(prefix, shard, inside_->num_shards)));
}

BundleWriter::~BundleWriter() = default;

void BundleWriter::add(std::string_view key, const Tensor& tensor, std::size_t shard) {
  const PinnedBytes pinned(tensor);
  add(key, pinned.view(), shard);
}

void BundleWriter::add(std::string_view key, const ConstTensorView& view, std::size_t shard) {
  AtomicFile& file = inside_->begin_entry(key, shard);
  const std::uint64_t offset = file.bytes_written();
  const std::span<const std::byte> bytes(view.bytes(), view.nbytes());
  std::uint32_t crc = 0;
  for_each_piece(bytes.size(), kPieceBytes, [&](std::size_t at, std::size_t size) {
    crc = crc32c(bytes.subspan(at, size), crc);
    file.write(bytes.subspan(at, size));
  });
  inside_->end_entry(key, tensorflow_dtype(view.dtype()), view.shape(), shard, offset, crc);
}

void BundleWriter::add_strings(std::string_view key, const Shape& shape, std::span<const std::string> strings,
                               std::size_t shard) {
  AtomicFile& file = inside_->begin_entry(key, shard);
  if (shape.or_scalar().size() != strings.size())
    throw InvalidArgument(fmt::format("checkpoint \"{}\": tensor \"{}\": {} strings for shape {}",
                                      inside_->prefix.native(), key, strings.size(), shape.to_string()));
  const std::uint64_t offset = file.bytes_written();
  std::string lengths, fixed;
  for (const std::string& text : strings) {
    append_varint(lengths, text.size());
    text.size() > UINT32_MAX ? append_number(fixed, std::uint64_t{text.size()})
                             : append_number(fixed, static_cast<std::uint32_t>(text.size()));
  }
  std::uint32_t crc = crc32c(fixed);
  std::string stored;
  append_number(stored, mask_crc32c(crc));
  crc = crc32c(stored, crc);
  file.write(lengths);
  file.write(stored);
  for (const std::string& text : strings) {
    crc = crc32c(text, crc);
    file.write(text);
  }
  inside_->end_entry(key, kTensorflowString, shape.or_scalar(), shard, offset, crc);
}

void BundleWriter::commit() {
  if (std::exchange(inside_->committed, true))
    throw FailedPrecondition(fmt::format("checkpoint \"{}\": already committed", inside_->prefix.native()));
  try {
    inside_->commit();
  } catch (...) {  // No index will ever name these data.
    if (existing_shards(inside_->prefix) != inside_->num_shards)
      for (std::size_t shard = 0; shard < inside_->num_shards; ++shard) {
        std::error_code ignored;
        fs::remove(bundle_data_path(inside_->prefix, shard, inside_->num_shards), ignored);
      }
    throw;
  }
  try {
    remove_data(inside_->prefix, fmt::format("-of-{:05}", inside_->num_shards));
  } catch (const std::bad_alloc&) {  // The checkpoint exists; the next one of this name removes them.
  }
}

void remove_data_without_index(const fs::path& prefix) {
  const std::string stem = prefix.filename().native();
  for (const std::string& name : list_directory(prefix.parent_path())) {
    const std::size_t end = name.rfind(".data-");
    if (end == std::string::npos || !name.starts_with(stem)) continue;
    const std::string own = name.substr(0, end);
    const std::string_view step = std::string_view(own).substr(stem.size());
    const bool is_step = step.size() > 1 && step[0] == '-' && step.find_first_not_of("0123456789", 1) == step.npos;
    std::error_code ignored;
    if (is_step && is_data_name(name, own) && !fs::exists(bundle_index_path(prefix.parent_path() / own), ignored))
      fs::remove(prefix.parent_path() / name, ignored);
  }
}

void remove_bundle(const fs::path& prefix) {
  std::error_code ignored;
  fs::remove(bundle_index_path(prefix), ignored);
  remove_data(prefix, "");
}

}  // namespace plimsoll
