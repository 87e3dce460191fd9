// Saver: saves the variables of a session in checkpoints that TensorFlow reads and writes.
//
//   Saver saver({.max_to_keep = 2});
//   std::string path = saver.save(session, "run/model.ckpt", step);       // "run/model.ckpt-7"
//   saver.restore(session, latest_checkpoint("run"));                      // all of them or none
//
// A tensor in the file has the name of its variable. Saving waits for current runs and takes the values between two of
// them; later runs may continue meanwhile (a variable they change before it is written is copied first). If the process
// is killed at any instant, the last complete checkpoint loads. Restoring writes variables in place, needs no
// initialize_variables() before it, and is charged to the session's budget; it makes no second copy of the model. It
// reads checkpoints of TensorFlow 1 by name, and those of TensorFlow 2 by the full names of their variables.
// Thread safety: one thread at a time for a saver. Cost: that of writing or reading the bytes; values that are replaced
// are read twice, first to verify them all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/graph/session.h"
#include "plimsoll/io/checkpoint.h"

namespace plimsoll {

struct SaverOptions {
  std::size_t max_to_keep = 5;              // 0: all.
  std::vector<std::string> variables = {};  // By name; default: all of the graph.
  bool exact = false;                       // Refuse checkpoints that contain tensors without a variable.
};

class PLIMSOLL_API Saver {
 public:
  explicit Saver(const SaverOptions& options = {});

  // Writes "PREFIX-STEP", or the prefix itself, names it in the folder's `checkpoint` file and removes the oldest
  // checkpoints of this saver beyond max_to_keep. Returns the path. Throws FailedPrecondition for variables without a
  // value, NotFound for options.variables that the graph does not have, InvalidArgument for two variables of one name,
  // Error when the disk refuses; the last checkpoint is then unchanged.
  std::string save(Session& session, const std::string& prefix, std::optional<std::int64_t> step = {});

  // Sets the variables to the values in the checkpoint. Throws NotFound when there is none or it lacks variables,
  // InvalidArgument when dtypes or shapes differ, with everything missing, different and extra in one message;
  // Corruption; OutOfMemory. Then no variable has changed. Names that are only extra are logged, or refused with
  // `exact`.
  void restore(Session& session, const std::string& prefix);

  // After a restart, continues with the checkpoints that the folder's `checkpoint` file lists, as if this saver had
  // made them.
  void recover(const std::string& directory) { keeper_.recover(directory); }
  const std::vector<std::string>& checkpoints() const noexcept { return keeper_.kept(); }  // Oldest first.

 private:
  SaverOptions options_;
  CheckpointKeeper keeper_;
};

}  // namespace plimsoll
