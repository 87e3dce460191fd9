// Node: one entry of a graph's list: an op or one of the few things that are no op, with where its operands come from.
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
  kAssign,       // Changes a variable; inputs: the value. Gives the new value.
  kUpdate,       // An op that changes variables in place: its outputs are their new values.
  kGroup,        // Nothing, after the nodes it waits for.
  kGradients,    // Of input 0 with respect to the others; worked out when all sizes are known.
};

struct NodeOutput {
  TensorSpec spec;
  std::uint64_t id = 0;  // Of the symbolic tensor; reads of one variable have the same.
};

struct Node {
  NodeKind kind = NodeKind::kOp;
  AssignKind assign = AssignKind::kSet;
  const Op* op = nullptr;              // Of kOp and kUpdate; lies in the graph.
  std::uint32_t variable = 0;          // Of kRead and kAssign.
  std::vector<std::uint32_t> updates;  // Of kUpdate: the variable of each output.
  std::vector<ValueId> inputs;
  std::vector<std::uint32_t> controls;  // Nodes that come first.
  const char* wanted = nullptr;         // The device it was asked for, when there is none such; interned.
  std::vector<NodeOutput> outputs;
  Storage* constant = nullptr;  // Of kConstant, from `offset` on; the graph holds it.
  std::size_t offset = 0;
  bool is_trainable = false;                   // Of a placeholder: it stands for the value of a trainable variable.
  std::string name;                            // Empty in graphs that nobody sees.
  Category category = Category::kActivations;  // Of what it makes.
  const char* scope = "";                      // The name scope it was added in: interned.
  std::uint32_t site = 0;                      // Where that begins (call_site.h).
  Device* device = nullptr;
};

// What a node is called in reports: its op's name, or what it is.
inline const char* kind_name(const Node& node) noexcept {
  constexpr const char* kNames[] = {"op",     "placeholder", "constant", "variable",
                                    "assign", "update",      "group",    "gradients"};
  return node.op ? node.op->name() : kNames[static_cast<std::size_t>(node.kind)];
}

// A variable as a graph knows it: declared in it, or eager and captured.
struct NodeVariable {
  std::optional<Variable> eager;
  std::string name;
  TensorSpec spec;
  std::uint64_t id = 0;
  bool trainable = false;
  std::uint32_t declared_number = 0;  // In the graph that declared it; copies keep it.
  ValueId initial;                    // Of a declared one.
  ValueId last_read;                  // The node to read it by, until it is changed.
  Device* device = nullptr;
};

}  // namespace plimsoll::internal
