// HDF5 files: the part of the format that Keras uses, which is named tensors in groups, and text as attributes.
//
//   save_hdf5("weights.h5", {{"layers", {{"dense", {{"kernel", w}, {"bias", b}}}}}});   // groups in groups
//   TensorTree tree = load_hdf5("weights.h5");                        // tree["layers"]["dense"]["kernel"].tensor()
//
//   Hdf5File file("model.h5");                                        // one by one
//   file.text("", "model_config");  file.entries();  Tensor w = file.read("model_weights/dense/kernel:0");
//   Tensor big = file.map("model_weights/embedding/table");           // on the file's own pages, without a copy
//
// Reads superblocks 0 to 3, groups as symbol tables (and the newest form while they are small), datasets in one piece,
// inside their header, or in chunks (plain, deflated, shuffled). Writes what the oldest libraries read. Needs no
// library for either. Files are not trusted: damage throws Corruption with the offset, unsupported features throw
// Unsupported. Thread safety: a file may be read on several threads at once. Cost: names and attributes are held in
// memory, at most 64 MiB of them.
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
struct Hdf5Object;
}  // namespace internal

struct Hdf5Entry {
  std::string name;            // "layers/dense/vars/0".
  std::optional<DType> dtype;  // Empty when it is not supported.
  std::string type_name;       // The file's: "float of 4 bytes".
  Shape shape;
  std::uint64_t size = 0;    // Of the elements, in bytes.
  std::uint64_t offset = 0;  // In the file, when it is stored in one piece; else 0.
};

class PLIMSOLL_API Hdf5File {
 public:
  // Throws NotFound, Corruption, and Unsupported for what is not read.
  explicit Hdf5File(const std::filesystem::path& path);
  explicit Hdf5File(std::span<const std::byte> bytes);  // From memory, which must outlive it.
  // A part of a file, such as a stored member of an archive.
  Hdf5File(std::shared_ptr<const InputFile> file, std::uint64_t offset, std::uint64_t size);
  Hdf5File(Hdf5File&&) noexcept;
  ~Hdf5File();

  const std::vector<Hdf5Entry>& entries() const noexcept { return entries_; }  // Datasets, group by group.
  bool has(std::string_view name) const;                                       // A dataset or a group.
  const Hdf5Entry& entry(std::string_view name) const;                         // Throws NotFound.
  std::vector<std::string> groups() const;                                     // Their names, without the root.
  // The attributes with text of a group ("": the root) or a dataset.
  bool has_text(std::string_view object, std::string_view attribute) const;
  const std::string& text(std::string_view object, std::string_view attribute) const;                // Throws NotFound.
  const std::vector<std::string>& texts(std::string_view object, std::string_view attribute) const;  // A list of them.
  std::vector<std::string> text_names(std::string_view object) const;

  // A new tensor. Throws NotFound, OutOfMemory, Corruption, and Unsupported for other dtypes and filters.
  Tensor read(std::string_view name) const;
  // A tensor on a private mapping of the file, which lasts as long as the tensor and is not charged to a budget.
  // Variables use it without a copy and copy it, charged, when they change. The file must not be truncated meanwhile. A
  // dataset that is not in one piece, or not aligned for its dtype, is read instead.
  Tensor map(std::string_view name) const;

 private:
  void load();
  const Hdf5Object* find(std::string_view name) const;
  std::shared_ptr<const InputFile> file_;
  std::uint64_t base_ = 0, size_ = 0;
  std::vector<Hdf5Object> objects_;
  std::vector<Hdf5Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> positions_;  // Of objects.
  std::map<std::string, std::size_t, std::less<>> entry_positions_;
};

// Atomic. Lists become groups "0", "1", ... Throws InvalidArgument for a single tensor (it has no name) and a
// repeated name.
PLIMSOLL_API void save_hdf5(const std::filesystem::path& path, const TensorTree& tree);
PLIMSOLL_API TensorTree load_hdf5(const std::filesystem::path& path);

}  // namespace plimsoll
