// The first pass: from the nodes of a rewritten graph to steps.
#include "plimsoll/graph/step_list.h"

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/graph/program_passes.h"
#include "plimsoll/ops/assign.h"
#include "plimsoll/tensor/parked.h"

namespace plimsoll::internal {
namespace {

using Place = StepList::Place;

bool is_view(const Node& node) { return node.op && node.outputs.size() == 1 && node.op->facts().is_view; }

struct OperandSpecs {
  std::vector<SpecRef> in;
  SpecList out;
};

OperandSpecs specs_of(const StepList& list, const std::vector<std::uint32_t>& in,
                      const std::vector<std::uint32_t>& out) {
  OperandSpecs specs;
  for (const std::uint32_t value : in) specs.in.push_back({&list.spec(value).shape, list.spec(value).dtype});
  for (const std::uint32_t value : out) specs.out.add(list.spec(value).shape, list.spec(value).dtype);
  return specs;
}

class Lister {
 public:
  Lister(const Rewritten& rewritten, bool keeps_inside) : rewritten_(rewritten), graph_(*rewritten.graph) {
    list_.graph = rewritten.graph;
    list_.num_feeds = rewritten.feeds.size();
    list_.keeps_inside = keeps_inside;
  }

  StepList run() {
    number_values();
    find_read_ends();
    for (std::uint32_t i = 0; i < graph_.nodes().size(); ++i) add_node(i);
    return std::move(list_);
  }

 private:
  std::uint32_t number(ValueId id) const { return first_[id.node] + id.output; }
  std::vector<std::uint32_t> numbers(const std::vector<ValueId>& ids) const {
    std::vector<std::uint32_t> values;
    for (const ValueId& id : ids) values.push_back(number(id));
    return values;
  }

  void number_values() {
    first_.push_back(0);
    for (const Node& node : graph_.nodes()) {
      first_.push_back(first_.back() + static_cast<std::uint32_t>(node.outputs.size()));
      for (const NodeOutput& output : node.outputs) list_.values.push_back({.spec = &output.spec});
    }
    list_.variable_roots.assign(graph_.variables().size(), StepList::kNone);
    changes_.resize(graph_.variables().size());
    for (std::uint32_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.node(i);
      if (node.kind == NodeKind::kAssign) changes_[node.variable].push_back(i);
      for (const std::uint32_t variable : node.updates) changes_[variable].push_back(i);
    }
    list_.fetched_outputs = rewritten_.fetches;
    for (const ValueId& fetch : rewritten_.fetches)
      list_.fetches.push_back(fetch.node == kNoNode ? StepList::kNone : number(fetch));
  }

  // For each output the last node that reads its bytes, through views too. Nodes come in an order they can run in.
  void find_read_ends() {
    read_end_.assign(list_.values.size(), 0);
    for (const std::uint32_t fetch : list_.fetches)
      if (fetch != StepList::kNone) read_end_[fetch] = kNoNode;
    for (std::uint32_t i = static_cast<std::uint32_t>(graph_.nodes().size()); i-- > 0;) {
      const Node& node = graph_.node(i);
      for (const ValueId& input : node.inputs) read_end_[number(input)] = std::max(read_end_[number(input)], i);
      if (is_view(node)) {
        std::uint32_t& end = read_end_[number(node.inputs[0])];
        end = std::max(end, read_end_[first_[i]]);
      }
    }
  }

  // Whether what a node reads of a variable is needed after a later node has changed it: then it has to be copied.
  bool read_outlives_change(std::uint32_t index) const {
    for (const std::uint32_t change : changes_[graph_.node(index).variable])
      if (change > index && read_end_[first_[index]] > change) return true;
    return false;
  }

  std::uint32_t add_root(Place place, std::uint32_t number, std::uint32_t node, std::uint32_t output) {
    StepList::Root root;
    root.place = place;
    root.number = number;
    root.device = graph_.node(node).device;
    root.spec = graph_.node(node).outputs[output].spec;
    root.bytes = root.spec.bytes();
    root.category = graph_.node(node).category;
    root.node = node;
    root.op = graph_.node(node).op ? graph_.node(node).op->name() : "variable";
    list_.roots.push_back(root);
    return static_cast<std::uint32_t>(list_.roots.size() - 1);
  }

