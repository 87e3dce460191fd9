// Graph: operations that are written down instead of run, to be run by sessions as often as wanted.
//
//   Graph g;
//   Tensor x, y;
//   {
//     GraphScope in(g);                                     // from here operations become nodes
//     NameScope scope("Input");
//     x = placeholder(f32, {-1, 4}, "x");                   // node "Input/x"; -1: a size that each run chooses
//     Variable w(random_normal({4, 3}), {.name = "w"});     // one value in each session
//     y = relu(matmul(x, w));                               // symbolic: y.name() is the node's name, it has no
//     elements
//   }
//   Session session(g);
//
// A Graph is a shared handle: copies are the same graph. Symbolic tensors refer to their graph weakly, and say so when
// it is gone; any operation on one adds a node to its graph. Nodes are never taken out; finalize() ends the adding.
// Names are unique: "add", "add_1", ... Thread safety: any thread; nodes are added one at a time. Cost: about a
// microsecond for each node.
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

  std::size_t size() const;  // Nodes.
  void finalize() const;     // From now on adding a node throws FailedPrecondition.
  bool is_finalized() const;
  std::string to_dot() const;  // For Graphviz.
  // A line for each node: its name, operation and device, and the one it was asked for when there is none such.
  std::string placement() const;

  friend bool operator==(const Graph& a, const Graph& b) noexcept { return a.state_ == b.state_; }
  const std::shared_ptr<GraphState>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<GraphState> state_;
};

// While it lives, the thread's operations become nodes of the graph, which is the thread's default meanwhile. Nodes
// carry the place where the innermost scope begins, for reports.
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

// The graph of the innermost GraphScope of this thread, else the one all share.
PLIMSOLL_API Graph default_graph();
// The one all share becomes a new, empty one; the old one goes with its last user. Throws FailedPrecondition inside of
// a GraphScope.
PLIMSOLL_API void reset_default_graph();

// A value that each run is fed with. Unknown sizes (-1) fit any. Goes to default_graph().
PLIMSOLL_API Tensor placeholder(DType dtype, const Shape& shape, std::string_view name = "placeholder");

// A node that does nothing, after all of these; running it runs them. A session gives an empty handle for it.
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

// While it lives, nodes that this thread adds to a graph or trace are asked for this device ("CPU:1"): placeholders,
// constants and variables are made there, and operands of operations moved there. Scopes nest; the innermost counts.
//
//   PlacementScope on("GPU:0");                         // soft: without such a device nodes go where they would anyway
//   PlacementScope on("CPU:1", Placement::hard);        // adding a node throws NotFound where there is none
//
// Graph::placement() tells what became of it. Throws InvalidArgument for text that is no device's name.
enum class Placement : unsigned char { soft, hard };
class PLIMSOLL_API PlacementScope {
 public:
  explicit PlacementScope(std::string_view device, Placement placement = Placement::soft);
  PlacementScope() noexcept;  // Asks for no device, whatever scopes are around.
  ~PlacementScope();
  PlacementScope(const PlacementScope&) = delete;
  PlacementScope& operator=(const PlacementScope&) = delete;

  static const PlacementScope* current() noexcept;  // nullptr where no device is asked for.
  const char* name() const noexcept { return name_; }
  Device* device() const noexcept { return device_; }  // nullptr: there is none such.
  bool is_soft() const noexcept { return placement_ == Placement::soft; }

 private:
  const char* name_ = "";  // Interned.
  Device* device_ = nullptr;
  Placement placement_ = Placement::soft;
  std::optional<DeviceScope> inside_;
  const PlacementScope* outer_;
};

// The gradients of a symbolic target's sum with respect to symbolic sources or variables, as nodes; an empty handle for
// what it does not depend on. Throws InvalidArgument for a target that is not of floats, or not symbolic.
PLIMSOLL_API std::vector<Tensor> gradients(const Tensor& target, const std::vector<Tensor>& sources);
PLIMSOLL_API std::vector<Tensor> gradients(const Tensor& target, const std::vector<Variable>& sources);
PLIMSOLL_API std::vector<Tensor> gradients(const Tensor& target, std::initializer_list<Tensor> sources);

}  // namespace plimsoll
