// NumPy's files: .npy, one array, and .npz, a zip of them.
//
//   save_npz("data.npz", {{"x", x}, {"y", y}});              // NumPy: np.load("data.npz")["x"]
//   TensorTree data = load_npz("data.npz");                   // data["x"].tensor()
//   save_npy("x.npy", x);  Tensor x = load_npy("x.npy");
//
// Reads versions 1 to 3, both element orders and byte orders, stored and deflated members; writes version 1, stored, so
// that others can map them. Arrays of objects are pickles, which run code: they are refused (Unsupported), as are
// unsupported dtypes. bfloat16, which NumPy does not have, is written as raw 2-byte elements ("|V2", as ml_dtypes does)
// and read back from them. A damaged file throws Corruption with its offset. Data are read directly into the tensors'
// memory; deflated members and Fortran order use a small buffer. Thread safety: the functions share only files.
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
struct ZipMember;
}  // namespace internal

// Throws NotFound, Corruption, Unsupported, OutOfMemory.
PLIMSOLL_API Tensor load_npy(const std::filesystem::path& path);
PLIMSOLL_API Tensor load_npy(std::span<const std::byte> bytes);
PLIMSOLL_API void save_npy(const std::filesystem::path& path, const Tensor& tensor);

// Names are split at "/" (tree_names.h). A tree that is a single tensor has no name: InvalidArgument.
PLIMSOLL_API TensorTree load_npz(const std::filesystem::path& path);
PLIMSOLL_API void save_npz(const std::filesystem::path& path, const TensorTree& tree);

// What an array is, before it is read.
struct NpyEntry {
  std::string name;            // Without ".npy".
  std::optional<DType> dtype;  // Empty when it is not supported.
  std::string descr;           // NumPy's: "<f4".
  Shape shape;
  bool fortran_order = false;
  bool deflated = false;
  std::uint64_t size = 0;  // Bytes of the elements.
};

// Describes an .npy file; `name` is the file's. Throws NotFound, Corruption, Unsupported for objects and structures.
PLIMSOLL_API NpyEntry npy_entry(const std::filesystem::path& path);

// One by one.
class PLIMSOLL_API NpzFile {
 public:
  // Throws NotFound, Corruption, also for two arrays of the same name, and Unsupported for archives in several files.
  explicit NpzFile(const std::filesystem::path& path);
  explicit NpzFile(std::span<const std::byte> bytes);  // From memory, which must outlive it.
  NpzFile(NpzFile&&) noexcept;
  ~NpzFile();

  std::vector<std::string> names() const;       // The arrays' names, in the order of the file.
  NpyEntry entry(std::string_view name) const;  // Reads the array's header. Throws NotFound.
  Tensor read(std::string_view name) const;     // Checks the checksum (CRC-32).
  void verify(std::string_view name) const;     // Reads it through a small buffer and checks the checksum.

 private:
  const ZipMember& member(std::string_view name) const;
  void number_members();
  std::unique_ptr<InputFile> file_;
  std::vector<ZipMember> members_;
  std::map<std::string, std::size_t, std::less<>> positions_;  // The arrays' positions among the members.
};

}  // namespace plimsoll
