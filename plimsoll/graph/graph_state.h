// GraphState: the data of a Graph: a list of nodes that only grows. Traces and plans use it too.
//
// The nodes are in an order in which they can run: operands, and what a node waits for, come before it.
// Thread safety: a lock orders adding and reading nodes.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plimsoll/graph/node.h"
#include "plimsoll/tensor/counted_overhead.h"
#include "plimsoll/tensor/holder.h"

namespace plimsoll {
class PlacementScope;
}  // namespace plimsoll

namespace plimsoll::internal {

class GraphState final : public GraphVariables, public Holder {
 public:
  enum class Role : std::uint8_t {
    kGraph,  // A program's own: nodes have names.
    kTrace,  // A function's trace: sizes are known, variables cannot be declared.
    kBody,   // A branch or a loop's body inside `outer`: values from there become its inputs.
    kPlan,   // A rewritten copy.
  };
  static std::shared_ptr<GraphState> make(Role role, std::shared_ptr<GraphState> outer = nullptr);
  ~GraphState() override;

  // Nodes from operations.
  std::vector<Tensor> add(const Op& op, std::span<const Tensor* const> inputs) override;
  Tensor add_constant(const Tensor& value, std::string_view name) override;
  Declared declare(const Tensor& initial, const VariableOptions& options) override;
  Tensor read(std::uint32_t declared) override;
  Tensor read(const Variable& eager) override;
  Tensor assign(std::uint32_t declared, const Tensor& value, AssignKind kind) override;
  Tensor assign(const Variable& eager, const Tensor& value, AssignKind kind) override;
  void update(const Op& op, std::span<const Tensor> operands, std::span<const Variable> changed) override;
  void place(const Op& op, std::span<const Tensor* const> inputs, std::vector<Tensor>& placed) override;
  Tensor move(const Op& copy, const Tensor& value, Device& to) override;
  std::size_t add_effect(const RunEffect& effect) override;
  std::uint64_t defer_seed(const std::shared_ptr<SeedStream>& stream, std::uint64_t base) override;
  // `op` changes these variables; its first operands are their values.
  Tensor add_update(const Op& op, std::span<const Tensor> inputs, std::span<const std::uint32_t> variables,
                    std::string_view name);
  Tensor add_placeholder(const TensorSpec& spec, Device& device, std::string_view name);
  Tensor add_group(std::span<const Tensor> after, std::string_view name);
  std::vector<Tensor> add_gradients(const Tensor& target, std::span<const Tensor> sources);

  // The node of an operand: in this graph, otherwise a constant, a captured variable or, in a body, an input. Throws
  // FailedPrecondition for a tensor of another graph, and Disposed.
  ValueId resolve(const Tensor& tensor, const char* where, const std::string& argument);
  Tensor tensor(ValueId value);  // A handle to a node's output.

  // Removes what was added to the graph while it lived, unless it is kept: a failed build changes nothing. Holds the
  // lock. Scopes nest.
  class Undo {
   public:
    explicit Undo(GraphState& graph);
    ~Undo();
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;
    void keep() noexcept { kept_ = true; }

   private:
    GraphState& graph_;
    const std::unique_lock<std::recursive_mutex> locked_;
    const std::size_t nodes_, variables_, captures_, constants_, seeds_, changes_;
    const bool has_effects_;
    bool kept_ = false;
  };

  // For rewriting passes: operands by number, specs inferred again. The node's name is ignored.
  std::uint32_t append(Node node);
  std::uint32_t append_op(const Op& op, std::vector<ValueId> inputs, Device* device,
                          std::vector<std::uint32_t> updates = {}, std::string_view name = {});  // `name`: in full.
  std::uint32_t append_move(const Op& copy, ValueId value, Device* to);
  std::uint32_t variable_number(const Variable& eager);      // Captures it when it is new.
  std::uint32_t add_variable(const NodeVariable& variable);  // As it is.
  ValueId read_value(std::uint32_t variable);
  void forget_read(std::uint32_t variable);  // It was changed.

  // For a body under construction this is the lock of the enclosing graph, so that there is one lock order.
  std::unique_lock<std::recursive_mutex> lock() const { return outer_ ? outer_->lock() : std::unique_lock(mutex_); }
  // These require the lock, or that nobody adds nodes any more.
  const std::vector<Node>& nodes() const noexcept { return nodes_; }
  const Node& node(std::uint32_t index) const noexcept { return nodes_[index]; }
  const NodeOutput& output(ValueId value) const noexcept { return nodes_[value.node].outputs[value.output]; }
  Device* device(ValueId value) const noexcept {  // A gradient is on the device of its source.
    const Node& made_by = nodes_[value.node];
    return made_by.kind == NodeKind::kGradients ? device(made_by.inputs[1 + value.output]) : made_by.device;
  }
  const std::vector<NodeVariable>& variables() const noexcept { return variables_; }
  void put_on(Device& device) noexcept;  // Moves all nodes there, for a plan inside an op: moves become copies.

