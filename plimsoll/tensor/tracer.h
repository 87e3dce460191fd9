// Tracer: where operations become nodes instead of running; and symbolic tensors, the handles to what nodes will give.
//
// While ThreadContext::tracer is set, every operation of the thread goes to it; without one, an operation that has a
// symbolic operand goes to the tracer this belongs to. A symbolic tensor has shape (sizes may be unknown), dtype,
// device and name, but no elements: reading them throws FailedPrecondition. It is counted by nobody and refers to its
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

  // The symbolic outputs of a new node. Throws as the op's infer() does, and FailedPrecondition when nodes can no
  // longer be added or an operand is another's.
  virtual std::vector<Tensor> add(const Op& op, std::span<const Tensor* const> inputs) = 0;
  // A node that gives the elements of `value`; `name` may be empty.
  virtual Tensor add_constant(const Tensor& value, std::string_view name) = 0;
};

// What a symbolic tensor's storage says of it.
struct SymbolicValue {
  std::weak_ptr<Tracer> tracer;
  std::uint32_t node = 0;
  std::uint32_t output = 0;
};

PLIMSOLL_API bool is_symbolic(const Tensor& tensor) noexcept;
PLIMSOLL_API const SymbolicValue& symbolic_value(const Tensor& tensor);  // Requires a symbolic one.
// Throws FailedPrecondition when it is gone.
PLIMSOLL_API std::shared_ptr<Tracer> tracer_of(const Tensor& tensor);
// The tracer an operation on these goes to: the thread's, or that of the first symbolic operand; nullptr when it runs.
PLIMSOLL_API std::shared_ptr<Tracer> tracer_for(std::span<const Tensor* const> inputs);

// What a new symbolic tensor is. `id` 0: a new one.
struct SymbolicSpec {
  const Shape& shape;
  DType dtype;
  const char* op;
  std::uint64_t id = 0;
  std::uint8_t flags = 0;
};
PLIMSOLL_API Tensor make_symbolic(SymbolicValue value, Device& device, const SymbolicSpec& spec);
// On the storage of another symbolic tensor, which says where it belongs.
PLIMSOLL_API Tensor make_symbolic_on(StorageRef storage, const SymbolicSpec& spec);

// While it lives, the thread's operations become nodes of `tracer`, or run when it is nullptr; no tape from outside
// sees them.
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
