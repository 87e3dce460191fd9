// If, Loop and Scan, and sequences of tensors.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "plimsoll/base/error.h"
#include "plimsoll/graph/control_flow.h"
#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kMostUnrolled = 65536;  // Steps of a loop that become nodes of a plan.

std::vector<Tensor> plain(const std::vector<OnnxValue>& values) {
  std::vector<Tensor> tensors;
  for (const OnnxValue& value : values) tensors.push_back(value.plain());
  return tensors;
}

void if_of(OnnxNode& node) {
  const onnx::GraphProto &then = node.graph("then_branch"), &otherwise = node.graph("else_branch");
  std::vector<OnnxValue> results;
  if (node.is_known(0)) {
    results = node.run(node.integer_in(0) != 0 ? then : otherwise, {});
  } else {
    const auto branch = [&](const onnx::GraphProto& graph) { return plain(node.run(graph, {})); };
    const std::vector<Tensor> tensors = cond(
        node.in(0).reshape(Shape::scalar()), [&] { return branch(then); }, [&] { return branch(otherwise); });
    for (const Tensor& tensor : tensors) results.emplace_back(tensor);
  }
  for (std::size_t i = 0; i < results.size(); ++i) node.give(i, results[i]);
}

OnnxValue known(Tensor tensor) {
  OnnxValue value(std::move(tensor));
  value.set_constant();
  return value;
}

// Step by step: each step is traced, or runs, by itself. A condition that is computed must have a value.
void loop(OnnxNode& node) {
  const onnx::GraphProto& body = node.graph("body");
  const std::int64_t most = node.has(0) ? node.integer_in(0) : std::numeric_limits<std::int64_t>::max();
  bool goes_on = !node.has(1) || node.integer_in(1) != 0;
  std::vector<OnnxValue> carried;
  for (std::size_t i = 2; i < node.num_inputs(); ++i) carried.push_back(node.value(i));
  if (body.outputs.size() < carried.size() + 1) node.invalid("the body gives less than it carries");
  std::vector<std::vector<Tensor>> scanned(body.outputs.size() - 1 - carried.size());
  for (std::int64_t step = 0; step < most && goes_on; ++step) {
    if (step == kMostUnrolled) node.unsupported(fmt::format("more than {} steps", kMostUnrolled));
    std::vector<OnnxValue> inputs;
    {
      const TraceWith nobody(nullptr);
      inputs = {known(constant(step)), known(constant(true))};
    }
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    const std::vector<OnnxValue> results = node.run(body, std::move(inputs));
    const Tensor& condition = results[0].plain();
    if (is_symbolic(condition))
      throw FailedPrecondition(fmt::format("onnx: {}: whether it goes on depends on elements", node.describe()));
    goes_on = static_cast<bool>(condition.reshape(Shape::scalar()));
    for (std::size_t i = 0; i < carried.size(); ++i) carried[i] = results[i + 1];
    for (std::size_t i = 0; i < scanned.size(); ++i) scanned[i].push_back(results[i + 1 + carried.size()].plain());
  }
  for (std::size_t i = 0; i < carried.size(); ++i) node.give(i, carried[i]);
  for (std::size_t i = 0; i < scanned.size(); ++i) {
    if (!scanned[i].empty()) {
      node.give(carried.size() + i, stack(scanned[i]));
      continue;
    }
    const onnx::ValueInfo& info = body.outputs[i + 1 + carried.size()];
    std::vector<std::int64_t> sizes = {0};
    for (const onnx::Dim& dim : info.dims) sizes.push_back(std::max<std::int64_t>(0, dim.size));
    node.give(carried.size() + i, zeros(Shape(sizes), onnx::dtype_of(info.type).value_or(f32)));
  }
}

// One element of an axis, which then is gone.
Tensor element(const Tensor& x, std::size_t axis, std::int64_t at) {
  std::vector<std::int64_t> begin(x.rank(), 0), count(x.rank(), -1);
  begin[axis] = at, count[axis] = 1;
  return slice(x, begin, count).squeeze({static_cast<std::int64_t>(axis)});
}

struct ScanEnds {
  std::vector<std::int64_t> input_axes, input_backwards, output_axes, output_backwards;
};

