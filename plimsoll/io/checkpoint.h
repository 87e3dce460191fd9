// Checkpoints of named tensors: saved one after the other, the oldest removed, restored in place.
//
//   CheckpointKeeper keeper({.max_to_keep = 5});
//   std::string path = keeper.save("run/model.ckpt", 7, tensors);    // "run/model.ckpt-7"
//   restore_checkpoint(latest_checkpoint("run"), targets);                                  // all of them or none
//
// A saved checkpoint is whole before the folder's `checkpoint` file names it, and older ones are removed after that: at
// any instant the named latest one loads. Thread safety: one thread at a time for one keeper and one folder. Cost: that
// of the bundle (bundle.h), and a small file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"
#include "plimsoll/io/bundle.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// Writes a bundle of these tensors, in the order of their names. Throws as BundleWriter does.
PLIMSOLL_API void save_checkpoint(const std::filesystem::path& prefix, std::span<const NamedTensor> tensors);
// The same; releases each tensor once it is written.
PLIMSOLL_API void save_checkpoint(const std::filesystem::path& prefix, std::vector<NamedTensor>&& tensors);

struct KeeperOptions {
  std::size_t max_to_keep = 5;  // 0: all.
};

class PLIMSOLL_API CheckpointKeeper {
 public:
  explicit CheckpointKeeper(const KeeperOptions& options = {}) : options_(options) {}

  // Saves to "PREFIX-STEP", or to the prefix itself, and notes it in the folder's `checkpoint` file; then removes the
  // oldest of those that this keeper saved or recovered, beyond max_to_keep. Returns the path. Throws InvalidArgument
  // for a path that is the `checkpoint` file itself, else as BundleWriter; then the state is unchanged.
  std::string save(const std::filesystem::path& prefix, std::optional<std::int64_t> step,
                   std::span<const NamedTensor> tensors);
  std::string save(const std::filesystem::path& prefix, std::optional<std::int64_t> step,
                   std::vector<NamedTensor>&& tensors);

  // Continues after a restart with what the folder's `checkpoint` file lists, if there is one.
  void recover(const std::filesystem::path& directory);

  const std::vector<std::string>& kept() const noexcept { return kept_; }  // Oldest first.

 private:
  std::string begin(const std::filesystem::path& prefix, std::optional<std::int64_t> step) const;  // Returns the path.
  void keep(const std::string& path);

  KeeperOptions options_;
  std::vector<std::string> kept_;
  std::vector<std::string> to_remove_;  // No longer kept; those that could not be removed are tried again.
};

// The destination of a checkpoint's tensor: memory of its dtype and shape.
struct RestoreTarget {
  std::string name;
  TensorView destination;
  bool has_value = true;     // False: its content is not needed, so it may be left half written.
  Device* device = nullptr;  // Where the destination is; nullptr: on the host.
};

// Fills all targets or none: first it checks that every name exists with its dtype and shape, and throws NotFound
// (names are missing) or InvalidArgument (only dtypes or shapes differ), listing all of them and the names that were
// not requested in one message; then it reads the targets that have no value and verifies the checksums of all others
// (Corruption); only then does it write these. The checkpoint may hold more than the targets.
PLIMSOLL_API void restore_checkpoint(const BundleReader& reader, std::span<const RestoreTarget> targets);
PLIMSOLL_API void restore_checkpoint(const std::filesystem::path& prefix, std::span<const RestoreTarget> targets);

// What is requested from a checkpoint, without a destination.
struct CheckpointSpec {
  std::string name;
  DType dtype = f32;
  Shape shape;
};
struct CheckpointFitOptions {
  bool exact = false;  // Tensors that were not requested are InvalidArgument, too.
};
// Throws as restore_checkpoint() does when they do not fit. Returns the names of the tensors that were not requested,
// except those that only describe the structure of an object-based checkpoint.
PLIMSOLL_API std::vector<std::string> check_checkpoint_fits(const BundleReader& reader,
                                                            std::span<const CheckpointSpec> wanted,
                                                            const CheckpointFitOptions& options = {});

}  // namespace plimsoll
