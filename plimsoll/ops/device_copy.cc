// to, clone: copies, to another device or on the same.
#include <string>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/graph_variables.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/index_check.h"
#include "plimsoll/tensor/interceptor.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll {
namespace {

class Clone final : public OpOf<Clone> {
 public:
  const char* name() const noexcept override { return "clone"; }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(0), in.dtype(0)); }
  void run(const OpRun& run) const noexcept override { copy(run.in[0], run.out[0]); }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    return launch_copy(queue, run.in[0], run.out[0]);
  }
  void gradient(GradientContext& c) const override { c.give(0, c.grad()); }
};

// The only op whose output is on another device than its input; it records the input's device to send the gradient
// back.
class DeviceCopy final : public OpOf<DeviceCopy> {
 public:
  explicit DeviceCopy(std::string from) : from_(std::move(from)) {}
  const char* name() const noexcept override { return "to"; }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(0), in.dtype(0)); }
  void run(const OpRun& run) const noexcept override { copy(run.in[0], run.out[0]); }
  void gradient(GradientContext& c) const override { c.give(0, c.grad().to(from_)); }
  bool operator==(const DeviceCopy&) const = default;

 private:
  std::string from_;
};

}  // namespace

Tensor Tensor::to(std::string_view device) const {
  if (is_empty_handle() || is_disposed()) refuse_disposed(*this, "to", "x");
  Device &from = device_of(*this), &target = Runtime::instance().device(device);
  if (&from == &target) return *this;
  const DeviceCopy op(from.name());
  const ThreadContext& context = ThreadContext::current();
  const Tensor* const inputs[] = {this};
  if (const std::shared_ptr<Tracer> tracer = is_symbolic(*this) ? tracer_of(*this) : tracer_for(inputs)) {
    Tensor moved = static_cast<GraphVariables&>(*tracer).move(op, *this, target);
    if (context.interceptor) context.interceptor->executed(op, inputs, {&moved, 1});
    return moved;
  }
  settle_checks(from);
  BytesLock lock;
  const ConstTensorView in = view(lock);
  Tensor result = make_tensor({.op = op.name(), .category = context.category}, shape(), dtype(), target);
  const TensorView out = writable(result);
  const std::int64_t start = context.observer ? monotonic_ns() : 0;
  if (from.is_host() && target.is_host())
    op.run({{&in, 1}, {&out, 1}, {}});
  else
    copy_between(from, in, target, out);
  if (context.observer) context.observer->ran(op, inputs, {&result, 1}, monotonic_ns() - start);
  if (context.interceptor) context.interceptor->executed(op, inputs, {&result, 1});
  return result;
}

Tensor Tensor::clone() const { return execute(Clone(), *this); }

}  // namespace plimsoll
