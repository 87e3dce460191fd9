// Variable: a tensor's value that can be changed; a model's parameter.
//
//   Variable w(random_normal({4, 3}), {.name = "kernel"});
//   Tensor y = matmul(x, w);             // converts to its value
//   w.assign_sub(gradient * 0.1f);       // in place when nobody else holds the value
//
// value() is a snapshot: later changes do not affect it, because assign copies on write when the bytes are held
// elsewhere. A variable counts as one tensor, survives every tidy, and ends with its last handle or dispose(). Tapes
// watch trainable variables automatically; all snapshots of a variable are one source for gradients.
// A variable made while a graph is being built belongs to that graph and has a value in each session; its value() is a
// node. The same is true for an eager variable there: the graph reads the variable itself when it runs.
// Copies of the handle are the same variable. assign* throw InvalidArgument for another shape, dtype or device and
// Disposed after dispose(); then nothing has changed.
// Thread safety: any thread; assignments are ordered by a lock.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/label.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {
namespace internal {
class Device;
}  // namespace internal

struct VariableOptions {
  std::string name = {};  // Default: "variable", numbered.
  bool trainable = true;
};

class Assigned;

// A variable that allocates its bytes at first use, with every element set to this value.
struct LateVariable {
  const Shape& shape;
  DType dtype;
  Device& device;
  double value = 0;
  Category category = Category::kOptimizer;
  const char* op = "variable";  // In reports. Text that lives as long as the program.
};

class PLIMSOLL_API Variable {
 public:
  // Shares the bytes of `initial` until one of the two changes.
  explicit Variable(const Tensor& initial, const VariableOptions& options = {});
  Variable(const LateVariable& late, const std::string& name);  // Not trainable. Also while a function is traced.
  Variable(const Variable&) = default;                          // Moving copies too: a handle always has its variable.
  Variable& operator=(const Variable&) = default;

  Tensor value() const;     // Throws Disposed.
  operator Tensor() const;  // The value; a graph that uses it reads the variable each time it runs.

  // In a graph under construction these are nodes, which take effect when they run; the result converts to that node.
  Assigned assign(const Tensor& value) const;
  Assigned assign_add(const Tensor& value) const;
  Assigned assign_sub(const Tensor& value) const;

  const Shape& shape() const noexcept;
  DType dtype() const noexcept;
  std::size_t size() const noexcept { return shape().size(); }
  std::size_t nbytes() const noexcept { return size() * size_of(dtype()); }
  const std::string& name() const noexcept;
  bool trainable() const noexcept;
  std::string device() const;
  std::uint64_t id() const noexcept;

  void dispose() const noexcept;  // Acts on all copies; a second call does nothing.
  bool is_disposed() const noexcept;

  // For optimizers and loaders: the bytes, owned by the variable alone, to be changed in place. Copies first when they
  // are held elsewhere (OutOfMemory: nothing has changed).
  TensorView writable_value() const;

  // For graphs: whether it belongs to one; then its number there.
  std::optional<std::uint32_t> graph_index() const noexcept;
  StorageRef share_bytes() const;  // The bytes of an eager variable as they are now. Throws Disposed.
  // Keeps others from changing or reading the variable; own_bytes() then acts as writable_value().
  [[nodiscard]] std::unique_lock<std::mutex> lock() const;
  Storage& own_bytes() const;
  // The eager variable with this id, while it lives.
  static std::optional<Variable> find(std::uint64_t id);

 private:
  struct State;
  class Registry;
  explicit Variable(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
  Tensor snapshot(int flags) const;
  Assigned update(const Tensor& value, int kind) const;

  std::shared_ptr<State> state_;
};

// The result of an assignment: the variable's new value, if someone asks for it.
class PLIMSOLL_API Assigned {
 public:
  operator Tensor() const { return node_.is_empty_handle() ? variable_.value() : node_; }

 private:
  friend class Variable;
  explicit Assigned(const Variable& variable, Tensor node = {}) : variable_(variable), node_(std::move(node)) {}

  Variable variable_;
  Tensor node_;  // Symbolic.
};

// A tidy leaves variables alone.
template <class F>
void visit_tensors(const Variable&, F&&) {}

}  // namespace plimsoll
