// Variable: a tensor's value that can be changed; a model's parameter.
//
//   Variable w(random_normal({4, 3}), {.name = "kernel"});
//   Tensor y = matmul(x, w);             // converts to its value
//   w.assign_sub(gradient * 0.1f);       // in place when nobody else has the value
//
// value() is a snapshot: later changes do not reach it, since assign copies on write when the bytes are held elsewhere.
// A variable counts as one tensor, survives every tidy, and ends with its last handle or dispose(). Tapes watch
// trainable ones by themselves; all its snapshots are one source to gradients.
// Copies of the handle are the same variable. assign* throw InvalidArgument for another shape, dtype or device and
// Disposed after dispose(); then nothing has changed.
// Thread safety: any thread; assignments are ordered by a lock.
#pragma once

#include <memory>
#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct VariableOptions {
  std::string name = {};  // Left out: "variable", numbered.
  bool trainable = true;
};

class PLIMSOLL_API Variable {
 public:
  // Shares the bytes of `initial` until one of the two changes.
  explicit Variable(const Tensor& initial, const VariableOptions& options = {});

  Tensor value() const;  // Throws Disposed.
  operator Tensor() const { return value(); }

  void assign(const Tensor& value) const;
  void assign_add(const Tensor& value) const;
  void assign_sub(const Tensor& value) const;

  const Shape& shape() const noexcept;
  DType dtype() const noexcept;
  std::size_t size() const noexcept { return shape().size(); }
  std::size_t nbytes() const noexcept { return size() * size_of(dtype()); }
  const std::string& name() const noexcept;
  bool trainable() const noexcept;
  std::string device() const;
  std::uint64_t id() const noexcept;

  void dispose() const noexcept;  // Through all copies; a second time does nothing.
  bool is_disposed() const noexcept;

  // For optimizers and loaders: the bytes, owned by the variable alone, to be changed in place. Copies first when they
  // are held elsewhere (OutOfMemory: nothing has changed).
  TensorView writable_value() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// A tidy leaves variables alone.
template <class F>
void visit_tensors(const Variable&, F&&) {}

}  // namespace plimsoll
