#include "plimsoll/graph/rewrite.h"

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <new>
#include <typeinfo>
#include <unordered_map>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/graph/gradient_nodes.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kFoldedBytes = 4096;  // Larger results are computed at each run: constants stay.
constexpr std::size_t kFilledBytes = 1024;  // The same for results without operands.

// Added nodes get the thread's category, scope and site: those of `node` from here on.
void take_context_from(const Node& node) {
  ThreadContext& context = ThreadContext::current();
  context.category = node.category;
  context.name_scope = node.scope;
  context.site = node.site;
}

// The bytes of a constant, outside the arena: they are few, and part of a plan's bookkeeping.
StorageRef take_small(Device& device, std::size_t bytes) {
  constexpr std::align_val_t kAlignment{64};
  constexpr auto kGiveBack = [](void* done) { ::operator delete(done, kAlignment); };
  std::unique_ptr<void, decltype(kGiveBack)> memory(::operator new(std::max<std::size_t>(bytes, 1), kAlignment));
  StorageRef storage = Storage::wrap(device, memory.get(), bytes, kGiveBack);
  static_cast<void>(memory.release());
  return storage;
}

// The same on a device that the host cannot reach.
StorageRef move_constant(const Storage& value, Device& device) {
  StorageRef moved = Storage::take(device, value.bytes(), {.op = "constant"});
  device.backend().copy_in(moved->base(), value.base(), value.bytes());
  return moved;
}

class Rewriter {
 public:
  Rewriter(GraphState& from, std::span<const Feed> feeds, const Passes& passes)
      : from_(from), feeds_(feeds), passes_(passes), to_(GraphState::make(GraphState::Role::kPlan)) {
    to_->share_seeds(from);
    first_.reserve(from.nodes().size() + 1);
    first_.push_back(0);
    for (const Node& node : from.nodes())
      first_.push_back(first_.back() + static_cast<std::uint32_t>(node.outputs.size()));
    mapped_.resize(first_.back());
    fed_.assign(first_.back(), -1);
    for (std::size_t i = 0; i < feeds.size(); ++i)
      if (feeds[i].value.node != kNoNode) fed_[place(feeds[i].value)] = static_cast<int>(i);
  }

  Rewritten run(std::span<const ValueId> fetches, bool with_effects) {
    mark(fetches, with_effects);
    Rewritten result;
    result.feeds.resize(feeds_.size());
    const CategoryGuard category;
    const NameScopeGuard name_scope;
    const SiteGuard site;
    for (std::uint32_t i = 0; i < from_.nodes().size(); ++i) {
      take_context_from(from_.node(i));
      feed_outputs(i, result.feeds);
      if (needed_[i]) copy(i);
    }
    for (const ValueId& fetch : fetches) result.fetches.push_back(mapped_[place(fetch)]);
    result.graph = std::move(to_);
    return result;
  }

 private:
  std::uint32_t place(ValueId value) const { return first_[value.node] + value.output; }

  void mark(std::span<const ValueId> fetches, bool with_effects) {
    needed_.assign(from_.nodes().size(), false);
    used_.assign(first_.back(), false);
    const auto need = [&](ValueId value) {
      used_[place(value)] = true;
      if (fed_[place(value)] < 0) needed_[value.node] = true;
    };
    for (const ValueId& fetch : fetches) need(fetch);
    if (!passes_.prune) need_all();
    for (std::uint32_t i = static_cast<std::uint32_t>(from_.nodes().size()); i-- > 0;) {
      const Node& node = from_.node(i);
      if (with_effects && (node.kind == NodeKind::kAssign || node.kind == NodeKind::kUpdate)) needed_[i] = true;
      if (!needed_[i]) continue;
      has_gradients_ |= node.kind == NodeKind::kGradients;
      for (const ValueId& input : node.inputs) need(input);
      for (const std::uint32_t before : node.controls) needed_[before] = true;
    }
  }

