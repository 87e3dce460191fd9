// run_metadata(): the sizes of all values of a run, derived from those of the feeds.
#include <fmt/format.h>

#include <chrono>
#include <map>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/graph/file_writer.h"
#include "plimsoll/graph/graph_state.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::summary {
namespace {

class Sizes {
 public:
  explicit Sizes(const GraphState& graph)
      : graph_(graph),
        needed_(graph.nodes().size()),
        last_reader_(graph.nodes().size()),
        specs_(graph.nodes().size()) {}

  void feed(ValueId value, const TensorSpec& spec) { fed_[{value.node, value.output}] = spec; }

  void need(std::span<const ValueId> fetches) {
    for (const ValueId& fetch : fetches) need_value(fetch, kNoNode);
    for (auto i = static_cast<std::uint32_t>(graph_.nodes().size()); i-- > 0;) {
      if (!needed_[i]) continue;
      for (const ValueId& input : graph_.node(i).inputs) need_value(input, i);
      for (const std::uint32_t before : graph_.node(i).controls) needed_[before] = true;
    }
  }

  RunMetadata run() {
    std::map<std::string, DeviceRun> devices;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    std::int64_t micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
    for (std::uint32_t i = 0; i < graph_.nodes().size(); ++i) {
      infer(i);
      const Node& node = graph_.node(i);
      if (!needed_[i] || node.kind == NodeKind::kGroup) continue;
      const std::string name = node.device ? node.device->name() : "CPU:0";
      DeviceRun& device = devices[name];
      device.name = name;
      device.nodes.push_back(node_run(i, micros++));
    }
    RunMetadata metadata;
    for (auto& [name, device] : devices) metadata.devices.push_back(std::move(device));
    return metadata;
  }

 private:
  void need_value(ValueId value, std::uint32_t reader) {
    if (fed_.contains({value.node, value.output})) return;
    needed_[value.node] = true;
    last_reader_[value.node] = std::max(last_reader_[value.node], reader);
  }

  const TensorSpec& spec(ValueId value) const {
    if (const auto fed = fed_.find({value.node, value.output}); fed != fed_.end()) return fed->second;
    return specs_[value.node][value.output];
  }

  void infer(std::uint32_t index) {
    const Node& node = graph_.node(index);
    if (!needed_[index]) return;
    if (node.kind == NodeKind::kPlaceholder)
      throw InvalidArgument(
          fmt::format("run_metadata: placeholder \"{}\" of {} {} is needed and has no value; feed one", node.name,
                      dtype_name(node.outputs[0].spec.dtype), node.outputs[0].spec.shape.to_string()));
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      specs_[index].push_back(node.kind == NodeKind::kGradients ? spec(node.inputs[i + 1]) : node.outputs[i].spec);
    if (node.kind != NodeKind::kOp) return;
    SpecList out;
    node.op->infer(Specs(inputs_of(node)), out);
    for (std::size_t i = 0; i < out.size(); ++i) specs_[index][i] = out[i];
  }

  const std::vector<SpecRef>& inputs_of(const Node& node) {
    refs_.clear();
    for (const ValueId& input : node.inputs) refs_.push_back({&spec(input).shape, spec(input).dtype});
    return refs_;
  }

  NodeRun node_run(std::uint32_t index, std::int64_t micros) {
    const Node& node = graph_.node(index);
    NodeRun run;
    run.name = node.name;
    run.start_micros = micros;
    for (const TensorSpec& output : specs_[index]) run.outputs.emplace_back(output.dtype, output.shape);
    // Views, variables that are read and changed in place, and constants allocate nothing.
    const bool takes = (node.kind == NodeKind::kOp && !node.op->facts().is_view) || node.kind == NodeKind::kGradients;
    if (!takes) return run;
    SpecList out;
    for (const TensorSpec& output : specs_[index]) {
      run.bytes += output.bytes();
      out.add(output.shape, output.dtype);
    }
    run.peak_bytes = run.bytes + (node.op ? node.op->workspace_bytes(Specs(inputs_of(node)), out) : 0);
    if (last_reader_[index] > index) run.live_bytes = run.bytes;
    return run;
  }

  const GraphState& graph_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, TensorSpec> fed_;
  std::vector<bool> needed_;
  std::vector<std::uint32_t> last_reader_;  // kNoNode: it is fetched.
  std::vector<std::vector<TensorSpec>> specs_;
  std::vector<SpecRef> refs_;
};

ValueId value_of(const Tensor& tensor, const GraphState& graph, const char* what) {
  if (tensor.is_empty_handle() || tensor.is_disposed()) refuse_disposed(tensor, "run_metadata", what);
  if (!is_symbolic(tensor) || tracer_of(tensor).get() != &graph)
    throw InvalidArgument(fmt::format("run_metadata: a {} of shape {} is not a node of the graph of the first fetch",
                                      what, tensor.shape().to_string()));
  return {symbolic_value(tensor).node, symbolic_value(tensor).output};
}

void check_feed(const Tensor& symbolic, const Tensor& value) {
  bool fits = value.dtype() == symbolic.dtype() && value.shape().rank() == symbolic.shape().rank();
  for (std::size_t axis = 0; fits && axis < value.shape().rank(); ++axis)
    fits = symbolic.shape()[axis] == kUnknownSize || symbolic.shape()[axis] == value.shape()[axis];
  if (!fits)
    throw InvalidArgument(fmt::format("run_metadata: \"{}\" is {} {}, the value fed to it {} {}", symbolic.name(),
                                      dtype_name(symbolic.dtype()), symbolic.shape().to_string(),
                                      dtype_name(value.dtype()), value.shape().to_string()));
}

}  // namespace

RunMetadata run_metadata(const std::vector<Tensor>& fetches, const Feeds& feeds) {
  if (fetches.empty()) return {};
  if (fetches[0].is_empty_handle() || fetches[0].is_disposed()) refuse_disposed(fetches[0], "run_metadata", "fetch");
  if (!is_symbolic(fetches[0])) throw InvalidArgument("run_metadata: a fetch is not symbolic; fetch nodes of a graph");
  const auto graph = std::static_pointer_cast<GraphState>(tracer_of(fetches[0]));
  const auto locked = graph->lock();
  Sizes sizes(*graph);
  for (const auto& [symbolic, value] : feeds.items()) {
    const ValueId fed = value_of(symbolic, *graph, "feed");
    check_feed(symbolic, value);
    sizes.feed(fed, {value.shape(), value.dtype()});
  }
  std::vector<ValueId> values;
  for (const Tensor& fetch : fetches) values.push_back(value_of(fetch, *graph, "fetch"));
  sizes.need(values);
  return sizes.run();
}

}  // namespace plimsoll::summary
