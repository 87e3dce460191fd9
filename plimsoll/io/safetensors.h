// safetensors files: a JSON header and the bytes of named tensors.
//
//   save_safetensors("model.safetensors", {{"w", w}, {"layers", {x, y}}});      // names "w", "layers/0", "layers/1"
//   TensorTree tree = load_safetensors("model.safetensors");                     // tree["layers"][1].tensor()
//
//   SafetensorsFile file("model.safetensors");                                   // one by one
//   file.metadata();  file.entries();  Tensor w = file.read("w");
//   Tensor big = file.map("embedding");          // on the file's own pages, without a copy
//
// Files are refused, with Corruption and the offset, when they break any rule of the format: holes, overlaps, sizes
// that do not match, repeated names, bytes after the last tensor. Data are copied directly between the file and the
// tensors' memory. Thread safety: a file may be read on several threads at once. Cost: the header is held in memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor_tree.h"

namespace plimsoll {
namespace internal {
class InputFile;
}  // namespace internal

using FileMetadata = std::map<std::string, std::string>;

struct SafetensorsEntry {
  std::string name;
  std::optional<DType> dtype;  // Empty when it is not supported.
  std::string dtype_name;      // The file's: "F32", "F8_E4M3".
  Shape shape;
  std::uint64_t offset = 0;  // In the file.
  std::uint64_t size = 0;
};

class PLIMSOLL_API SafetensorsFile {
 public:
  // Throws NotFound, Corruption, and Unsupported for a header above 100 MB.
  explicit SafetensorsFile(const std::filesystem::path& path);
  explicit SafetensorsFile(std::span<const std::byte> bytes);  // From memory, which must outlive it.
  SafetensorsFile(SafetensorsFile&&) noexcept;
  ~SafetensorsFile();

  const FileMetadata& metadata() const noexcept { return metadata_; }
  const std::vector<SafetensorsEntry>& entries() const noexcept { return entries_; }  // In the order of their bytes.
  const SafetensorsEntry& entry(std::string_view name) const;                         // Throws NotFound.

  // A new tensor. Throws NotFound, OutOfMemory, and Unsupported for other dtypes.
  Tensor read(std::string_view name) const;
  // A tensor on a private mapping of the file, which lasts as long as the tensor. The file must not be truncated
  // meanwhile: the system would end the program. Bools, and bytes that are not aligned for the dtype, are read instead.
  Tensor map(std::string_view name) const;

 private:
  void load();
  std::unique_ptr<InputFile> file_;
  FileMetadata metadata_;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::size_t, std::less<>> positions_;
};

// Atomic. Throws InvalidArgument for a single tensor (it has no name), a repeated name, the name "__metadata__" and
// names or metadata that are not UTF-8.
PLIMSOLL_API void save_safetensors(const std::filesystem::path& path, const TensorTree& tree,
                                   const FileMetadata& metadata = {});
PLIMSOLL_API TensorTree load_safetensors(const std::filesystem::path& path);

}  // namespace plimsoll
