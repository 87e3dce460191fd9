#include "plimsoll/cli/train/train_command_outputs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/json.h"
#include "plimsoll/base/make_directories.h"
#include "plimsoll/cli/train/table_columns.h"
#include "plimsoll/io/checkpoint_state.h"

namespace plimsoll::internal {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostText = std::size_t{1} << 30;

[[noreturn]] void refuse(const char* option, const std::string& path, const std::string& why) {
  throw Error(fmt::format("train: {} {} cannot be written ({}); name another place", option, path, why));
}

// Removes the folders that were created.
class MadeFolders {
 public:
  ~MadeFolders() {
    std::error_code ignored;
    for (auto each = made_.rbegin(); each != made_.rend(); ++each) fs::remove(*each, ignored);  // If they are empty.
  }
  std::error_code make(const fs::path& folder) {
    std::vector<fs::path> missing;
    std::error_code error;
    for (fs::path at = folder; !at.empty() && !fs::exists(at, error); at = at.parent_path()) {
      missing.push_back(at);
      if (at == at.parent_path()) break;
    }
    for (auto each = missing.rbegin(); each != missing.rend(); ++each) {
      if (fs::create_directory(*each, error)) made_.push_back(*each);
      if (error) return error;
    }
    if (!fs::is_directory(folder, error)) return std::make_error_code(std::errc::not_a_directory);
    return {};
  }

 private:
  std::vector<fs::path> made_;
};

void try_to_write(const char* option, const std::string& path, const fs::path& folder) {
  MadeFolders folders;
  if (const std::error_code error = folders.make(folder)) refuse(option, path, error.message());
  const std::string probe = (folder / fmt::format(".plimsoll-{}", ::getpid())).string();
  std::FILE* const file = std::fopen(probe.c_str(), "wbx");
  if (file == nullptr) refuse(option, path, std::strerror(errno));
  const bool written = std::fwrite("plimsoll", 1, 8, file) == 8;
  const int reason = errno;
  const bool closed = std::fclose(file) == 0;
  std::remove(probe.c_str());
  if (!written || !closed) refuse(option, path, std::strerror(written ? errno : reason));
}

int open_folder(const std::string& folder) {
  make_directories(folder);
  return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

// The number in cp-0012.ckpt, whatever follows.
std::optional<int> number_of(const std::string& name) {
  constexpr std::string_view kBegin = "cp-";
  int number = 0;
  if (!name.starts_with(kBegin)) return std::nullopt;
  const auto [end, error] = std::from_chars(name.data() + kBegin.size(), name.data() + name.size(), number);
  const std::string_view rest(end, static_cast<std::size_t>(name.data() + name.size() - end));
  return error == std::errc() && number > 0 && rest.starts_with(".ckpt") ? std::optional(number) : std::nullopt;
}

}  // namespace

void require_writable_folder(const char* option, const std::string& folder) {
  if (folder.find("://") != std::string::npos) refuse(option, folder, "it is a URL");
  try_to_write(option, folder, folder);
}

void require_writable_file(const char* option, const std::string& path) {
  if (fs::is_directory(path)) refuse(option, path, "it is a folder");
  const fs::path parent = fs::path(path).parent_path();
  try_to_write(option, path, parent.empty() ? fs::path(".") : parent);
}

std::string free_folder(const std::string& name) {
  if (!fs::exists(name)) return name;
  for (int i = 2;; ++i)
    if (std::string other = fmt::format("{}-{}", name, i); !fs::exists(other)) return other;
}

std::string trained_name(const std::string& path) {
  const fs::path absolute = fs::absolute(path).lexically_normal();
  fs::path name = absolute.filename();
  if (name.extension() == ".gz") name = name.stem();
  name = name == "model.json" ? absolute.parent_path().filename() : name.stem();
  return (name.empty() ? std::string("model") : name.string()) + "-trained";
}

Checkpoints::Checkpoints(std::string folder) : folder_(std::move(folder)) {
  std::error_code error;
  for (fs::directory_iterator each(folder_, error), end; !error && each != end; each.increment(error))
    last_ = std::max(last_, number_of(each->path().filename().string()).value_or(0));
}

std::string Checkpoints::path(int number) const {
  return (fs::path(folder_) / fmt::format("cp-{:04d}.ckpt", number)).string();
}

TrainingFolderLock::TrainingFolderLock(const char* option, const std::string& folder)
    : folder_(folder), made_(!fs::exists(folder)), handle_(open_folder(folder)) {
  if (handle_ >= 0 && ::flock(handle_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(handle_);
    throw FailedPrecondition(
        fmt::format("train: {} {}: another process is training there; name another folder", option, folder));
  }
  remove_stale_temporaries(folder, "");
}

TrainingFolderLock::~TrainingFolderLock() {
  std::error_code ignored;
  if (made_) fs::remove(folder_, ignored);
  if (handle_ >= 0) ::close(handle_);
}

void require_same_training(const char* option, const std::string& folder, const std::string& topology,
                           const std::string& columns) {
  const auto text_of = [&](const char* name) {
    const fs::path file = fs::path(folder) / name;
    return fs::exists(file) ? read_file(file, kMostText) : std::string();
  };
  const auto refuse_other = [&](const char* what, const char* name) {
    throw FailedPrecondition(
        fmt::format("train: {} {}: it belongs to a training of another {} ({} there differs); name another folder, or "
                    "continue that "
                    "training with --resume",
                    option, folder, what, name));
  };
  const std::string model = text_of("model.json"), table = text_of(TableColumns::kFile);
  if (!model.empty() && !topology.empty() &&
      parse_json(model).value("modelTopology", nlohmann::json()) != parse_json(topology)["modelTopology"])
    refuse_other("model", "model.json");
  if (!table.empty() && !columns.empty() && parse_json(table) != parse_json(columns))
    refuse_other("table", TableColumns::kFile);
}

Resumed find_training(const std::string& folder) {
  Resumed found;
  if (!fs::is_directory(folder)) throw NotFound(fmt::format("train: --resume {}: there is no such folder", folder));
  found.weights = latest_checkpoint(folder);
  const Checkpoints checkpoints(folder);
  if (found.weights.empty() && checkpoints.last() > 0) found.weights = checkpoints.path(checkpoints.last());
  if (found.weights.empty())
    throw NotFound(
        fmt::format("train: --resume {}: there is no checkpoint; name the folder that --checkpoint named", folder));
  found.epochs = number_of(fs::path(found.weights).filename().string()).value_or(checkpoints.last());
  if (const fs::path model = fs::path(folder) / "model.json"; fs::exists(model)) found.model = model.string();
  return found;
}

}  // namespace plimsoll::internal
