#include "plimsoll/model/training/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "plimsoll/base/error.h"
#include "plimsoll/model/data/plural.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/internal/require_tensors.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {
namespace {

TensorSpec spec_of(const Tensor& tensor) { return {tensor.shape(), tensor.dtype()}; }

Shape with_batch(const Shape& shape, std::size_t batch_size, const std::string& name) {
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  const auto batch = static_cast<std::int64_t>(batch_size);
  if (sizes.empty()) sizes.push_back(kUnknownSize);
  if (sizes[0] != kUnknownSize && sizes[0] != batch)
    throw InvalidArgument(fmt::format("forecast: model \"{}\" takes batches of {}, not of {}", name, sizes[0], batch));
  sizes[0] = batch;
  Shape result(sizes);
  if (!result.is_known())
    throw FailedPrecondition(
        fmt::format("forecast: model \"{}\" takes inputs of shape {}; give a batch, so that all sizes are known", name,
                    shape.to_string()));
  return result;
}

// Says which of several inputs; an input without its first axis is most likely a single example.
[[noreturn]] void refuse_shape(const Network& network, std::size_t i, const Shape& given, const char* where) {
  const Network::Call& input = network.call_of(network.input_slots()[i]);
  const Shape& wanted = input.shapes[0];
  const std::string which =
      network.num_inputs() == 1 ? "inputs" : fmt::format("input {} (\"{}\")", i, input.layer->name());
  throw InvalidArgument(fmt::format("{}: model \"{}\" takes {} of shape {}, was given {}{}", where, network.name(),
                                    which, wanted.to_string(), given.to_string(),
                                    given.rank() + 1 == wanted.rank()
                                        ? "; the first axis counts examples: batch the dataset, or add that axis"
                                        : ""));
}

void check_targets(const Network& network, const Example& batch, const char* where) {
  if (!network.training.is_compiled())
    throw FailedPrecondition(
        fmt::format("{}: model \"{}\" is not compiled; call compile first", where, network.name()));
  const std::size_t outputs = network.output_slots().size();
  if (batch.targets.size() != outputs)
    throw InvalidArgument(fmt::format("{}: model \"{}\" has {}, the batch {}; give one for each", where, network.name(),
                                      plural(outputs, "output"), plural(batch.targets.size(), "target")));
  require_tensors(batch.targets, where, "y");
}

}  // namespace

BatchSpec BatchSpec::of(const Example& batch) {
  BatchSpec spec;
  for (const Tensor& input : batch.inputs) spec.inputs.push_back(spec_of(input));
  for (const Tensor& target : batch.targets) spec.targets.push_back(spec_of(target));
  if (!batch.weights.is_empty_handle()) spec.weights = spec_of(batch.weights);
  spec.device = &device_of(batch.x());
  visit_tensors(batch, [&](const Tensor& tensor) {
    if (!tensor.is_empty_handle()) spec.devices.push_back(&device_of(tensor));
  });
  return spec;
}

std::vector<std::size_t> BatchSpec::tensor_bytes() const {
  std::vector<std::size_t> bytes;
  for (const auto* specs : {&inputs, &targets})
    for (const TensorSpec& spec : *specs) bytes.push_back(spec.bytes());
  if (weights) bytes.push_back(weights->bytes());
  return bytes;
}

std::size_t BatchSpec::block_bytes() const { return whole_blocks_of(tensor_bytes()); }

BatchSpec assumed_batch(const Network& network, std::size_t batch_size) {
  if (batch_size == 0) throw InvalidArgument("forecast: batch_size is 0; give 1 or more");
  if (!network.is_connected())
    throw FailedPrecondition(fmt::format(
        "forecast: model \"{}\" does not know its input's shape; give its first layer an input_shape", network.name()));
  BatchSpec batch;
  batch.device = &current_device();
  Shapes inputs;
  for (const std::size_t slot : network.input_slots()) {
    const Network::Call& call = network.call_of(slot);
    inputs.push_back(with_batch(call.shapes[0], batch_size, network.name()));
    batch.inputs.push_back({inputs.back(), call.layer->input_dtype()});
  }
  const Shapes outputs = network.output_shapes(inputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool labels = network.training.losses.at(i).takes_labels();
    if (labels)
      batch.targets.push_back({Shape(std::vector<std::int64_t>(outputs[i].begin(), outputs[i].end() - 1)), i32});
    else
      batch.targets.push_back({outputs[i], f32});
  }
  return batch;
}

DType input_dtype_for(const Network& network, std::size_t input, DType given) {
  const bool connected = network.is_connected();
  if (input >= network.num_inputs() || (!connected && network.layers().empty())) return given;
  const std::size_t slot = connected ? network.input_slots()[input] : 0;
  const DType wanted = connected ? network.call_of(slot).layer->input_dtype() : network.layers()[0]->input_dtype();
  if (given == wanted) return given;
  if (!is_floating(wanted)) return is_floating(given) ? wanted : given;
  if (!is_integer(given)) return wanted;
  const auto reads_numbers = [&](const Network::Call& call) {
    return std::find(call.inputs.begin(), call.inputs.end(), slot) != call.inputs.end() &&
           std::string_view(call.layer->class_name()) != "Embedding";
  };
  return std::any_of(network.calls().begin(), network.calls().end(), reads_numbers) || !connected ? wanted : given;
}

void cast_inputs(const Network& network, std::vector<Tensor>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_empty_handle() || inputs[i].is_disposed()) continue;  // Refused by whoever reads it.
    const DType dtype = input_dtype_for(network, i, inputs[i].dtype());
    if (dtype == inputs[i].dtype()) continue;
    const Untracked outside;
    inputs[i] = inputs[i].cast(dtype);
  }
}

void require_inputs(Network& network, const std::vector<Tensor>& inputs, const char* where) {
  if (inputs.size() != network.num_inputs())
    throw InvalidArgument(fmt::format("{}: model \"{}\" takes {}, was given {}", where, network.name(),
                                      plural(network.num_inputs(), "input"), inputs.size()));
  require_tensors(inputs, where, "x");
  if (!network.is_connected()) network.connect(inputs[0].shape(), input_dtype_for(network, 0, inputs[0].dtype()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape& wanted = network.call_of(network.input_slots()[i]).shapes[0];
    const Shape& given = inputs[i].shape();
    bool fits = wanted.rank() == given.rank() && given.rank() > 0;
    for (std::size_t axis = 0; fits && axis < given.rank(); ++axis)
      fits = !network.has_input_shape() || wanted[axis] == kUnknownSize || wanted[axis] == given[axis];
    if (!fits) refuse_shape(network, i, given, where);
  }
}

void require_batch(Network& network, StepKind kind, const Example& batch, const char* where) {
  require_inputs(network, batch.inputs, where);
  if (kind != StepKind::kPredict) check_targets(network, batch, where);
}

}  // namespace plimsoll::internal
