#include "plimsoll/graph/program_builder.h"

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/ops/assign.h"

namespace plimsoll {
namespace {

std::size_t view_offset(const Op& op, const GraphState& graph, const Node& node) {
  std::vector<SpecRef> refs;
  for (const ValueId& input : node.inputs) {
    const TensorSpec& spec = graph.output(input).spec;
    refs.push_back({&spec.shape, spec.dtype});
  }
  return op.view_offset(Specs(refs));
}

bool is_view(const Node& node) { return node.op && node.outputs.size() == 1 && node.op->facts().is_view; }

}  // namespace

ProgramBuilder::ProgramBuilder(Program& program, Rewritten rewritten, const Passes& passes)
    : program_(program), rewritten_(std::move(rewritten)), graph_(*rewritten_.graph), passes_(passes) {}

void ProgramBuilder::build() {
  number_values();
  find_read_ends();
  for (std::uint32_t i = 0; i < graph_.nodes().size(); ++i) add_node(i);
  choose_order();
  fuse_layers();
  if (passes_.fuse_elementwise) fuse_chains();
  find_lifetimes();
  place_results();
  if (passes_.in_place) share_bytes();
  place_buffers();
  emit();
}

void ProgramBuilder::number_values() {
  first_.push_back(0);
  for (const Node& node : graph_.nodes())
    first_.push_back(first_.back() + static_cast<std::uint32_t>(node.outputs.size()));
  values_.resize(first_.back());
  variable_roots_.assign(graph_.variables().size(), UINT32_MAX);
  changes_.resize(graph_.variables().size());
  for (std::uint32_t i = 0; i < graph_.nodes().size(); ++i) {
    const Node& node = graph_.node(i);
    if (node.kind == NodeKind::kAssign) changes_[node.variable].push_back(i);
    for (const std::uint32_t variable : node.updates) changes_[variable].push_back(i);
  }
  program_.feed_base_.assign(rewritten_.feeds.size(), Program::kNoBase);
}

// For each output the last node that reads its bytes, through views too. Nodes come in an order they can run in.
void ProgramBuilder::find_read_ends() {
  read_end_.assign(values_.size(), 0);
  for (const ValueId& fetch : rewritten_.fetches)
    if (fetch.node != kNoNode) read_end_[place(fetch)] = kNoNode;
  for (std::uint32_t i = static_cast<std::uint32_t>(graph_.nodes().size()); i-- > 0;) {
    const Node& node = graph_.node(i);
    for (const ValueId& input : node.inputs) read_end_[place(input)] = std::max(read_end_[place(input)], i);
    if (is_view(node)) {
      std::uint32_t& end = read_end_[place(node.inputs[0])];
      end = std::max(end, read_end_[first_[i]]);
    }
  }
}

// Whether what a node reads of a variable is needed after a later node has changed it: then it has to be copied.
bool ProgramBuilder::read_outlives_change(std::uint32_t index) const {
  for (const std::uint32_t change : changes_[graph_.node(index).variable])
    if (change > index && read_end_[first_[index]] > change) return true;
  return false;
}

std::uint32_t ProgramBuilder::add_root(Place place, std::uint32_t number, std::uint32_t node, std::uint32_t output) {
  Root root;
  root.place = place;
  root.number = number;
  root.device = graph_.node(node).device;
  root.spec = graph_.node(node).outputs[output].spec;
  root.bytes = root.spec.bytes();
  root.category = graph_.node(node).category;
  root.node = node;
  root.op = graph_.node(node).op ? graph_.node(node).op->name() : "variable";
  roots_.push_back(root);
  return static_cast<std::uint32_t>(roots_.size() - 1);
}

std::uint32_t ProgramBuilder::variable_root(std::uint32_t variable, bool writes) {
  std::uint32_t& root = variable_roots_[variable];
  if (root == UINT32_MAX) {
    Root made;
    made.place = Place::kVariable;
    made.number = static_cast<std::uint32_t>(program_.variables_.size());
    made.spec = graph_.variables()[variable].spec;
    made.bytes = made.spec.bytes();
    made.device = graph_.variables()[variable].device;
    program_.variables_.push_back({.number = variable});
    roots_.push_back(made);
    root = static_cast<std::uint32_t>(roots_.size() - 1);
  }
  if (writes) program_.variables_[roots_[root].number].writes = true;
  return root;
}

void ProgramBuilder::add_node(std::uint32_t index) {
  const Node& node = graph_.node(index);
  Value& first = values_[first_[index]];
  switch (node.kind) {
    case NodeKind::kPlaceholder:
      for (std::uint32_t i = 0; i < rewritten_.feeds.size(); ++i)
        if (rewritten_.feeds[i] == ValueId{index, 0}) first.root = add_root(Place::kFeed, i, index, 0);
      return;
    case NodeKind::kConstant:
      first.root = add_root(Place::kConstant, static_cast<std::uint32_t>(program_.constants_.size()), index, 0);
      first.offset = node.offset;
      program_.constants_.push_back(node.constant);
      return;
    case NodeKind::kRead:
      first.root = variable_root(node.variable, false);
      if (read_outlives_change(index)) {
        const std::uint32_t copied = add_root(Place::kPlanned, 0, index, 0);
        program_.own_ops_.push_back(std::make_unique<AssignOp>());
        // Its operand is the variable, its output the value that others read.
        BuildStep step;
        step.op = program_.own_ops_.back().get();
        step.node = index;
        step.out = {{index, 0}};
        step.device = node.device;
        steps_.push_back(std::move(step));
        first.root = copied;
      }
      return;
    case NodeKind::kAssign:
      return add_assign(index);
    case NodeKind::kGroup:
      first.root = add_root(Place::kNothing, 0, index, 0);
      return;
    case NodeKind::kOp:
    case NodeKind::kUpdate:
      return add_op(index);
    case NodeKind::kGradients:
      PLIMSOLL_CHECK(false);  // Rewriting leaves none.
  }
}

void ProgramBuilder::add_op(std::uint32_t index) {
  const Node& node = graph_.node(index);
  if (is_view(node)) {
    values_[first_[index]] = value(node.inputs[0]);
    values_[first_[index]].offset += view_offset(*node.op, graph_, node);
    return;
  }
  BuildStep step;
  step.op = node.op;
  step.node = index;
  step.in = node.inputs;
  step.device = node.device;
  std::vector<SpecRef> refs;
  for (const ValueId& input : node.inputs) refs.push_back({&spec(input).shape, spec(input).dtype});
  SpecList specs;
  for (std::uint32_t i = 0; i < node.outputs.size(); ++i) {
    specs.add(node.outputs[i].spec.shape, node.outputs[i].spec.dtype);
    step.out.push_back({index, i});
    values_[first_[index] + i].root =
        node.updates.empty() ? add_root(Place::kPlanned, 0, index, i) : variable_root(node.updates[i], true);
  }
  step.scratch_bytes = node.op->workspace_bytes(Specs(refs), specs);
  steps_.push_back(std::move(step));
}

void ProgramBuilder::add_assign(std::uint32_t index) {
  const Node& node = graph_.node(index);
  values_[first_[index]].root = variable_root(node.variable, true);
  program_.own_ops_.push_back(std::make_unique<AssignOp>(node.assign));
  BuildStep step;
  step.op = program_.own_ops_.back().get();
  step.node = index;
  step.in = {{index, 0}, node.inputs[0]};
  step.out = {{index, 0}};
  step.device = node.device;
  step.writes = node.variable;
  steps_.push_back(std::move(step));
}

void ProgramBuilder::find_lifetimes() {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const auto position = static_cast<std::int64_t>(i);
    for (const ValueId& output : steps_[i].out) {
      Root& root = roots_[value(output).root];
      if (root.first < 0) root.first = position;
      root.last = std::max(root.last, position);
    }
    for (const ValueId& input : steps_[i].in) {
      Root& root = roots_[value(input).root];
      root.last = std::max(root.last, position);
    }
  }
}

