#include <fmt/args.h>
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/io/bundle.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/keras/layers_model.h"
#include "plimsoll/model/model.h"
#include "plimsoll/model/training/callbacks.h"
#include "plimsoll/model/training/monitor.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

std::string path_of(const std::string& pattern, int epoch, std::size_t batch, const Logs& logs) {
  fmt::dynamic_format_arg_store<fmt::format_context> values;
  std::string names = "epoch, batch";
  values.push_back(fmt::arg("epoch", epoch + 1));
  values.push_back(fmt::arg("batch", batch));
  for (const auto& [name, value] : logs) {
    values.push_back(fmt::arg(name.c_str(), value));
    names += ", " + name;
  }
  try {
    return fmt::vformat(pattern, values);
  } catch (const fmt::format_error& error) {
    throw InvalidArgument(
        fmt::format("ModelCheckpoint: \"{}\" cannot be filled in: {}; there are: {}", pattern, error.what(), names));
  }
}

// Removes what a fit that was killed while saving left behind: temporaries, and data that no index names.
void remove_unfinished(const std::string& pattern) {
  const fs::path begin = pattern.substr(0, pattern.find('{'));  // The common start of all names.
  const std::string stem = begin.filename().string();
  if (stem.empty() || begin.parent_path().string().find('{') != std::string::npos) return;
  remove_stale_temporaries(begin.parent_path(), stem);
  for (const std::string& name : list_directory(begin.parent_path())) {
    const std::size_t end = name.rfind(".data-");
    std::error_code ignored;
    if (end == std::string::npos || !name.starts_with(stem) || name.find("-of-", end) == std::string::npos) continue;
    if (!fs::exists(bundle_index_path(begin.parent_path() / name.substr(0, end)), ignored))
      fs::remove(begin.parent_path() / name, ignored);
  }
}

class CheckpointCallback final : public CallbackBase {
 public:
  CheckpointCallback(std::string path, const ModelCheckpointOptions& options)
      : path_(std::move(path)), options_(options), monitor_(options.monitor, 0) {}

  // Finds a pattern that cannot be filled in before an epoch is spent.
  void check_names(const std::vector<std::string>& names) override {
    Logs logs;
    for (const std::string& name : names)
      if (options_.save_freq == 0 || !name.starts_with("val_")) logs.set(name, 0.f);
    path_of(path_, 0, 1, logs);
  }
  void on_train_begin(Model& model) override {
    monitor_.begin();
    epoch_ = 0;
    batches_ = 0;
    const distributed::Job* const job = model.network().training.job;
    if (options_.save_weights_only && !(job && job->rank() != 0)) remove_unfinished(path_);
  }
  void on_epoch_begin(Model&, int epoch) override { epoch_ = epoch; }
  void on_batch_end(Model& model, std::size_t batch, const Logs& logs) override {
    ++batches_;
    if (options_.save_freq > 0 && batches_ % static_cast<std::size_t>(options_.save_freq) == 0)
      save(model, batch + 1, logs);
  }
  void on_epoch_end(Model& model, int, const Logs& logs) override {
    if (options_.save_freq == 0) save(model, batches_, logs);
  }

 private:
  void save(const Model& model, std::size_t batch, const Logs& logs) {
    if (options_.save_best_only && !monitor_.improves(logs).value_or(false)) return;
    const std::string path = path_of(path_, epoch_, batch, logs);
    if (options_.save_weights_only)
      model.save_weights(path);
    else
      save_layers_model(model, path, {.include_optimizer = true});
    const distributed::Job* const job = model.network().training.job;
    if (options_.verbose == 0 || (job && job->rank() != 0)) return;
    std::printf("Epoch %d: saved the model to %s\n", epoch_ + 1, path.c_str());
    std::fflush(stdout);
  }

  const std::string path_;
  const ModelCheckpointOptions options_;
  Monitor monitor_;
  int epoch_ = 0;
  std::size_t batches_ = 0;
};

}  // namespace

Callback callbacks::ModelCheckpoint(const std::string& path, const ModelCheckpointOptions& options) {
  if (options.save_freq < 0)
    throw InvalidArgument(fmt::format("ModelCheckpoint: save_freq is {}; give 0 or more", options.save_freq));
  if (path.empty() || (options.save_weights_only && std::filesystem::is_directory(path)))
    throw InvalidArgument(
        fmt::format("ModelCheckpoint: \"{}\" is not a file name; give one, such as \"cp-{{epoch:04d}}.ckpt\"", path));
  return make_callback<CheckpointCallback>(path, options);
}

}  // namespace plimsoll