  std::uint32_t variable_root(std::uint32_t variable, bool writes) {
    std::uint32_t& root = list_.variable_roots[variable];
    if (root == StepList::kNone) {
      StepList::Root made;
      made.place = Place::kVariable;
      made.number = static_cast<std::uint32_t>(list_.variables.size());
      made.spec = graph_.variables()[variable].spec;
      made.bytes = made.spec.bytes();
      made.device = graph_.variables()[variable].device;
      made.op = "variable";
      made.category = Category::kParameters;
      list_.variables.push_back({.number = variable});
      list_.roots.push_back(made);
      root = static_cast<std::uint32_t>(list_.roots.size() - 1);
    }
    if (writes) list_.variables[list_.roots[root].number].writes = true;
    return root;
  }

  void add_step(const Op& op, std::uint32_t node, std::vector<std::uint32_t> in, std::vector<std::uint32_t> out) {
    StepList::Step step;
    step.op = &op;
    step.node = node;
    step.in = std::move(in);
    step.out = std::move(out);
    step.device = graph_.node(node).device;
    step.checks = op.facts().checks;
    list_.steps.push_back(std::move(step));
  }

  void add_node(std::uint32_t index) {
    const Node& node = graph_.node(index);
    const std::uint32_t first = first_[index];
    switch (node.kind) {
      case NodeKind::kPlaceholder:
        for (std::uint32_t i = 0; i < rewritten_.feeds.size(); ++i)
          if (rewritten_.feeds[i] == ValueId{index, 0}) list_.values[first].root = add_root(Place::kFeed, i, index, 0);
        return;
      case NodeKind::kConstant:
        list_.values[first].root =
            add_root(Place::kConstant, static_cast<std::uint32_t>(list_.constants.size()), index, 0);
        list_.values[first].offset = node.offset;
        list_.constants.push_back(node.constant);
        return;
      case NodeKind::kRead:
        return add_read(index);
      case NodeKind::kAssign:
        list_.values[first].root = variable_root(node.variable, true);
        list_.ops.push_back(std::make_shared<AssignOp>(node.assign));
        return add_step(*list_.ops.back(), index, {first, number(node.inputs[0])}, {first});
      case NodeKind::kGroup:
        list_.values[first].root = add_root(Place::kNothing, 0, index, 0);
        return;
      case NodeKind::kOp:
      case NodeKind::kUpdate:
        return add_op(index);
      case NodeKind::kGradients:
        PLIMSOLL_CHECK(false);  // Rewriting leaves none.
    }
  }

  void add_read(std::uint32_t index) {
    const std::uint32_t variable = graph_.node(index).variable, first = first_[index];
    list_.values[first].root = variable_root(variable, false);
    if (!read_outlives_change(index)) return;
    const auto before = static_cast<std::uint32_t>(list_.values.size());
    list_.values.push_back({.root = list_.values[first].root, .spec = &graph_.variables()[variable].spec});
    list_.values[first].root = add_root(Place::kPlanned, 0, index, 0);
    list_.ops.push_back(std::make_shared<AssignOp>());
    add_step(*list_.ops.back(), index, {before}, {first});
  }

  void add_op(std::uint32_t index) {
    const Node& node = graph_.node(index);
    std::vector<std::uint32_t> in = numbers(node.inputs), out;
    if (is_view(node)) {
      StepList::Value& view = list_.values[first_[index]];
      const StepList::Value& whole = list_.values[in[0]];
      view.root = whole.root;
      view.offset = whole.offset + node.op->view_offset(Specs(specs_of(list_, in, {}).in));
      return;
    }
    for (std::uint32_t i = 0; i < node.outputs.size(); ++i) {
      out.push_back(first_[index] + i);
      list_.values[out.back()].root =
          node.updates.empty() ? add_root(Place::kPlanned, 0, index, i) : variable_root(node.updates[i], true);
    }
    const std::size_t scratch_bytes = list_.scratch_of(*node.op, in, out);
    add_step(*node.op, index, std::move(in), std::move(out));
    list_.steps.back().scratch_bytes = scratch_bytes;
  }

