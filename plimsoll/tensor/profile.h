// profile(f): what a piece of work costs: bytes, tensors, its peak, and every kernel it ran. time(f): how long it
// takes.
//
//   auto info = profile([&] { return relu(matmul(x, w)).sum(); });
//   info.relative_peak_bytes;            // the most it used beyond what was there before
//   info.kernels[0].name;                // "MatMul"
//   info.fallbacks();                    // ran on the host because their device has no kernel for them
//   info.result;                         // what the function returned, when it returns something
//
// Counts are those of memory(): exact when no other thread makes or drops tensors meanwhile; kernels are those that the
// calling thread started. The peak is the true high-water mark, including kernels' scratch and memory allocated without
// a kernel. Operations that only make a view run no kernel. Profiles nest: an outer one sees what the inner ones saw.
// When f throws, profiling ends and the exception propagates.
// Cost: about 200 ns per kernel.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/shape.h"
#include "plimsoll/tensor/interceptor.h"

namespace plimsoll {

struct ProfiledKernel {
  std::string name;
  std::vector<Shape> input_shapes;
  std::vector<Shape> output_shapes;
  std::size_t bytes_added = 0;  // By its outputs.
  std::size_t total_bytes = 0;  // memory().num_bytes while it ran, including its scratch.
  std::int64_t nanoseconds = 0;
  bool is_fallback = false;  // Its device has no kernel for it, so it ran on the host, on copies (docs/devices.md).
};

struct ProfileInfo {
  std::int64_t new_bytes = 0;  // The change; negative when there are fewer.
  std::int64_t new_tensors = 0;
  std::size_t peak_bytes = 0;           // Largest memory().num_bytes at any moment, including what was there before.
  std::size_t relative_peak_bytes = 0;  // Without what was there before.
  std::vector<ProfiledKernel> kernels;  // In the order they ran.

  PLIMSOLL_API std::vector<std::string> kernel_names() const;         // Each once, in the order they first ran.
  PLIMSOLL_API std::map<std::string, std::size_t> fallbacks() const;  // Ops that ran on the host instead.
};

template <class T>
struct ProfileResult : ProfileInfo {
  T result;
};

struct TimeInfo {
  double wall_ms = 0;
  double kernel_ms = 0;  // Of that, time inside kernels.
};

// Observes the calling thread while it lives.
class PLIMSOLL_API Profiler final : public OpObserver {
 public:
  Profiler();
  ~Profiler() override;
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  ProfileInfo finish();  // Call once.

 private:
  void ran(const Op& op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs,
           std::int64_t nanoseconds) override;

  OpObserver* const outer_;
  ProfileInfo info_;
  std::size_t start_bytes_, start_tensors_;
  std::int64_t outer_most_bytes_, thread_bytes_;  // The thread's own count: the most before, and now.
  std::uint64_t fallbacks_;                       // The thread's fallbacks until now.
};

// The same, for time only.
class PLIMSOLL_API KernelTimer final : public OpObserver {
 public:
  KernelTimer();
  ~KernelTimer() override;
  KernelTimer(const KernelTimer&) = delete;
  KernelTimer& operator=(const KernelTimer&) = delete;

  std::int64_t ns() const noexcept { return ns_; }

 private:
  void ran(const Op& op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs,
           std::int64_t nanoseconds) override;

  OpObserver* const outer_;
  std::int64_t ns_ = 0;
};

template <std::invocable F>
auto profile(F&& f) {
  using Result = std::remove_cvref_t<std::invoke_result_t<F>>;
  Profiler profiler;
  if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
    std::forward<F>(f)();
    return profiler.finish();
  } else {
    Result result = std::forward<F>(f)();
    return ProfileResult<Result>{profiler.finish(), std::move(result)};
  }
}

template <std::invocable F>
TimeInfo time(F&& f) {
  const Stopwatch watch;
  const KernelTimer timer;
  static_cast<void>(std::forward<F>(f)());
  return {.wall_ms = static_cast<double>(watch.ns()) * 1e-6, .kernel_ms = static_cast<double>(timer.ns()) * 1e-6};
}

}  // namespace plimsoll