  // Every operation without effects that can be computed from the feeds.
  void need_all() {
    std::vector<bool> possible(from_.nodes().size());
    for (std::uint32_t i = 0; i < possible.size(); ++i) {
      const Node& node = from_.node(i);
      possible[i] = node.kind != NodeKind::kPlaceholder;
      for (const ValueId& input : node.inputs)
        possible[i] = possible[i] && (possible[input.node] || fed_[place(input)] >= 0);
      for (const std::uint32_t before : node.controls) possible[i] = possible[i] && possible[before];
      const bool changes = node.kind == NodeKind::kAssign || node.kind == NodeKind::kUpdate;
      possible[i] = possible[i] && !changes;
      if (possible[i] && node.kind == NodeKind::kOp && node.op->facts().is_pure && !node.op->facts().checks)
        needed_[i] = true;
    }
  }

  void feed_outputs(std::uint32_t index, std::vector<ValueId>& feeds) {
    const Node& node = from_.node(index);
    for (std::uint32_t output = 0; output < node.outputs.size(); ++output) {
      const int feed = fed_[place({index, output})];
      if (feed < 0 || !used_[place({index, output})]) continue;
      Node fed;
      fed.kind = NodeKind::kPlaceholder;
      fed.device = from_.device({index, output});
      fed.outputs = {{feeds_[static_cast<std::size_t>(feed)].spec, node.outputs[output].id}};
      const ValueId made{to_->append(std::move(fed)), 0};
      mapped_[place({index, output})] = made;
      feeds[static_cast<std::size_t>(feed)] = made;
    }
  }

  void copy(std::uint32_t index) {
    const Node& node = from_.node(index);
    switch (node.kind) {
      case NodeKind::kOp:
        return copy_op(index);
      case NodeKind::kPlaceholder:
        throw InvalidArgument(fmt::format("run: placeholder \"{}\" of {} {} is needed and has no value; feed one",
                                          node.name, dtype_name(node.outputs[0].spec.dtype),
                                          node.outputs[0].spec.shape.to_string()));
      case NodeKind::kRead:
        return keep({index, 0}, to_->read_value(variable(node.variable)));
      case NodeKind::kGradients:
        return copy_gradients(index);
      case NodeKind::kUpdate:
        return copy_update(index);
      case NodeKind::kGroup:
      case NodeKind::kConstant:
      case NodeKind::kAssign: {
        Node copied = node;
        copied.controls.clear();  // Implied by the order.
        copied.name.clear();
        for (ValueId& input : copied.inputs) input = mapped_[place(input)];
        if (node.kind == NodeKind::kAssign) return copy_assign(index, std::move(copied));
        return keep({index, 0}, {to_->append(std::move(copied)), 0});
      }
    }
  }

  void copy_update(std::uint32_t index) {
    const Node& node = from_.node(index);
    std::vector<ValueId> inputs = node.inputs;
    for (ValueId& input : inputs) input = mapped_[place(input)];
    std::vector<std::uint32_t> updates;
    for (const std::uint32_t changed : node.updates) updates.push_back(variable(changed));
    keep_all(index, to_->append_op(*node.op, std::move(inputs), node.device, updates));
    for (const std::uint32_t changed : updates) to_->forget_read(changed);
  }

  void copy_assign(std::uint32_t index, Node copied) {
    copied.variable = variable(copied.variable);
    const NodeVariable& changed = to_->variables()[copied.variable];
    const Shape& value = to_->output(copied.inputs[0]).spec.shape;
    if (!(value == changed.spec.shape))
      throw InvalidArgument(fmt::format("assign: variable \"{}\" has shape {}, the value {}", changed.name,
                                        changed.spec.shape.to_string(), value.to_string()));
    const std::uint32_t changed_number = copied.variable;
    const std::uint32_t made = to_->append(std::move(copied));
    to_->forget_read(changed_number);
    keep({index, 0}, {made, 0});
  }

