// ProgramBuilder: from a rewritten graph to a program: where every value lies, which may share bytes, in what order.
#pragma once

#include <vector>

#include "plimsoll/base/function_ref.h"
#include "plimsoll/graph/program.h"
#include "plimsoll/ops/dense.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/plan/plan.h"

namespace plimsoll {

class ProgramBuilder {
 public:
  ProgramBuilder(Program& program, Rewritten rewritten, const Passes& passes);
  void build();

 private:
  enum class Place : std::uint8_t { kPlanned, kResult, kFeed, kConstant, kVariable, kNothing };
  // Bytes that values lie in: a buffer of its own, or something from outside.
  struct Root {
    Place place = Place::kPlanned;
    std::uint32_t number = 0;  // Among its kind.
    std::size_t bytes = 0;
    std::int64_t first = -1, last = -1;  // Steps.
    std::int64_t made = -1;              // The step that makes it; later than the first when another lay there before.
    Device* device = nullptr;
    const char* op = "";
    TensorSpec spec;
    Category category = Category::kActivations;
    std::uint32_t node = kNoNode;
    std::size_t offset = 0;             // When planned.
    std::uint32_t merged = UINT32_MAX;  // Lies in another's bytes: that one.
  };
  struct Value {
    std::uint32_t root = UINT32_MAX;
    std::size_t offset = 0;
  };
  struct BuildStep {
    const Op* op = nullptr;
    std::uint32_t node = 0;
    std::vector<ValueId> in, out;
    std::size_t scratch_bytes = 0, scratch_offset = 0;
    Device* device = nullptr;
    std::int64_t writes = -1;  // The variable that it changes.
  };

  std::uint32_t place(ValueId value) const { return first_[value.node] + value.output; }
  Value& value(ValueId id) { return values_[place(id)]; }
  std::uint32_t root_of(ValueId id) { return find(value(id).root); }
  std::uint32_t find(std::uint32_t root) {  // Shortens the way for the next who asks.
    while (roots_[root].merged != UINT32_MAX) {
      const std::uint32_t next = roots_[roots_[root].merged].merged;
      if (next != UINT32_MAX) roots_[root].merged = next;
      root = roots_[root].merged;
    }
    return root;
  }
  const TensorSpec& spec(ValueId id) const { return graph_.output(id).spec; }

  void number_values();
  std::uint32_t add_root(Place place, std::uint32_t number, std::uint32_t node, std::uint32_t output);
  void add_node(std::uint32_t index);
  void add_op(std::uint32_t index);
  void add_assign(std::uint32_t index);
  std::uint32_t variable_root(std::uint32_t variable, bool writes);
  bool read_outlives_change(std::uint32_t index) const;
  void find_read_ends();
  std::vector<std::uint32_t> count_uses();  // By root.
  bool may_be_link(const BuildStep& step) const;
  bool continues(const BuildStep& before, const BuildStep& step, const std::vector<std::uint32_t>& uses);
  BuildStep joined(std::size_t begin, std::size_t end);
  struct Fusion {
    std::unique_ptr<Op> op;
    std::size_t end = 0;  // After the last step it stands for.
    std::vector<ValueId> in;
  };
  using Uses = std::vector<std::uint32_t>;  // By root: how many steps and fetches use it.
  using MakeBiased = FunctionRef<std::unique_ptr<Op>(Activation activation, const TensorSpec& bias)>;
  bool is_product(const BuildStep& step, MatmulOptions options) const;
  std::size_t taken_by(std::size_t step, const Uses& uses);
  Fusion biased_from(std::size_t begin, const Uses& uses, MakeBiased make);
  Fusion dense_from(std::size_t begin, const Uses& uses);
  Fusion convolution_from(std::size_t begin, const Uses& uses);
  Fusion attention_from(std::size_t begin, const Uses& uses);
  Fusion fusion_from(std::size_t begin, const Uses& uses);
  void fuse_layers();
  void forget(ValueId id);
  void fuse_chains();
  void choose_order();
  void change_early();
  void reorder();
  void find_lifetimes();
  void share_bytes();
  bool may_overwrite(const BuildStep& step, std::size_t input, std::int64_t position);
  void place_results();
  void place_buffers();
  void emit();
  void emit_bases();
  std::vector<bool> guarded_variables();
  Program::View view_of(ValueId id);
  void emit_random();
  void emit_seeds();
  void emit_effects();
  void emit_results();
  std::vector<std::vector<std::uint32_t>> stages_of_roots();
  void describe_plan(const std::vector<std::uint32_t>& planned, std::size_t lower_bound);
  void describe_values(const std::vector<std::uint32_t>& planned);
  void describe_phases();

  Program& program_;
  Rewritten rewritten_;
  const GraphState& graph_;
  const Passes passes_;
  std::vector<std::uint32_t> first_;  // The first output of each node, among all.
  std::vector<Value> values_;
  std::vector<Root> roots_;
  std::vector<BuildStep> steps_;
  std::vector<std::uint32_t> variable_roots_;        // By number in the graph.
  std::vector<std::uint32_t> read_end_;              // By output: the last node that reads it, views included.
  std::vector<std::vector<std::uint32_t>> changes_;  // By variable: the nodes that change it.
  std::vector<Device*> devices_;                     // Of the extents.
};

}  // namespace plimsoll
