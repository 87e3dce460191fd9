#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "plimsoll/base/error.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/io/event_writer.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/model.h"
#include "plimsoll/model/training/callbacks.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

constexpr std::string_view kValidation = "val_";

// Layers as nodes, connected as in the model, on the devices where they run.
GraphDefinition graph_of(const Network& network) {
  GraphDefinition graph;
  std::map<std::size_t, std::string> names, devices;  // Of a call, by its first slot.
  std::map<const LayerBase*, int> calls;
  for (const Network::Call& call : network.calls()) {
    const int number = calls[call.layer.get()]++;
    GraphNode node{.name = fmt::format("{}/{}", network.name(), call.layer->name()), .op = call.layer->class_name()};
    if (number > 0) node.name += fmt::format("_call_{}", number);
    node.device = call.layer->device();
    if (node.device.empty() && !call.inputs.empty())
      node.device = devices.at(network.call_of(call.inputs[0]).first_output);
    devices[call.first_output] = node.device;
    for (const std::size_t slot : call.inputs) {
      const std::size_t first = network.call_of(slot).first_output;
      node.inputs.push_back(slot == first ? names.at(first) : fmt::format("{}:{}", names.at(first), slot - first));
    }
    node.output_shapes = call.shapes;
    node.output_dtypes.assign(call.shapes.size(), call.inputs.empty() ? call.layer->input_dtype() : f32);
    names[call.first_output] = node.name;
    graph.nodes.push_back(std::move(node));
  }
  return graph;
}

class TensorBoardCallback final : public CallbackBase {
 public:
  bool is_for_first_rank() const override { return true; }
  TensorBoardCallback(std::string directory, const TensorBoardOptions& options)
      : directory_(std::move(directory)), options_(options) {}

  void on_train_begin(Model&) override {
    graph_written_ = !options_.write_graph;
    batches_ = 0;
  }
  void on_batch_end(Model& model, std::size_t, const Logs& logs) override {
    if (!std::exchange(graph_written_, true)) train().add_graph(graph_of(model.network()));
    if (options_.update_freq == 0 || ++batches_ % options_.update_freq != 0) return;
    for (const auto& [name, value] : logs) train().add_scalar("batch_" + name, value, batches_);
    if (options_.memory) add_memory(batches_, "batch_");
  }
  void on_epoch_end(Model& model, int epoch, const Logs& logs) override {
    for (const auto& [name, value] : logs) {
      if (name.starts_with(kValidation))
        validation().add_scalar("epoch_" + name.substr(kValidation.size()), value, epoch);
      else
        train().add_scalar("epoch_" + name, value, epoch);
    }
    train().add_scalar("epoch_learning_rate", static_cast<float>(model.optimizer().learning_rate()), epoch);
    if (options_.memory) add_memory(epoch, "epoch_");
    if (options_.histogram_freq > 0 && epoch % options_.histogram_freq == 0) {
      const Untracked outside;
      const TidyScope scope;
      for (const Variable& weight : model.weights()) train().add_histogram(weight.name(), weight.value(), epoch);
    }
  }
  void on_train_end(Model&) override {
    if (train_) train_->close();
    if (validation_) validation_->close();
    train_.reset();
    validation_.reset();
  }

 private:
  // Made when there is something to write: a refused fit leaves no files.
  EventWriter& train() {
    if (!train_) train_.emplace(directory_ / "train");
    return *train_;
  }
  EventWriter& validation() {
    if (!validation_) validation_.emplace(directory_ / "validation");
    return *validation_;
  }
  // The current device under the plain name, others that have been used with theirs.
  void add_memory(std::int64_t step, const std::string& prefix) {
    const Device& current = Runtime::instance().device("");
    for (const auto& device : Runtime::instance().devices()) {
      const MemoryStats stats = device->arena().stats();
      const bool is_current = device.get() == &current;
      if (!is_current && stats.peak_bytes_in_use == 0) continue;
      const std::string suffix = is_current ? "" : "/" + device->name();
      train().add_scalar(prefix + "memory_bytes_in_use" + suffix, static_cast<float>(stats.bytes_in_use), step);
      train().add_scalar(prefix + "memory_peak_bytes" + suffix, static_cast<float>(stats.peak_bytes_in_use), step);
    }
  }

  const std::filesystem::path directory_;
  const TensorBoardOptions options_;
  std::optional<EventWriter> train_, validation_;
  bool graph_written_ = false;
  std::int64_t batches_ = 0;
};

}  // namespace

Callback callbacks::TensorBoard(const std::string& log_dir, const TensorBoardOptions& options) {
  if (log_dir.empty() || options.histogram_freq < 0 || options.update_freq < 0)
    throw InvalidArgument(
        fmt::format("TensorBoard: folder \"{}\", histogram_freq {}, update_freq {}; give a folder, "
                    "and 0 or more",
                    log_dir, options.histogram_freq, options.update_freq));
  return make_callback<TensorBoardCallback>(log_dir, options);
}

}  // namespace plimsoll