  void keep(ValueId from, ValueId to) {
    if (fed_[place(from)] < 0) mapped_[place(from)] = to;
  }

  std::uint32_t variable(std::uint32_t number) {
    const auto [found, is_new] = variables_.try_emplace(number, 0);
    if (is_new) found->second = to_->add_variable(from_.variables()[number]);
    return found->second;
  }

  // An op that this graph owns.
  struct OwnOp {
    explicit OwnOp(const Op& of) : memory(new std::max_align_t[of.object_bytes() / sizeof(std::max_align_t) + 1]) {
      op = of.copy_to(memory.get());
    }
    ~OwnOp() { op->~Op(); }
    OwnOp(const OwnOp&) = delete;
    OwnOp& operator=(const OwnOp&) = delete;
    std::unique_ptr<std::max_align_t[]> memory;
    Op* op;
  };

  // The number of outputs a copy of the node's op still has, without those that only a gradient reads; 0: none can be
  // dropped.
  std::uint32_t make_lean(std::uint32_t index, Op& copy) const {
    const auto outputs = static_cast<std::uint32_t>(copy.make_lean());
    for (std::uint32_t output = outputs; output < from_.node(index).outputs.size(); ++output)
      if (used_[place({index, output})]) return 0;
    return outputs;
  }

  void copy_op(std::uint32_t index) {
    const Node& node = from_.node(index);
    std::vector<ValueId> inputs = node.inputs;
    for (ValueId& input : inputs) input = mapped_[place(input)];
    if (passes_.lean && !has_gradients_ && node.outputs.size() > 1) {
      const OwnOp lean(*node.op);
      if (const std::uint32_t outputs = make_lean(index, *lean.op); outputs > 0)
        return add_op(index, *lean.op, std::move(inputs), outputs);
    }
    add_op(index, *node.op, std::move(inputs), static_cast<std::uint32_t>(node.outputs.size()));
  }

  void add_op(std::uint32_t index, const Op& op, std::vector<ValueId> inputs, std::uint32_t outputs) {
    const Node& node = from_.node(index);
    std::uint64_t key = 0;
    const bool merges = passes_.merge && op.facts().is_pure;
    if (merges) {
      key = key_of(op, inputs, node.device);
      if (const std::uint32_t same = find_done(key, op, inputs, node.device); same != kNoNode)
        return keep_outputs(index, same, outputs);
    }
    std::uint32_t made = passes_.fold ? fold(node, inputs) : kNoNode;
    const bool moves = inputs.size() == 1 && to_->device(inputs[0]) != node.device;
    if (made == kNoNode)
      made = moves ? to_->append_move(op, inputs[0], node.device) : to_->append_op(op, inputs, node.device);
    keep_outputs(index, made, outputs);
    if (!merges) return;
    const Op* const kept = to_->node(made).op;  // A folded one has none; the op belongs to the node.
    done_.emplace(key, Done{kept ? kept : node.op, std::move(inputs), node.device, made});
  }

  void keep_outputs(std::uint32_t index, std::uint32_t made, std::uint32_t outputs) {
    for (std::uint32_t output = 0; output < outputs; ++output) keep({index, output}, {made, output});
  }

  void keep_all(std::uint32_t index, std::uint32_t made) {
    keep_outputs(index, made, static_cast<std::uint32_t>(from_.node(index).outputs.size()));
  }

  // The node added for these operands, with an op with these attributes.
  std::uint32_t find_done(std::uint64_t key, const Op& op, const std::vector<ValueId>& inputs,
                          const Device* device) const {
    const auto [begin, end] = done_.equal_range(key);
    for (auto done = begin; done != end; ++done)
      if (done->second.device == device && done->second.inputs == inputs && done->second.op->same_as(op))
        return done->second.made;
    return kNoNode;
  }

