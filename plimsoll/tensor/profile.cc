#include "plimsoll/tensor/profile.h"

#include <algorithm>

#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/run_on.h"
#include "plimsoll/tensor/tensor_thread.h"

namespace plimsoll {

std::vector<std::string> ProfileInfo::kernel_names() const {
  std::vector<std::string> names;
  for (const ProfiledKernel& kernel : kernels)
    if (std::find(names.begin(), names.end(), kernel.name) == names.end()) names.push_back(kernel.name);
  return names;
}

std::map<std::string, std::size_t> ProfileInfo::fallbacks() const {
  std::map<std::string, std::size_t> counts;
  for (const ProfiledKernel& kernel : kernels)
    if (kernel.is_fallback) ++counts[kernel.name];
  return counts;
}

Profiler::Profiler() : outer_(std::exchange(ThreadContext::current().observer, this)) {
  TensorThread& thread = TensorThread::of(ThreadMemory::current());
  fallbacks_ = fallbacks_of_thread();
  const MemoryInfo start = memory();
  start_bytes_ = start.num_bytes;
  start_tensors_ = start.num_tensors;
  thread_bytes_ = thread.bytes.load(std::memory_order_relaxed);
  outer_most_bytes_ = std::exchange(thread.most_bytes, thread_bytes_);
}

Profiler::~Profiler() {
  ThreadContext::current().observer = outer_;
  TensorThread& thread = TensorThread::of(ThreadMemory::current());
  thread.most_bytes = std::max(thread.most_bytes, outer_most_bytes_);
}

void Profiler::ran(const Op& op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs,
                   std::int64_t nanoseconds) {
  ProfiledKernel kernel{.name = op.name(), .total_bytes = memory().num_bytes, .nanoseconds = nanoseconds};
  kernel.is_fallback = std::exchange(fallbacks_, fallbacks_of_thread()) != fallbacks_of_thread();
  for (const Tensor* input : inputs) kernel.input_shapes.push_back(input->shape());
  for (const Tensor& output : outputs) {
    kernel.output_shapes.push_back(output.shape());
    kernel.bytes_added += output.nbytes();
  }
  info_.kernels.push_back(std::move(kernel));
  if (outer_) outer_->ran(op, inputs, outputs, nanoseconds);
}

KernelTimer::KernelTimer() : outer_(std::exchange(ThreadContext::current().observer, this)) {}

KernelTimer::~KernelTimer() { ThreadContext::current().observer = outer_; }

void KernelTimer::ran(const Op& op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs,
                      std::int64_t nanoseconds) {
  ns_ += nanoseconds;
  if (outer_) outer_->ran(op, inputs, outputs, nanoseconds);
}

ProfileInfo Profiler::finish() {
  const MemoryInfo end = memory();
  const TensorThread& thread = TensorThread::of(ThreadMemory::current());
  info_.new_bytes = static_cast<std::int64_t>(end.num_bytes) - static_cast<std::int64_t>(start_bytes_);
  info_.new_tensors = static_cast<std::int64_t>(end.num_tensors) - static_cast<std::int64_t>(start_tensors_);
  info_.relative_peak_bytes = static_cast<std::size_t>(thread.most_bytes - thread_bytes_);
  info_.peak_bytes = start_bytes_ + info_.relative_peak_bytes;
  return std::move(info_);
}

}  // namespace plimsoll
