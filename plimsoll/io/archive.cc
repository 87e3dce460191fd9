#include "plimsoll/io/archive.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/system_error.h"
#include "plimsoll/io/internal/pieces.h"
#include "plimsoll/io/internal/zip.h"

namespace plimsoll::internal {
namespace {

// A file without a name, which ends with its last handle.
class NamelessFile {
 public:
  NamelessFile() : path_((std::filesystem::temp_directory_path() / "plimsoll_unpacked_XXXXXX").string()) {
    handle_ = mkstemp(path_.data());
    if (handle_ < 0) throw_system_error("file", path_, "make", errno);
  }
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;
  ~NamelessFile() {
    close(handle_);
    unlink(path_.c_str());
  }
  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t done = ::write(handle_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) throw_system_error("file", path_, "write", errno);
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
  }
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  int handle_ = -1;
};

}  // namespace

Archive::Archive(const std::filesystem::path& path)
    : file_(std::make_shared<InputFile>(path)), members_(read_zip_directory(*file_)) {}
Archive::Archive(Archive&&) noexcept = default;
Archive::~Archive() = default;

bool Archive::has(std::string_view name) const {
  for (const ZipMember& each : members_)
    if (each.name == name) return true;
  return false;
}

const ZipMember& Archive::member(std::string_view name) const {
  for (const ZipMember& each : members_)
    if (each.name == name) return each;
  throw NotFound(fmt::format("file \"{}\": there is no \"{}\" in the archive", file_->name(), name));
}

std::string Archive::text(std::string_view name, std::uint64_t max_bytes) const {
  const ZipMember& found = member(name);
  if (found.size > max_bytes)
    throw Unsupported(fmt::format("file \"{}\": member \"{}\" has {} bytes; at most {} are read", file_->name(), name,
                                  found.size, max_bytes));
  ZipMemberReader reader(*file_, found);
  std::string text(static_cast<std::size_t>(found.size), '\0');
  reader.read(std::as_writable_bytes(std::span(text)));
  reader.finish();
  return text;
}

Hdf5File Archive::hdf5(std::string_view name) const {
  const ZipMember& found = member(name);
  ZipMemberReader reader(*file_, found);
  if (!found.is_deflated()) return Hdf5File(file_, reader.data_offset(), found.size);
  NamelessFile unpacked;
  const Staging staging(256_KiB);
  for_each_piece(found.size, staging.bytes().size(), [&](std::uint64_t, std::size_t size) {
    reader.read(staging.bytes().first(size));
    unpacked.write(staging.bytes().first(size));
  });
  reader.finish();
  return Hdf5File(std::filesystem::path(unpacked.path()));
}

void save_archive(const std::filesystem::path& path, const std::vector<std::pair<std::string, std::string>>& texts,
                  const std::string& hdf5_name, Hdf5Writer& hdf5) {
  remove_stale_temporaries(path.parent_path(), path.filename().native() + ".");
  AtomicFile file(path);
  ZipWriter zip(file);
  for (const auto& [name, text] : texts) zip.add(name, text, {});
  zip.add_parts(
      hdf5_name, [&](ZipWriter::Sink sink) { hdf5.for_each_part(sink); }, Hdf5Writer::kAlignment);
  zip.finish();
  file.commit();
}

}  // namespace plimsoll::internal