  const Rewritten& rewritten_;
  const GraphState& graph_;
  StepList list_;
  std::vector<std::uint32_t> first_;                 // The first output of each node, among all.
  std::vector<std::uint32_t> read_end_;              // By value: the last node that reads it, views included.
  std::vector<std::vector<std::uint32_t>> changes_;  // By variable: the nodes that change it.
};

}  // namespace

std::size_t StepList::scratch_of(const Op& op, const std::vector<std::uint32_t>& in,
                                 const std::vector<std::uint32_t>& out) const {
  const OperandSpecs specs = specs_of(*this, in, out);
  return op.workspace_bytes(Specs(specs.in), specs.out);
}

std::uint64_t StepList::cost_of(const Step& step) const {
  const OperandSpecs specs = specs_of(*this, step.in, step.out);
  return step.op->cost(Specs(specs.in), specs.out);
}

SpecList StepList::outputs_of(const Op& op, const std::vector<std::uint32_t>& in) const {
  const OperandSpecs specs = specs_of(*this, in, {});
  SpecList out;
  op.infer(Specs(specs.in), out);
  return out;
}

StepList StepList::without_steps() const {
  StepList list;
  list.graph = graph;
  list.values = values;
  list.roots = roots;
  list.fetches = fetches;
  list.fetched_outputs = fetched_outputs;
  list.num_feeds = num_feeds;
  list.keeps_inside = keeps_inside;
  list.variable_roots = variable_roots;
  list.variables = variables;
  list.constants = constants;
  list.ops = ops;
  list.specs = specs;
  return list;
}

StepList list_steps(const Rewritten& rewritten, bool keeps_inside) { return Lister(rewritten, keeps_inside).run(); }

namespace {

void fuse(StepList& list, const Passes& passes) {
  fuse_layers(list, passes);
  if (passes.fuse_elementwise) fuse_chains(list);
}

using Parked = std::vector<bool>;  // By root.

// What one step changes is all parked or all in memory.
Parked parkable_among(const StepList& list, Parked parked) {
  for (bool again = true; again;) {
    again = false;
    for (const StepList::Step& step : list.steps) {
      if (!list.changes_variables(step)) continue;
      const auto is_parked = [&](std::uint32_t output) { return parked[list.values[output].root]; };
      if (std::all_of(step.out.begin(), step.out.end(), is_parked)) continue;
      for (const std::uint32_t output : step.out) {
        again |= is_parked(output);
        parked[list.values[output].root] = false;
      }
    }
  }
  return parked;
}

Parked parkable_roots(const StepList& list) {
  Parked parked(list.roots.size(), false);
  for (const std::uint32_t root : list.variable_roots)
    if (root != StepList::kNone)
      parked[root] = list.roots[root].bytes >= Parking::kLeastBytes && list.roots[root].device->is_host();
  for (const std::uint32_t fetch : list.fetches)
    if (fetch != StepList::kNone) parked[list.values[fetch].root] = false;
  return parkable_among(list, std::move(parked));
}

// What is used after the first change in memory is not parked. False when there was none.
bool keep_what_is_used_late(const StepList& list, Parked& parked) {
  bool is_changed = false, any = false;
  for (const StepList::Step& step : list.steps) {
    is_changed = is_changed || list.changes_memory(step);
    if (!is_changed) continue;
    for (const auto* values : {&step.in, &step.out})
      for (const std::uint32_t value : *values) {
        const std::uint32_t root = list.values[value].root;
        if (root >= parked.size() || !parked[root]) continue;
        parked[root] = false;
        any = true;
      }
  }
  return any;
}

}  // namespace

StepList list_fused_steps(const Rewritten& rewritten, const Passes& passes, bool keeps_inside, Changes changes) {
  StepList list = list_steps(rewritten, keeps_inside);
  choose_order(list, passes);
  if (changes != Changes::kParked) {
    if (changes == Changes::kLate) change_late(list);
    fuse(list, passes);
    return list;
  }
  Parked parked = parkable_roots(list);
  for (;;) {
    StepList made = list;
    for (std::size_t root = 0; root < parked.size(); ++root) made.roots[root].is_parked = parked[root];
    change_late(made);
    fuse(made, passes);
    if (!keep_what_is_used_late(made, parked)) return made;
    parked = parkable_among(list, parked);
  }
}

}  // namespace plimsoll::internal
