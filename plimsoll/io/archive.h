// Archive: a zip archive of texts and HDF5 files; Keras 3 saves models in this form.
//
//   Archive archive("model.keras");
//   archive.text("config.json", 64_MiB);
//   Hdf5File weights = archive.hdf5("model.weights.h5");    // maps tensors in place when the member is not compressed
//
//   save_archive("model.keras", {{"config.json", text}}, "model.weights.h5", writer);
//
// A compressed member is unpacked into an unnamed file in the system's folder for temporary files, not into memory.
// Throws Corruption and Unsupported as other file readers do. Thread safety: as InputFile.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/io/hdf5.h"
#include "plimsoll/io/hdf5_writer.h"

namespace plimsoll::internal {

struct ZipMember;

class Archive {
 public:
  explicit Archive(const std::filesystem::path& path);  // Throws NotFound, Corruption, Unsupported.
  Archive(Archive&&) noexcept;
  ~Archive();

  bool has(std::string_view name) const;
  std::string text(std::string_view name, std::uint64_t max_bytes) const;  // Throws NotFound, Unsupported.
  Hdf5File hdf5(std::string_view name) const;                              // Throws NotFound, and as Hdf5File.

 private:
  const ZipMember& member(std::string_view name) const;
  std::shared_ptr<const InputFile> file_;
  std::vector<ZipMember> members_;
};

// Atomic. Nothing is compressed, and tensors are at multiples of 64 in the file, so that they can be mapped.
void save_archive(const std::filesystem::path& path, const std::vector<std::pair<std::string, std::string>>& texts,
                  const std::string& hdf5_name, Hdf5Writer& hdf5);

}  // namespace plimsoll::internal
