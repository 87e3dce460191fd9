// Tracer: turns operations into nodes instead of running them; and symbolic tensors, the handles to the results of
// nodes.
//
// While ThreadContext::tracer is set, every operation of the thread goes to it; without one, an operation with a
// symbolic operand goes to the tracer that operand belongs to. A symbolic tensor has a shape (sizes may be unknown),
// dtype, device and name, but no elements: reading them throws FailedPrecondition. It is not counted and refers to its
// tracer weakly.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/interceptor.h"
#include "plimsoll/tensor/op.h"
#include "plimsoll/tensor/thread_context.h"

namespace plimsoll {
namespace internal {
class Device;
}  // namespace internal

class PLIMSOLL_API Tracer : public std::enable_shared_from_this<Tracer> {
 public:
  Tracer() = default;
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;
  virtual ~Tracer();

  // Returns the symbolic outputs of a new node. Throws as the op's infer() does, and FailedPrecondition when nodes can
  // no longer be added or an operand belongs to another tracer.
  virtual std::vector<Tensor> add(const Op& op, std::span<const Tensor* const> inputs) = 0;
  // Adds a node with the elements of `value`; `name` may be empty.
  virtual Tensor add_constant(const Tensor& value, std::string_view name) = 0;
};

// What the storage of a symbolic tensor stores about it.
struct SymbolicValue {
  std::weak_ptr<Tracer> tracer;
  std::uint32_t node = 0;
  std::uint32_t output = 0;
};

PLIMSOLL_API bool is_symbolic(const Tensor& tensor) noexcept;
PLIMSOLL_API const SymbolicValue& symbolic_value(const Tensor& tensor);  // Requires a symbolic tensor.
// Throws FailedPrecondition when the tracer is gone.
PLIMSOLL_API std::shared_ptr<Tracer> tracer_of(const Tensor& tensor);
// The tracer for an operation on these: the thread's, or that of the first symbolic operand; nullptr: the operation
// runs.
PLIMSOLL_API std::shared_ptr<Tracer> tracer_for(std::span<const Tensor* const> inputs);

// The properties of a new symbolic tensor. `id` 0: a new id.
struct SymbolicSpec {
  const Shape& shape;
  DType dtype;
  const char* op;
  std::uint64_t id = 0;
  std::uint8_t flags = 0;
};
PLIMSOLL_API Tensor make_symbolic(SymbolicValue value, Device& device, const SymbolicSpec& spec);
// On the storage of another symbolic tensor, which determines where it belongs.
PLIMSOLL_API Tensor make_symbolic_on(StorageRef storage, const SymbolicSpec& spec);

// While it lives, the thread's operations become nodes of `tracer`, or run when it is nullptr; no outer tape sees them.
class PLIMSOLL_API TraceWith {
 public:
  explicit TraceWith(Tracer* tracer) noexcept;
  ~TraceWith();
  TraceWith(const TraceWith&) = delete;
  TraceWith& operator=(const TraceWith&) = delete;

 private:
  const ThreadContext before_;
};

}  // namespace plimsoll
