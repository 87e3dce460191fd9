// Live files: the counters of running processes in $XDG_RUNTIME_DIR/plimsoll, one file each, named by process id.
//
//   LiveFile file;                              // makes and locks $XDG_RUNTIME_DIR/plimsoll/4711
//   file.publish(counters);
//
//   for (const LiveCounters& process : read_live_processes()) ...                 // another program, same user
//
// The folder has mode 0700, files have 0600, links are not followed, and both must belong to the user. A process holds
// a lock on its file as long as it lives: an unlocked file belongs to a dead process, and reading removes it.
// Publishing is two small writes with an odd and an even sequence number around the counters; readers try again when
// they see an odd number, a changed one or a wrong checksum. Thread safety: one writer; reading from any thread and
// process.
//
// Layout, little endian: "PLIMLIVE", u32 version, u32 process, u32 bytes of counters, u32 their CRC-32C, u64 sequence,
// LiveCounters.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/observe/live/live_counters.h"

namespace plimsoll::internal {

// Opens the folder. Throws FailedPrecondition without XDG_RUNTIME_DIR and when a folder there does not belong to the
// user, Error when the system refuses. With `make` it is created; otherwise file() is -1 when there is none.
class PLIMSOLL_API LiveFolder {
 public:
  explicit LiveFolder(bool make);
  ~LiveFolder();
  LiveFolder(const LiveFolder&) = delete;
  LiveFolder& operator=(const LiveFolder&) = delete;

  int file() const noexcept { return file_; }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

class PLIMSOLL_API LiveFile {
 public:
  // Throws as LiveFolder does, and FailedPrecondition when a living process has a file with this id: in containers that
  // share the folder, or this process itself.
  LiveFile();
  ~LiveFile();  // Removes it, unless this process is a fork of the one that made it.
  LiveFile(const LiveFile&) = delete;
  LiveFile& operator=(const LiveFile&) = delete;

  void publish(const LiveCounters& counters) noexcept;
  void remove() noexcept;  // Removes the name; the lock stays until the end.
  // In a forked child: leaves the lock to the parent.
  void leave_to_parent() noexcept;
  const LiveFolder& folder() const noexcept { return folder_; }
  std::filesystem::path path() const { return folder_.path() / name_; }

 private:
  LiveFolder folder_;
  const int process_;
  const std::string name_;
  int file_ = -1;
  std::uint64_t sequence_ = 0;
};

// Sorted by process id. Removes what dead processes left; skips files that it cannot read or parse. Empty when there is
// no folder; throws FailedPrecondition without XDG_RUNTIME_DIR and for a folder that does not belong to the user.
PLIMSOLL_API std::vector<LiveCounters> read_live_processes();
// One process. Empty when it publishes nothing.
PLIMSOLL_API std::optional<LiveCounters> read_live_process(int process);

}  // namespace plimsoll::internal
