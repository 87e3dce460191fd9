// Tensor bundles: TensorFlow's checkpoints, version 2. `PREFIX.index` says where in `PREFIX.data-00000-of-00001` each
// named tensor lies.
//
//   BundleWriter writer("run/model.ckpt-7");
//   writer.add("dense/kernel", kernel);
//   writer.commit();                                  // now, and only now, the checkpoint exists
//
//   BundleReader reader("run/model.ckpt-7");
//   for (const BundleEntry& entry : reader.entries()) std::cout << entry.key << entry.shape;
//   Tensor kernel = reader.read("dense/kernel");
//
// Tensors go directly between the file and their own memory, a piece at a time: there is no second copy of anything.
// Killed at any instant, the checkpoint that was there under the same name before still loads: data are written first,
// beside the old ones, then the index replaces the old index. Every byte that is read is checked against its checksum;
// a damaged file is Corruption with the file, the key and the offset. Large tensors are read on all threads of the
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

class InputFile;

// A part of a partitioned tensor, which has an entry of its own.
struct BundleSlice {
  std::vector<std::int64_t> starts, sizes;  // On each axis.
  std::vector<bool> is_whole;               // Axes of which it was said to have all.
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
  std::vector<BundleSlice> slices;  // Of a partitioned tensor, of which shard, offset, size and checksum say nothing.

  bool is_partitioned() const noexcept { return !slices.empty(); }
  bool is_slice() const noexcept { return key.starts_with('\0'); }  // Of a partitioned tensor; its key is not a name.
  bool is_string() const noexcept { return dtype_name == "string"; }
};

struct BundleReadOptions {
  bool verify_checksums = true;
};

class PLIMSOLL_API BundleReader {
 public:
  // Reads the index and looks at the sizes of the data files. Throws NotFound when there is no such checkpoint,
  // Unsupported for one of version 1, Corruption for a damaged index, for entries that overlap and for those that lie
  // outside of their data file. A data file that is not there is NotFound when it is needed.
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
  // Into memory that is there. Throws InvalidArgument when dtype or shape differ; Corruption leaves it half written.
  void read_into(std::string_view key, const TensorView& destination) const;
  std::vector<std::string> read_strings(std::string_view key) const;  // Of a string tensor, in order.
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
  // Makes the folder, removes what killed writers of this prefix left, and opens the data files under temporary names.
  // Throws InvalidArgument for a prefix without a name or for no shards, Error when the disk refuses. When there is a
  // checkpoint of this prefix with as many shards already, one (empty) shard more is written, so that old and new data
  // are never in each other's way.
  explicit BundleWriter(const std::filesystem::path& prefix, const BundleWriteOptions& options = {});
  ~BundleWriter();  // Without commit(): gives up, and leaves what was there.
  BundleWriter(const BundleWriter&) = delete;
  BundleWriter& operator=(const BundleWriter&) = delete;

  // Throws InvalidArgument for a key that was added before, an empty one and a shard that is not there; Disposed.
  void add(std::string_view key, const Tensor& tensor, std::size_t shard = 0);
  void add(std::string_view key, const ConstTensorView& view, std::size_t shard = 0);
  void add_strings(std::string_view key, const Shape& shape, std::span<const std::string> strings,
                   std::size_t shard = 0);

  void commit();  // Once. Then removes data files of the checkpoint that it replaced.

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

// Removes a checkpoint: index first, so that it never exists by half. What is not there is fine.
PLIMSOLL_API void remove_bundle(const std::filesystem::path& prefix);

// Removes data files of "PREFIX-STEP", for any step, that have no index: a process was killed before it wrote that.
// Requires that nobody is saving there.
PLIMSOLL_API void remove_data_without_index(const std::filesystem::path& prefix);

// "run/model.ckpt-7.data-00000-of-00002"
PLIMSOLL_API std::filesystem::path bundle_data_path(const std::filesystem::path& prefix, std::size_t shard,
                                                    std::size_t num_shards);
PLIMSOLL_API std::filesystem::path bundle_index_path(const std::filesystem::path& prefix);

}  // namespace plimsoll