  static std::uint64_t key_of(const Op& op, const std::vector<ValueId>& inputs, const Device* device) {
    std::uint64_t hash = typeid(op).hash_code() ^ reinterpret_cast<std::uintptr_t>(device);
    for (const ValueId& input : inputs)
      hash = (hash ^ (std::uint64_t{input.node} << 32 | input.output)) * 0xFF51AFD7ED558CCDu ^ hash >> 32;
    return hash;
  }

  std::uint32_t fold(const Node& node, const std::vector<ValueId>& inputs) {
    const OpFacts facts = node.op->facts();
    if (!facts.is_pure || facts.is_random || facts.checks || node.outputs.size() != 1) return kNoNode;
    if (facts.is_view) return kNoNode;
    for (const ValueId& input : inputs)
      if (to_->node(input.node).kind != NodeKind::kConstant) return kNoNode;
    const Shape& shape = node.outputs[0].spec.shape;
    if (!shape.is_known() || node.outputs[0].spec.bytes() > (inputs.empty() ? kFilledBytes : kFoldedBytes))
      return kNoNode;
    std::vector<SpecRef> refs;
    std::vector<ConstTensorView> operands;
    std::vector<HostBytes> here(inputs.size());
    for (const ValueId& input : inputs) {
      const Node& constant = to_->node(input.node);
      const TensorSpec& spec = constant.outputs[0].spec;
      refs.push_back({&spec.shape, spec.dtype});
      operands.emplace_back(here[operands.size()].hold(*constant.constant, constant.offset, spec.bytes()),
                            std::size_t{0}, spec.dtype, spec.shape);
    }
    SpecList specs;
    node.op->infer(Specs(refs), specs);
    StorageRef value = take_small(*node.device, specs[0].bytes());
    const TensorView out(value->resident(), 0, specs[0].dtype, specs[0].shape);
    const std::size_t scratch_bytes = node.op->workspace_bytes(Specs(refs), specs);
    const StorageRef scratch = take_small(*node.device, scratch_bytes);
    node.op->run({operands, {&out, 1}, {static_cast<std::byte*>(scratch->resident()), scratch_bytes}});
    if (!node.device->is_host()) value = move_constant(*value, *node.device);
    Node folded;
    folded.kind = NodeKind::kConstant;
    folded.constant = value.get();
    folded.device = node.device;
    folded.outputs = {{specs[0], 0}};
    return to_->append(std::move(folded));
  }

  void copy_gradients(std::uint32_t index) {
    const Node& node = from_.node(index);
    std::vector<ValueId> sources;
    for (std::size_t i = 1; i < node.inputs.size(); ++i) sources.push_back(mapped_[place(node.inputs[i])]);
    const std::vector<ValueId> gradients = gradient_nodes(*to_, mapped_[place(node.inputs[0])], sources);
    for (std::uint32_t output = 0; output < node.outputs.size(); ++output) keep({index, output}, gradients[output]);
  }

  GraphState& from_;
  const std::span<const Feed> feeds_;
  const Passes& passes_;
  std::shared_ptr<GraphState> to_;
  std::vector<std::uint32_t> first_;  // The first output of each node, among all.
  std::vector<ValueId> mapped_;       // By output.
  std::vector<int> fed_;              // By output: which feed, or -1.
  std::vector<bool> used_;            // By output.
  std::vector<bool> needed_;          // By node.
  bool has_gradients_ = false;        // A needed node asks for gradients, which may read any output.
  std::unordered_map<std::uint32_t, std::uint32_t> variables_;
  struct Done {
    const Op* op;  // In one of the two graphs.
    std::vector<ValueId> inputs;
    const Device* device;
    std::uint32_t made;
  };
  std::unordered_multimap<std::uint64_t, Done> done_;  // By key_of().
};

}  // namespace

Rewritten rewrite(GraphState& from, std::span<const Feed> feeds, std::span<const ValueId> fetches, bool with_effects,
                  const Passes& passes) {
  const auto locked = from.lock();
  return Rewriter(from, feeds, passes).run(fetches, with_effects);
}

}  // namespace plimsoll::internal
