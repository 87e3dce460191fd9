// Node: one entry of a graph's list: an op, or one of the few things that are not ops, with the sources of its
// operands.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/base/shape.h"
#include "plimsoll/ops/graph_variables.h"
#include "plimsoll/tensor/op.h"
#include "plimsoll/tensor/storage.h"

namespace plimsoll::internal {

inline constexpr std::uint32_t kNoNode = UINT32_MAX;

// An output of a node.
struct ValueId {
  std::uint32_t node = kNoNode;
  std::uint32_t output = 0;
  friend bool operator==(const ValueId&, const ValueId&) = default;
};

enum class NodeKind : std::uint8_t {
  kOp,
  kPlaceholder,  // A value from outside.
  kConstant,     // Elements that do not change.
  kRead,         // The value of a variable.
  kAssign,       // Changes a variable; inputs: the value. Output: the new value.
  kUpdate,       // An op that changes variables in place: its outputs are their new values.
  kGroup,        // Does nothing, after the nodes it waits for.
  kGradients,    // Of input 0 with respect to the others; expanded when all sizes are known.
};

struct NodeOutput {
  TensorSpec spec;
  std::uint64_t id = 0;  // Id of the symbolic tensor; reads of one variable share it.
};

struct Node {
  NodeKind kind = NodeKind::kOp;
  AssignKind assign = AssignKind::kSet;
  const Op* op = nullptr;              // For kOp and kUpdate; stored in the graph.
  std::uint32_t variable = 0;          // For kRead and kAssign.
  std::vector<std::uint32_t> updates;  // For kUpdate: the variable of each output.
  std::vector<ValueId> inputs;
  std::vector<std::uint32_t> controls;  // Nodes that come first.
  const char* wanted = nullptr;         // The requested device when it does not exist; interned.
  std::vector<NodeOutput> outputs;
  Storage* constant = nullptr;  // For kConstant, starting at `offset`; the graph holds it.
  std::size_t offset = 0;
  bool is_trainable = false;                   // For a placeholder: it represents the value of a trainable variable.
  std::string name;                            // Empty in internal graphs.
  Category category = Category::kActivations;  // Of what it makes.
  const char* scope = "";                      // The name scope it was added in: interned.
  std::uint32_t site = 0;                      // Where that starts (call_site.h).
  Device* device = nullptr;
};

// The name of a node in reports: its op's name, or its kind.
inline const char* kind_name(const Node& node) noexcept {
  constexpr const char* kNames[] = {"op",     "placeholder", "constant", "variable",
                                    "assign", "update",      "group",    "gradients"};
  return node.op ? node.op->name() : kNames[static_cast<std::size_t>(node.kind)];
}

// A variable in a graph: declared in it, or eager and captured.
struct NodeVariable {
  std::optional<Variable> eager;
  std::string name;
  TensorSpec spec;
  std::uint64_t id = 0;
  bool trainable = false;
  std::uint32_t declared_number = 0;  // In the graph that declared it; copies keep it.
  ValueId initial;                    // For a declared variable.
  ValueId last_read;                  // The node that reads it, until it is changed.
  Device* device = nullptr;
};

}  // namespace plimsoll::internal