void ProgramBuilder::place_results() {
  for (const ValueId& fetch : rewritten_.fetches) {
    if (fetch.node == kNoNode) continue;
    Root& root = roots_[root_of(fetch)];
    if (root.place != Place::kPlanned) continue;
    if (!program_.inside_) root.place = Place::kResult;
    root.last = static_cast<std::int64_t>(steps_.size());
  }
}

// Whether the step's first output may be written where that input lies.
bool ProgramBuilder::may_overwrite(const BuildStep& step, std::size_t input, std::int64_t position) {
  const std::uint32_t from = root_of(step.in[input]), to = root_of(step.out[0]);
  const Root &old = roots_[from], &made = roots_[to];
  if (from == to || old.place != Place::kPlanned || old.last != position || old.device != made.device) return false;
  if (value(step.in[input]).offset != 0 || old.bytes != made.bytes || made.bytes == 0) return false;
  for (std::size_t i = 0; i < step.in.size(); ++i) {  // Another operand in the same bytes has to be the same elements.
    if (i == input || root_of(step.in[i]) != from) continue;
    if (value(step.in[i]).offset != 0 || spec(step.in[i]).bytes() != old.bytes) return false;
  }
  return true;
}

void ProgramBuilder::share_bytes() {
  for (Root& root : roots_) root.made = root.first;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    BuildStep& step = steps_[i];
    const std::uint32_t overwrites = step.op->facts().overwrites;
    if (overwrites == 0 || step.out.size() != 1 || roots_[root_of(step.out[0])].place == Place::kVariable) continue;
    for (std::size_t input = 0; input < step.in.size(); ++input) {
      if ((overwrites & slot(input)) == 0 || !may_overwrite(step, input, static_cast<std::int64_t>(i))) continue;
      const std::uint32_t from = root_of(step.in[input]), to = root_of(step.out[0]);
      roots_[to].first = roots_[from].first;  // The result's root takes the operand in.
      roots_[from].merged = to;
      break;
    }
  }
}

}  // namespace plimsoll
