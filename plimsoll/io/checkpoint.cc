#include "plimsoll/io/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/device.h"
#include "plimsoll/io/checkpoint_state.h"
#include "plimsoll/tensor/host_access.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNamesShown = 20;

void append_names(std::string& text, const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  const std::size_t shown = std::min(names.size(), kNamesShown);
  text += fmt::format("; {} {}: {}", names.size(), what,
                      fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
}

// The entries that every object-based checkpoint has besides its variables.
bool is_bookkeeping(const BundleEntry& entry) {
  return entry.is_string() || entry.is_slice() || entry.key == "save_counter/.ATTRIBUTES/VARIABLE_VALUE";
}

// As the state file stores it: relative to its folder when it is in there.
std::string relative_name(const fs::path& directory, const fs::path& prefix) {
  return prefix.parent_path() == directory ? prefix.filename().native() : fs::absolute(prefix).native();
}

}  // namespace

void save_checkpoint(const fs::path& prefix, std::span<const NamedTensor> tensors) {
  save_checkpoint(prefix, std::vector<NamedTensor>(tensors.begin(), tensors.end()));
}

void save_checkpoint(const fs::path& prefix, std::vector<NamedTensor>&& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const NamedTensor& a, const NamedTensor& b) { return a.name < b.name; });
  BundleWriter writer(prefix);
  for (NamedTensor& tensor : tensors) {
    writer.add(tensor.name, tensor.tensor);
    tensor.tensor = Tensor();
  }
  writer.commit();
}

std::string CheckpointKeeper::save(const fs::path& prefix, std::optional<std::int64_t> step,
                                   std::span<const NamedTensor> tensors) {
  return save(prefix, step, std::vector<NamedTensor>(tensors.begin(), tensors.end()));
}

std::string CheckpointKeeper::save(const fs::path& prefix, std::optional<std::int64_t> step,
                                   std::vector<NamedTensor>&& tensors) {
  std::string path = begin(prefix, step);
  const bool is_new = !fs::exists(bundle_index_path(path));
  save_checkpoint(path, std::move(tensors));
  try {
    keep(path);
  } catch (...) {
    if (is_new) remove_bundle(path);  // Nothing else would ever remove it.
    throw;
  }
  return path;
}

std::string CheckpointKeeper::begin(const fs::path& prefix, std::optional<std::int64_t> step) const {
  fs::path path = prefix;
  if (step) path += fmt::format("-{}", *step);
  if (path.filename() == "checkpoint")
    throw InvalidArgument(
        fmt::format("checkpoint \"{}\": this is the name of the folder's list of checkpoints; use "
                    "another",
                    path.native()));
  remove_stale_temporaries(path.parent_path(), prefix.filename().native());  // Those of other steps, too.
  remove_data_without_index(prefix);
  return path.native();
}

// Throws only before the folder's state names the path.
void CheckpointKeeper::keep(const std::string& path) {
  std::vector<std::string> kept = kept_, to_remove = to_remove_;
  std::erase(kept, path);
  std::erase(to_remove, path);
  kept.push_back(path);
  while (options_.max_to_keep > 0 && kept.size() > options_.max_to_keep) {
    to_remove.push_back(kept.front());
    kept.erase(kept.begin());
  }
  const fs::path directory = fs::path(path).parent_path();
  CheckpointState state;
  for (const auto* paths : {&to_remove, &kept})
    for (const std::string& one : *paths) state.all.push_back(relative_name(directory, one));
  state.latest = state.all.back();
  write_checkpoint_state(directory, state);
  kept_.swap(kept);
  to_remove_.swap(to_remove);
  if (to_remove_.empty()) return;
  // Listed until they are removed: if the process is killed here, the next keeper finds them.
  try {
    state.all.erase(state.all.begin(), state.all.begin() + static_cast<std::ptrdiff_t>(to_remove_.size()));
    for (; !to_remove_.empty(); to_remove_.pop_back()) remove_bundle(to_remove_.back());
    write_checkpoint_state(directory, state);
  } catch (const std::bad_alloc&) {  // The next save continues with it.
  } catch (const Error& error) {
    log_message(LogLevel::warning, error.what());
  }
}

void CheckpointKeeper::recover(const fs::path& directory) {
  CheckpointState state;
  try {
    state = read_checkpoint_state(directory);
  } catch (const NotFound&) {
    return;
  }
  if (state.all.empty() && !state.latest.empty()) state.all.push_back(state.latest);
  kept_.clear();
  for (const std::string& name : state.all)
    if (const fs::path path = directory / name; fs::exists(bundle_index_path(path))) kept_.push_back(path.native());
}

std::vector<std::string> check_checkpoint_fits(const BundleReader& reader, std::span<const CheckpointSpec> wanted,
                                               const CheckpointFitOptions& options) {
  std::vector<std::string> missing, differ, extra, asked;
  for (const CheckpointSpec& spec : wanted) {
    asked.push_back(spec.name);
    if (!reader.contains(spec.name)) {
      missing.push_back(fmt::format("\"{}\"", spec.name));
      continue;
    }
    const BundleEntry& entry = reader.entry(spec.name);
    if (entry.dtype != spec.dtype || entry.shape != spec.shape)
      differ.push_back(fmt::format("\"{}\" ({} {} in the checkpoint, {} {} wanted)", spec.name, entry.dtype_name,
                                   entry.shape.to_string(), dtype_name(spec.dtype), spec.shape.to_string()));
  }
  std::sort(asked.begin(), asked.end());
  for (const BundleEntry& entry : reader.entries())
    if (!is_bookkeeping(entry) && !std::binary_search(asked.begin(), asked.end(), entry.key))
      extra.push_back(fmt::format("\"{}\"", entry.key));
  if (missing.empty() && differ.empty() && (extra.empty() || !options.exact)) return extra;
  std::string text = fmt::format("checkpoint \"{}\": does not fit; nothing was restored", reader.prefix());
  append_names(text, "missing", missing);
  append_names(text, "of another dtype or shape", differ);
  append_names(text, "in the checkpoint but not requested", extra);
  if (missing.empty()) throw InvalidArgument(text);
  throw NotFound(text);
}

namespace {

void read_target(const BundleReader& reader, const RestoreTarget& target) {
  if (!target.device || target.device->is_host()) return reader.read_into(target.name, target.destination);
  reader.read_into(target.name, HostWrite(*target.device, target.destination));
}

}  // namespace

void restore_checkpoint(const BundleReader& reader, std::span<const RestoreTarget> targets) {
  std::vector<CheckpointSpec> wanted;
  for (const RestoreTarget& target : targets)
    wanted.push_back({target.name, target.destination.dtype(), target.destination.shape()});
  check_checkpoint_fits(reader, wanted);
  for (const RestoreTarget& target : targets)
    target.has_value ? reader.verify(target.name) : read_target(reader, target);
  for (const RestoreTarget& target : targets)
    if (target.has_value) read_target(reader, target);
}

void restore_checkpoint(const fs::path& prefix, std::span<const RestoreTarget> targets) {
  restore_checkpoint(BundleReader(prefix), targets);
}

}  // namespace plimsoll
