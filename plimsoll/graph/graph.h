// Graph: operations that are recorded instead of run, for sessions to run any number of times.
//
//   Graph g;
//   Tensor x, y;
//   {
//     GraphScope in(g);                                     // from here on operations become nodes
//     NameScope scope("Input");
//     x = placeholder(f32, {-1, 4}, "x");                   // node "Input/x"; -1: a size that each run chooses
//     Variable w(random_normal({4, 3}), {.name = "w"});     // one value in each session
//     y = relu(matmul(x, w));                               // symbolic: y.name() is the node's name, it has no
//     elements
//   }
//   Session session(g);
//
// A Graph is a shared handle: copies are the same graph. Symbolic tensors refer to their graph weakly, and using one
// after the graph is gone throws; any operation on one adds a node to its graph. Nodes are never removed; finalize()
// refuses new ones. Names are unique: "add", "add_1", ... Thread safety: any thread; nodes are added one at a time.
// Cost: about a microsecond per node.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/call_site.h"
#include "plimsoll/base/dtype.h"
#include "plimsoll/device/device_scope.h"
#include "plimsoll/ops/variable.h"
#include "plimsoll/tensor/tensor.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll {
namespace internal {
class Device;
class GraphState;
}  // namespace internal

class PLIMSOLL_API Graph {
 public:
  Graph();

  std::size_t size() const;  // The number of nodes.
  void finalize() const;     // From now on adding a node throws FailedPrecondition.
  bool is_finalized() const;
  std::string to_dot() const;  // For Graphviz.
  // A line per node: its name, operation and device, and the requested device when that does not exist.
  std::string placement() const;

  friend bool operator==(const Graph& a, const Graph& b) noexcept { return a.state_ == b.state_; }
  const std::shared_ptr<GraphState>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<GraphState> state_;
};

// While it lives, the thread's operations become nodes of the graph, which is the thread's default meanwhile. Nodes
// record the place where the innermost scope starts, for reports.
class PLIMSOLL_API GraphScope {
 public:
  explicit GraphScope(const Graph& graph, CallSite site = CallSite::here());
  ~GraphScope();
  GraphScope(const GraphScope&) = delete;
  GraphScope& operator=(const GraphScope&) = delete;

  const Graph& graph() const noexcept { return graph_; }

 private:
  const Graph graph_;
  const GraphScope* const outer_;
  const TraceWith trace_;
  const std::uint32_t site_before_;
};

// The graph of this thread's innermost GraphScope, otherwise the shared one.
PLIMSOLL_API Graph default_graph();
// Replaces the shared graph by a new, empty one; the old one is freed with its last user. Throws FailedPrecondition
// inside a GraphScope.
PLIMSOLL_API void reset_default_graph();

// A value that each run must feed. Unknown sizes (-1) match any. Added to default_graph().
PLIMSOLL_API Tensor placeholder(DType dtype, const Shape& shape, std::string_view name = "placeholder");

// A node that does nothing after all of these; running it runs them. A session returns an empty handle for it.
PLIMSOLL_API Tensor group(const std::vector<Tensor>& nodes, std::string_view name = "group");

// While it lives, nodes that are added run after these.
class PLIMSOLL_API ControlDependencies {
 public:
  explicit ControlDependencies(const std::vector<Tensor>& nodes);
  ~ControlDependencies();
  ControlDependencies(const ControlDependencies&) = delete;
  ControlDependencies& operator=(const ControlDependencies&) = delete;

 private:
  std::shared_ptr<GraphState> graph_;
  std::size_t added_ = 0;
};

// While it lives, nodes that this thread adds to a graph or trace are placed on this device ("CPU:1"): placeholders,
// constants and variables are made there, and operands of operations moved there. Scopes nest; the innermost counts.
//
//   PlacementScope on("GPU:0");                         // soft: without such a device, nodes are placed as usual
//   PlacementScope on("CPU:1", Placement::hard);        // hard: adding a node throws NotFound without such a device
//
// Graph::placement() reports the outcome. Throws InvalidArgument for text that is not a device name.
enum class Placement : unsigned char { soft, hard };
class PLIMSOLL_API PlacementScope {
 public:
  explicit PlacementScope(std::string_view device, Placement placement = Placement::soft);
  PlacementScope() noexcept;  // Requests no device, whatever the enclosing scopes say.
  ~PlacementScope();
  PlacementScope(const PlacementScope&) = delete;
  PlacementScope& operator=(const PlacementScope&) = delete;

  static const PlacementScope* current() noexcept;  // nullptr when no device is requested.
  const char* name() const noexcept { return name_; }
  Device* device() const noexcept { return device_; }  // nullptr: it does not exist.
  bool is_soft() const noexcept { return placement_ == Placement::soft; }

 private:
  const char* name_ = "";  // Interned.
  Device* device_ = nullptr;
  Placement placement_ = Placement::soft;
  std::optional<DeviceScope> inside_;
  const PlacementScope* outer_;
};

// The gradients of a symbolic target's sum with respect to symbolic sources or variables, as nodes; an empty handle for
// those it does not depend on. Throws InvalidArgument for a target that does not have a float dtype, or is not
// symbolic.
PLIMSOLL_API std::vector<Tensor> gradients(const Tensor& target, const std::vector<Tensor>& sources);
PLIMSOLL_API std::vector<Tensor> gradients(const Tensor& target, const std::vector<Variable>& sources);
PLIMSOLL_API std::vector<Tensor> gradients(const Tensor& target, std::initializer_list<Tensor> sources);

}  // namespace plimsoll
