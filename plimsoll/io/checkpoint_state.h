// The `checkpoint` file beside checkpoints: which is the latest, and which others are kept.
//
//   latest_checkpoint("run")                     // "run/model.ckpt-7", or "" when there is none
//   CheckpointState state = read_checkpoint_state("run");
//   write_checkpoint_state("run", {.latest = "model.ckpt-7", .all = {"model.ckpt-6", "model.ckpt-7"}});
//
// A text file that TensorFlow reads and writes, too. Its paths may be relative to the folder (ours are whenever
// possible), so that a folder can be moved. Thread safety: the functions share only files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/api.h"

namespace plimsoll {

struct CheckpointState {
  std::string latest;            // As written in the file.
  std::vector<std::string> all;  // Oldest first; the last is `latest`. Some writers leave them out.
  std::vector<double> timestamps;
  double last_preserved_timestamp = 0;
};

// Throws Corruption with the line for any other text.
PLIMSOLL_API CheckpointState parse_checkpoint_state(std::string_view text, std::string_view file_name);
PLIMSOLL_API std::string format_checkpoint_state(const CheckpointState& state);

// Throws NotFound, Corruption.
PLIMSOLL_API CheckpointState read_checkpoint_state(const std::filesystem::path& directory);
PLIMSOLL_API void write_checkpoint_state(const std::filesystem::path& directory, const CheckpointState& state);

// The prefix that the folder's state names as the latest, when its files are there; else "". A state that cannot be
// read is logged as a warning. Throws InvalidArgument when it does not name a path.
PLIMSOLL_API std::string latest_checkpoint(const std::filesystem::path& directory);

}  // namespace plimsoll