// Over all elements of the scanned axes. `carried` becomes the final state; gives the scanned results.
std::vector<Tensor> scan_once(OnnxNode& node, const std::vector<Tensor>& inputs, std::vector<OnnxValue>& carried,
                              const ScanEnds& ends) {
  const onnx::GraphProto& body = node.graph("body");
  const auto at_or_0 = [](const std::vector<std::int64_t>& list, std::size_t i) {
    return i < list.size() ? list[i] : 0;
  };
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    axes.push_back(resolve_axis(at_or_0(ends.input_axes, i), inputs[i].rank(), "Scan"));
  const std::int64_t steps = inputs.empty() ? 0 : inputs[0].shape()[axes[0]];
  if (steps > kMostUnrolled) node.unsupported(fmt::format("more than {} steps", kMostUnrolled));
  if (body.outputs.size() < carried.size() || steps == 0) node.invalid("there is nothing to scan");
  std::vector<std::vector<Tensor>> scanned(body.outputs.size() - carried.size());
  for (std::int64_t step = 0; step < steps; ++step) {
    std::vector<OnnxValue> given = carried;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      given.emplace_back(element(inputs[i], axes[i], at_or_0(ends.input_backwards, i) ? steps - 1 - step : step));
    const std::vector<OnnxValue> results = node.run(body, std::move(given));
    for (std::size_t i = 0; i < carried.size(); ++i) carried[i] = results[i];
    for (std::size_t i = 0; i < scanned.size(); ++i) scanned[i].push_back(results[carried.size() + i].plain());
  }
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < scanned.size(); ++i) {
    if (at_or_0(ends.output_backwards, i)) std::reverse(scanned[i].begin(), scanned[i].end());
    results.push_back(stack(scanned[i], at_or_0(ends.output_axes, i)));
  }
  return results;
}

void scan(OnnxNode& node) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(0, node.integer("num_scan_inputs", 1)));
  if (count == 0 || count > node.num_inputs()) node.invalid("num_scan_inputs does not fit its operands");
  std::vector<OnnxValue> carried;
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < node.num_inputs(); ++i)
    if (i < node.num_inputs() - count)
      carried.push_back(node.value(i));
    else
      inputs.push_back(node.in(i));
  const std::vector<Tensor> scanned =
      scan_once(node, inputs, carried,
                {node.integers("scan_input_axes"), node.integers("scan_input_directions"),
                 node.integers("scan_output_axes"), node.integers("scan_output_directions")});
  for (std::size_t i = 0; i < carried.size(); ++i) node.give(i, carried[i]);
  for (std::size_t i = 0; i < scanned.size(); ++i) node.give(carried.size() + i, scanned[i]);
}

// Version 8 has a batch in front of everything, and lengths of its examples.
void scan_batches(OnnxNode& node) {
  if (node.has(0)) node.unsupported("sequence_lens");
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(0, node.integer("num_scan_inputs", 1)));
  if (count == 0 || count + 1 > node.num_inputs()) node.invalid("num_scan_inputs does not fit its operands");
  const std::size_t first = node.num_inputs() - count;
  const std::int64_t batch = node.shape(first)[0];
  std::vector<std::vector<Tensor>> results;
  for (std::int64_t example = 0; example < batch; ++example) {
    std::vector<OnnxValue> carried;
    std::vector<Tensor> inputs;
    for (std::size_t i = 1; i < first; ++i) carried.emplace_back(element(node.in(i), 0, example));
    for (std::size_t i = first; i < node.num_inputs(); ++i) inputs.push_back(element(node.in(i), 0, example));
    const std::vector<Tensor> scanned = scan_once(node, inputs, carried, {{}, node.integers("directions"), {}, {}});
    std::vector<Tensor> all = plain(carried);
    all.insert(all.end(), scanned.begin(), scanned.end());
    results.resize(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) results[i].push_back(all[i]);
  }
  for (std::size_t i = 0; i < results.size(); ++i) node.give(i, stack(results[i]));
}

void sequence_construct(OnnxNode& node) {
  std::vector<OnnxValue> parts;
  for (std::size_t i = 0; i < node.num_inputs(); ++i) parts.push_back(node.value(i));
  node.give(OnnxValue::sequence_of(std::move(parts)));
}

void sequence_empty(OnnxNode& node) { node.give(OnnxValue::sequence_of({})); }

const std::vector<OnnxValue>& parts_of(const OnnxNode& node, std::size_t input) {
  if (!node.value(input).is_sequence()) node.invalid(fmt::format("operand {} is not a sequence", input));
  return node.value(input).sequence();
}

std::size_t position(const OnnxNode& node, std::int64_t at, std::size_t size, std::size_t extra) {
  const std::int64_t from_front = at < 0 ? at + static_cast<std::int64_t>(size) : at;
  if (from_front < 0 || from_front >= static_cast<std::int64_t>(size + extra))
    node.invalid(fmt::format("position {} of a sequence of {}", at, size));
  return static_cast<std::size_t>(from_front);
}

void sequence_at(OnnxNode& node) {
  const std::vector<OnnxValue>& parts = parts_of(node, 0);
  node.give(parts[position(node, node.integer_in(1), parts.size(), 0)]);
}

