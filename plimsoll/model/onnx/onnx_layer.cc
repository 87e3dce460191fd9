#include "plimsoll/model/onnx/onnx_layer.h"

#include <fmt/format.h>

#include <map>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/graph/graph_state.h"
#include "plimsoll/memory/budget_node.h"
#include "plimsoll/model/data/plural.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/model/onnx/onnx_plan.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/storage.h"
#include "plimsoll/tensor/tidy.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {
namespace {

Tensor zeros_later(const Shape& shape, DType dtype) {
  const Origin origin{.op = "variable", .category = Category::kParameters};
  return make_tensor_on(
      Storage::take_lazily(current_device(), shape.size() * size_of(dtype), block_label(origin, shape, dtype), {}), 0,
      shape, dtype, origin);
}

// On pages of a file, which are charged to nobody.
bool is_mapped(const Tensor& tensor) {
  const Storage* const storage = tensor.record()->storage.load(std::memory_order_acquire);
  return storage && storage->is_wrapped();
}

Shape held_shape(const std::vector<std::int64_t>& dims, const AxisOrder& order) {
  if (order.empty()) return Shape(std::span<const std::int64_t>(dims));
  std::vector<std::int64_t> sizes;
  for (const std::int64_t axis : order) sizes.push_back(dims[static_cast<std::size_t>(axis)]);
  return Shape(sizes);
}

}  // namespace

OnnxLayer::OnnxLayer(std::shared_ptr<const OnnxGraph> graph, bool with_values)
    : graph_(std::move(graph)), with_values_(with_values), plans_(std::make_shared<OnnxPlans>()) {
  make_weights();
}

void OnnxLayer::make_weights() {
  const TraceWith nobody(nullptr);
  const MakingTensors weights(Category::kParameters);
  for (const OnnxWeight& weight : graph_->weights()) {
    variables_.emplace_back();
    constants_.emplace_back();
    if (!with_values_ && !weight.is_constant && weight.proto && onnx::dtype_of(weight.proto->type)) {
      const Shape shape = held_shape(weight.proto->dims, weight.order);
      const Tensor later = zeros_later(shape, *onnx::dtype_of(weight.proto->type));
      variables_.back().emplace(later, VariableOptions{.name = weight.name, .trainable = weight.trainable});
    } else {
      Tensor value =
          weight.sparse ? graph_->file().tensor(*weight.sparse) : graph_->file().tensor(*weight.proto, weight.order);
      if (weight.proto) graph_->file().forget(*weight.proto);
      if (weight.is_constant)
        constants_.back() = std::move(value);
      else
        variables_.back().emplace(value, VariableOptions{.name = weight.name, .trainable = weight.trainable});
    }
    if (variables_.back()) adopt_weight(*variables_.back(), weight.trainable);
  }
}

bool OnnxLayer::will_be_mapped(std::size_t i) const {
  const OnnxWeight& weight = graph_->weights()[i];
  return !with_values_ && weight.proto && weight.proto->is_external && weight.order.empty();
}

std::size_t OnnxLayer::held_bytes() const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    const Tensor value = variables_[i] ? variables_[i]->value() : constants_[i];
    if (!value.is_empty_handle() && !is_mapped(value) && !will_be_mapped(i)) bytes += whole_blocks(value.nbytes());
  }
  return bytes;
}

void OnnxLayer::leave_file() const {
  for (const Weight& weight : own_weights())
    if (const Tensor value = weight.variable.value(); is_mapped(value)) weight.variable.assign(value.clone());
}

Tensor OnnxLayer::weight_value(std::size_t i) const {
  if (!variables_[i]) return constants_[i];
  const AxisOrder& order = graph_->weights()[i].order;
  const Tensor value = variables_[i]->value();
  return order.empty() ? value : transpose(value, inverse(order));
}

std::vector<Tensor> OnnxLayer::run(const std::vector<Tensor>& inputs, const std::vector<Tensor>& known,
                                   bool training) const {
  std::vector<OnnxValue> given, weights;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_known = i < known.size() && !known[i].is_empty_handle();
    given.emplace_back(is_known ? known[i] : inputs[i]);
    if (is_known || (graph_->is_known_input(i) && !is_symbolic(inputs[i]))) given.back().set_constant();
  }
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    weights.emplace_back(variables_[i] ? Tensor(*variables_[i]) : constants_[i], graph_->weights()[i].order);
    if (!variables_[i]) weights.back().set_constant();
  }
  std::vector<Tensor> outputs;
  for (const OnnxValue& value : graph_->run(given, weights, training)) {
    if (value.is_sequence())
      throw Unsupported(fmt::format("\"{}\": an output is a sequence, which is unsupported", graph_->file().name()));
    outputs.push_back(value.plain());
  }
  return outputs;
}

std::vector<Tensor> OnnxLayer::call_all(const std::vector<Tensor>& inputs, CallContext& context) {
  return run(inputs, {}, context.training());
}

// With all sizes known, by tracing; else what the file says, with the sizes that its names stand for.
Shapes OnnxLayer::output_shapes(const Shapes& inputs) const {
  if (inputs.size() != graph_->inputs().size())
    throw InvalidArgument(fmt::format("model \"{}\": takes {}, was given {}", graph_->file().name(),
                                      plural(graph_->inputs().size(), "input"), inputs.size()));
  bool known = true;
  std::map<std::string, std::int64_t> sizes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    known = known && inputs[i].is_known() && !graph_->is_known_input(i);
    const onnx::ValueInfo& info = graph_->inputs()[i];
    for (std::size_t axis = 0; axis < std::min(info.dims.size(), inputs[i].rank()); ++axis)
      if (!info.dims[axis].name.empty() && inputs[i][axis] != kUnknownSize)
        sizes[info.dims[axis].name] = inputs[i][axis];
  }
  if (known) {
    try {
      const std::shared_ptr<GraphState> graph = GraphState::make(GraphState::Role::kTrace);
      const TraceWith tracing(graph.get());
      const MakingTensors outside(Category::kParameters);
      std::vector<Tensor> symbolic;
      for (std::size_t i = 0; i < inputs.size(); ++i)
        symbolic.push_back(
            graph->add_placeholder({inputs[i], *onnx::dtype_of(graph_->inputs()[i].type)}, current_device(), "input"));
      Shapes shapes;
      for (const Tensor& output : run(symbolic, {}, false)) shapes.push_back(output.shape());
      return shapes;
    } catch (const FailedPrecondition&) {  // Elements decide: as the file says.
    }
  }
  Shapes shapes;
  for (const onnx::ValueInfo& info : graph_->outputs()) {
    std::vector<std::int64_t> dims;
    for (const onnx::Dim& dim : info.dims) {
      const auto named = sizes.find(dim.name);
      dims.push_back(dim.size != kUnknownSize ? dim.size : named != sizes.end() ? named->second : kUnknownSize);
    }
    shapes.emplace_back(dims);
  }
  return shapes;
}

}  // namespace plimsoll::internal