  // What the numbers from defer_seed() represent: a graph and its rewritten copies share one table.
  struct DeferredSeed {
    std::uint64_t stands_for = 0;
    std::shared_ptr<SeedStream> stream;
    std::uint64_t base = 0;
    std::uint64_t number = 0;  // Its position among those a run takes from the stream.
  };
  using SeedTable = std::vector<DeferredSeed>;
  const std::shared_ptr<SeedTable>& seeds() const noexcept { return seeds_; }  // nullptr: none.
  void share_seeds(const GraphState& from) { seeds_ = from.seeds_; }

  struct Capture {
    ValueId inside;  // A placeholder.
    Tensor outside;  // Symbolic, or any.
  };
  const std::vector<Capture>& captures() const noexcept { return captures_; }  // For a body.
  // A variable as seen by a body: an eager one, or one that the outermost graph declares.
  struct AnyVariable {
    std::optional<Variable> eager;
    std::uint32_t declared = 0;
    std::uint64_t id = 0;
    std::string name;
    TensorSpec spec;
  };
  Tensor read(const AnyVariable& variable);
  Tensor assign(const AnyVariable& variable, const Tensor& value, AssignKind kind);
  // For a branch: variables that it changes, and their values at its end. Whoever runs the branch assigns them.
  struct Changed {
    AnyVariable variable;
    Tensor value;
  };
  void become_branch() noexcept { is_branch_ = true; }
  const std::vector<Changed>& changed() const noexcept { return changed_; }
  // For a finished body: releases its references to outside values and returns them.
  std::vector<Tensor> detach();

  std::string scope_name(const std::string& full_name);  // Of a NameScope: numbered when it was used before.

  Role role() const noexcept { return role_; }
  bool has_effects() const noexcept { return has_effects_; }  // Whether some node changes a variable.
  void finalize();
  bool is_finalized() const;
  std::size_t size() const;
  std::uint64_t id() const noexcept { return id_; }

  // Added nodes also wait for these. Only for this thread's use of the graph.
  std::vector<std::uint32_t> waiting_for;

 private:
  GraphState(Role role, std::shared_ptr<GraphState> outer);

  std::string describe() const override;
  void visit_held(Visit f) const override;

  void require_open(const char* where) const;
  const PlacementScope* asked() const noexcept;
  void note_placement(Node& node) const;  // Throws NotFound.
  ValueId capture(const Tensor& tensor);
  ValueId constant_of(const Tensor& tensor, std::string_view name);
  Tensor assign_number(std::uint32_t variable, const Tensor& value, AssignKind kind);
  Tensor assign_later(const AnyVariable& variable, const Tensor& value, AssignKind kind);  // In a branch.
  static AnyVariable any(const Variable& eager);
  AnyVariable any(std::uint32_t declared) const;
  GraphState* body_being_built() const noexcept;  // Inside this graph, by this thread; nullptr when there is none.
  // `scope`: the scope of the name.
  std::uint32_t push(Node node, std::string_view base_name, std::string_view scope);
  std::uint32_t push(Node node, std::string_view base_name);  // In the thread's name scope.
  std::string unique_name(std::string_view scope, std::string_view base_name);
  const Op* keep(const Op& op);
  void set_last_read(std::uint32_t variable, ValueId read);
  void set_name_count(const std::string& key, std::uint32_t count);
  void forget_node(const Node& node) noexcept;
  static std::size_t bytes_of(const Node& node) noexcept;

  // The previous state: a count of names (0: none) or, without a name, the last read of a variable.
  struct Change {
    std::string name;
    std::uint32_t number = 0;  // The count, or the variable.
    ValueId read;
  };

  const Role role_;
  std::shared_ptr<GraphState> outer_;
  const std::uint64_t id_;
  mutable std::recursive_mutex mutex_;  // Guards everything below.
  std::vector<Node> nodes_;
  std::vector<NodeVariable> variables_;
  std::vector<Capture> captures_;
  std::unordered_map<std::string, std::uint32_t> names_;             // In lower case: how often it was used.
  std::unordered_map<std::uint64_t, std::uint32_t> variable_by_id_;  // Captured ones.
  std::unordered_map<std::uint64_t, ValueId> constants_by_bytes_;    // By address and offset.
  std::unordered_map<std::uint64_t, ValueId> captured_values_;       // By their number outside.
  std::vector<StorageRef> constants_;                                // Changed inside the thread's gate.
  std::unordered_map<const RunEffect*, std::size_t> effects_;        // How often each was added.
  std::shared_ptr<SeedTable> seeds_;
  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size, used;
  };
  std::vector<Block> blocks_;    // Ops are stored here.
  CountedOverhead counted_;      // Of nodes and their ops.
  std::vector<Change> changes_;  // For those who may undo them.
  int undo_depth_ = 0;
  std::vector<Changed> changed_;
  bool is_branch_ = false;
  bool finalized_ = false;
  bool has_effects_ = false;
};

}  // namespace plimsoll::internal
