// What `plimsoll train` writes: checked before the first step, so that no epoch is wasted.
//
//   require_writable_folder("--out", "run/model");            // Creates, writes, removes; throws Error with the
//   reason. std::string out = free_folder("mnist-trained");           // Or mnist-trained-2, -3, .. when that is there.
//   Checkpoints checkpoints("cp");  checkpoints.next(0);      // cp/cp-0004.ckpt, when the last there is cp-0003
#pragma once

#include <string>

namespace plimsoll::internal {

void require_writable_folder(const char* option, const std::string& folder);
void require_writable_file(const char* option, const std::string& path);

std::string free_folder(const std::string& name);
// MODEL-trained: the file's stem, or its folder's name when it is called model.json.
std::string trained_name(const std::string& path);

// Numbered checkpoints of a folder. None is ever overwritten: numbers continue after the existing ones.
class Checkpoints {
 public:
  Checkpoints() = default;
  explicit Checkpoints(std::string folder);
  int last() const noexcept { return last_; }  // The highest number when it was made; 0 when there was none.
  std::string path(int number) const;
  bool is_set() const noexcept { return !folder_.empty(); }
  const std::string& folder() const noexcept { return folder_; }

 private:
  std::string folder_;
  int last_ = 0;
};

// Makes a folder and holds it for one training until that ends: two that number their checkpoints in one folder would
// overwrite each other's. Removes what killed ones left half written. Throws FailedPrecondition when another process
// holds it; where the file system has no locks, there is none.
class TrainingFolderLock {
 public:
  TrainingFolderLock(const char* option, const std::string& folder);
  ~TrainingFolderLock();
  TrainingFolderLock(const TrainingFolderLock&) = delete;
  TrainingFolderLock& operator=(const TrainingFolderLock&) = delete;

 private:
  const std::string folder_;
  const bool made_;  // By this: it is removed again if nothing is written into it.
  const int handle_;
};

// Throws FailedPrecondition when model.json or columns.json of this folder are of another model or table. Empty texts
// are not compared.
void require_same_training(const char* option, const std::string& folder, const std::string& topology,
                           const std::string& columns);

// A training to continue. Throws NotFound when the folder has no checkpoint.
struct Resumed {
  std::string weights;  // The newest checkpoint.
  int epochs = 0;       // Completed epochs.
  std::string model;    // FOLDER/model.json, or "" when it is not there.
};
Resumed find_training(const std::string& folder);

}  // namespace plimsoll::internal
