// AtomicFile: a file that appears whole or not at all, even when the process or the machine stops half way.
//
//   AtomicFile file("run/model.ckpt");
//   file.write(header);
//   file.write(weights);
//   file.commit();          // Now, and only now, run/model.ckpt is the new file.
//
// It writes to a temporary name in the same directory; commit() makes the bytes durable, renames the file and makes the
// new name durable. Without commit() the destructor removes the temporary and leaves the old file unchanged. A process
// that is killed leaves the temporary behind; remove_stale_temporaries() finds those that no process is writing. A
// file that is replaced keeps its permission bits; a symbolic link is followed, not replaced. Thread safety: one thread
// at a time. Cost: a 64 KiB buffer; commit() waits for the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

class PLIMSOLL_API AtomicFile {
 public:
  // Throws NotFound when the directory does not exist, Error (with the path and the system's reason) otherwise.
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends. Throws Error when the disk is full or fails; the file can then only be abandoned.
  // Throws FailedPrecondition after commit().
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  std::uint64_t bytes_written() const noexcept { return bytes_written_; }

  // Throws as write() does; then the old file is unchanged and the temporary is removed.
  void commit();

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  void flush();
  void open_temporary();
  void put(std::span<const std::byte> bytes);
  void give_up() noexcept;
  void require_open(const char* verb) const;
  [[noreturn]] void fail(const char* verb);

  std::filesystem::path path_;       // As given.
  std::filesystem::path target_;     // The file a symbolic link names, else path_.
  std::filesystem::path temporary_;  // Exists while file_ >= 0.
  std::vector<std::byte> buffer_;
  std::uint64_t bytes_written_ = 0;
  int file_ = -1;
};

// Removes what AtomicFiles left behind in `directory` when their process ended without warning: temporaries whose
// target has a name that begins with `target_prefix` and that no living AtomicFile holds. Returns how many it removed;
// silently skips what cannot be read or removed.
PLIMSOLL_API std::size_t remove_stale_temporaries(const std::filesystem::path& directory,
                                                  std::string_view target_prefix);

// The names in `directory` ("": the current one), in no particular order; empty when it cannot be read. (The standard
// library's iterators end the program when memory runs out.)
PLIMSOLL_API std::vector<std::string> list_directory(const std::filesystem::path& directory);

// The whole file. Throws NotFound when there is none, InvalidArgument when it has more than `max_bytes` (which is then
// not read further), Error (with the path and the system's reason) when it cannot be read.
PLIMSOLL_API std::string read_file(const std::filesystem::path& path, std::size_t max_bytes);

}  // namespace plimsoll::internal
