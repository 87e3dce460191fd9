// Tensor bundles: TensorFlow's checkpoints, version 2. `PREFIX.index` locates each named tensor in
// `PREFIX.data-00000-of-00001`.
//
//   BundleWriter writer("run/model.ckpt-7");
//   writer.add("dense/kernel", kernel);
//   writer.commit();                                  // now, and only now, the checkpoint exists
//
//   BundleReader reader("run/model.ckpt-7");
//   for (const BundleEntry& entry : reader.entries()) std::cout << entry.key << entry.shape;
//   Tensor kernel = reader.read("dense/kernel");
//
// Tensors are copied directly between the file and their own memory, a piece at a time, without a second copy. If the
// process is killed at any instant, the previous checkpoint of the same name still loads: the data are written first,
// beside the old data, then the index replaces the old index. Every byte that is read is checked against its checksum;
// a damaged file throws Corruption with the file, the key and the offset. Large tensors are read on all threads of the
// pool. Thread safety: a reader may be used on several threads at once, a writer on one. Cost: the index is held in
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {
namespace internal {
class InputFile;
}  // namespace internal

// A part of a partitioned tensor, stored in its own entry.
struct BundleSlice {
  std::vector<std::int64_t> starts, sizes;  // On each axis.
  std::vector<bool> is_whole;               // Axes that the index says it covers entirely.
};

struct BundleEntry {
  std::string key;
  std::optional<DType> dtype;  // None when it is not one of ours.
  std::string dtype_name;      // TensorFlow's: "float32", "string", "complex64".
  Shape shape;
  std::uint32_t shard = 0;
  std::uint64_t offset = 0;  // In the shard.
  std::uint64_t size = 0;    // Bytes there.
  std::uint32_t checksum = 0;
  std::vector<BundleSlice> slices;  // For a partitioned tensor, whose own shard, offset, size and checksum are unused.

  bool is_partitioned() const noexcept { return !slices.empty(); }
  bool is_slice() const noexcept { return key.starts_with('\0'); }  // Part of a partitioned tensor, without a name.
  bool is_string() const noexcept { return dtype_name == "string"; }
};

struct BundleReadOptions {
  bool verify_checksums = true;
};

class PLIMSOLL_API BundleReader {
 public:
  // Reads the index and checks the sizes of the data files. Throws NotFound when there is no such checkpoint,
  // Unsupported for one of version 1, Corruption for a damaged index, for entries that overlap and for entries outside
  // their data file. A missing data file is NotFound once it is needed.
  explicit BundleReader(const std::filesystem::path& prefix, const BundleReadOptions& options = {});
  // From memory.
  BundleReader(std::span<const std::byte> index, std::span<const std::span<const std::byte>> shards,
               const BundleReadOptions& options = {});
  BundleReader(BundleReader&&) noexcept;
  ~BundleReader();

  const std::string& prefix() const noexcept { return prefix_; }
  std::size_t num_shards() const noexcept { return shards_.size(); }
  const std::vector<BundleEntry>& entries() const noexcept { return entries_; }  // By key.
  bool contains(std::string_view key) const noexcept { return find(key) != nullptr; }
  const BundleEntry& entry(std::string_view key) const;  // Throws NotFound.

  // A new tensor. Throws NotFound, Corruption, OutOfMemory, and Unsupported for what is not one of our dtypes; then
  // nothing is left behind.
  Tensor read(std::string_view key) const;
  // Into existing memory. Throws InvalidArgument when dtype or shape differ; after Corruption it is half written.
  void read_into(std::string_view key, const TensorView& destination) const;
  std::vector<std::string> read_strings(std::string_view key) const;  // The elements of a string tensor, in order.
  void verify(std::string_view key) const;  // Reads it through a small buffer and checks the checksum.

 private:
  void load_index(const InputFile& index);
  void add_entry(const InputFile& index, std::string_view key, std::string_view value, std::uint64_t at);
  void check_places(const InputFile& index) const;
  const BundleEntry* find(std::string_view key) const noexcept;
  const InputFile& shard_of(const BundleEntry& entry) const;
  std::string where(const BundleEntry& entry) const;
  void check_crc(const BundleEntry& entry, std::uint32_t crc) const;
  std::vector<std::string> parse_strings(const BundleEntry& entry, std::string_view payload) const;
  void check_slices(const BundleEntry& whole) const;
  void read_slices(const BundleEntry& whole, std::byte* destination) const;

  std::string prefix_;
  BundleReadOptions options_;
  bool big_endian_ = false;
  std::vector<BundleEntry> entries_;
  std::vector<std::unique_ptr<InputFile>> shards_;  // Null where the file is missing.
};

struct BundleWriteOptions {
  std::size_t num_shards = 1;
};

class PLIMSOLL_API BundleWriter {
 public:
  // Makes the folder, removes what killed writers of this prefix left behind, and opens the data files under temporary
  // names. Throws InvalidArgument for a prefix without a name or for no shards, Error when the disk refuses. When a
  // checkpoint of this prefix with the same number of shards exists, one more (empty) shard is written, so that old and
  // new data have different names.
  explicit BundleWriter(const std::filesystem::path& prefix, const BundleWriteOptions& options = {});
  ~BundleWriter();  // Without commit(): discards the new files and keeps the old ones.
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;

  // Throws InvalidArgument for a key that was added before, an empty one and a shard that does not exist; Disposed.
  void add(std::string_view key, const Tensor& tensor, std::size_t shard = 0);
  void add(std::string_view key, const ConstTensorView& view, std::size_t shard = 0);
  void add_strings(std::string_view key, const Shape& shape, std::span<const std::string> strings,
                   std::size_t shard = 0);

  void commit();  // Once. Then removes data files of the checkpoint that it replaced.

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

// Removes a checkpoint, the index first, so that it is never half there. Missing files are ignored.
PLIMSOLL_API void remove_bundle(const std::filesystem::path& prefix);

// Removes data files of "PREFIX-STEP", for any step, that have no index because their process was killed too early.
// Requires that nothing is being saved there.
PLIMSOLL_API void remove_data_without_index(const std::filesystem::path& prefix);

// "run/model.ckpt-7.data-00000-of-00002"
PLIMSOLL_API std::filesystem::path bundle_data_path(const std::filesystem::path& prefix, std::size_t shard,
                                                    std::size_t num_shards);
PLIMSOLL_API std::filesystem::path bundle_index_path(const std::filesystem::path& prefix);

}  // namespace plimsoll