void sequence_insert(OnnxNode& node) {
  std::vector<OnnxValue> parts = parts_of(node, 0);
  const std::size_t at = node.has(2) ? position(node, node.integer_in(2), parts.size(), 1) : parts.size();
  parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(at), node.value(1));
  node.give(OnnxValue::sequence_of(std::move(parts)));
}

void sequence_erase(OnnxNode& node) {
  std::vector<OnnxValue> parts = parts_of(node, 0);
  const std::int64_t last = static_cast<std::int64_t>(parts.size()) - 1;
  const std::size_t at = position(node, node.has(1) ? node.integer_in(1) : last, parts.size(), 0);
  parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at));
  node.give(OnnxValue::sequence_of(std::move(parts)));
}

// A graph for each element of the sequence; operands that are no sequences are the same for all.
void sequence_map(OnnxNode& node) {
  const onnx::GraphProto& body = node.graph("body");
  const std::size_t count = parts_of(node, 0).size();
  std::vector<std::vector<OnnxValue>> results(node.num_outputs());
  for (std::size_t at = 0; at < count; ++at) {
    std::vector<OnnxValue> inputs;
    for (std::size_t i = 0; i < node.num_inputs(); ++i) {
      const OnnxValue& value = node.value(i);
      if (value.is_sequence() && value.sequence().size() != count) node.invalid("sequences of different lengths");
      inputs.push_back(value.is_sequence() ? value.sequence()[at] : value);
    }
    std::vector<OnnxValue> outputs = node.run(body, std::move(inputs));
    if (outputs.size() < results.size()) node.invalid("the body gives less than the node");
    for (std::size_t i = 0; i < results.size(); ++i) results[i].push_back(std::move(outputs[i]));
  }
  for (std::size_t i = 0; i < results.size(); ++i) node.give(i, OnnxValue::sequence_of(std::move(results[i])));
}

void sequence_length(OnnxNode& node) { node.give(constant(static_cast<std::int64_t>(parts_of(node, 0).size()))); }

void split_to_sequence(OnnxNode& node) {
  const Tensor& x = node.in(0);
  const std::size_t axis = node.axis("axis", 0, x.rank());
  const std::int64_t length = x.shape()[axis];
  std::vector<std::int64_t> sizes;
  const bool single = !node.has(1);
  if (single) {
    sizes.assign(static_cast<std::size_t>(length), 1);
  } else if (node.rank(1) == 0) {
    const std::int64_t size = node.integer_in(1);
    if (size < 1) node.invalid(fmt::format("parts of {}", size));
    for (std::int64_t at = 0; at < length; at += size) sizes.push_back(std::min(size, length - at));
  } else {
    sizes = node.integers(std::size_t{1});
  }
  const bool squeezed = single && node.integer("keepdims", 1) == 0;
  std::vector<OnnxValue> parts;
  for (const Tensor& part : split(x, sizes, static_cast<std::int64_t>(axis)))
    parts.emplace_back(squeezed ? part.squeeze({static_cast<std::int64_t>(axis)}) : part);
  node.give(OnnxValue::sequence_of(std::move(parts)));
}

void concat_from_sequence(OnnxNode& node) {
  const std::vector<Tensor> parts = plain(parts_of(node, 0));
  if (parts.empty()) node.invalid("a sequence of nothing");
  const std::int64_t axis = node.integer("axis", 0);
  node.give(node.integer("new_axis", 0) != 0 ? stack(parts, axis) : concat(parts, axis));
}

constexpr OnnxOperator kControlRows[] = {
    {"ConcatFromSequence", 11, kNewest, concat_from_sequence},
    {"If", 1, kNewest, if_of},
    {"Loop", 1, kNewest, loop, kOperand0 | kOperand1},
    {"Scan", 8, 8, scan_batches},
    {"Scan", 9, kNewest, scan},
    {"SequenceAt", 11, kNewest, sequence_at, kOperand1},
    {"SequenceConstruct", 11, kNewest, sequence_construct},
    {"SequenceEmpty", 11, kNewest, sequence_empty},
    {"SequenceErase", 11, kNewest, sequence_erase, kOperand1},
    {"SequenceInsert", 11, kNewest, sequence_insert, kOperand2},
    {"SequenceLength", 11, kNewest, sequence_length, 0, kGivesShape},
    {"SequenceMap", 17, kNewest, sequence_map},
    {"SplitToSequence", 11, kNewest, split_to_sequence, kOperand1},
};

}  // namespace

OnnxOperators onnx_control_operators() { return kControlRows; }

}  // namespace plimsoll::internal
