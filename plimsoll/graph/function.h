// function: traces a C++ callable once for each kind of arguments, and from then on runs the planned trace.
//
//   auto f = function([&](Tensor x) { return relu(matmul(x, w)) + x; });
//   Tensor y = f(x);                     // traced: the callable is called with symbolic tensors
//   y = f(x);                            // runs the plan; the callable is not called
//   f.memory_plan(x).peak_bytes;         // the memory of a call, known without running it
//
// A trace is kept for each combination of shapes, dtypes, devices, structure and plain values of the arguments, within
// a limit in bytes; the least recently used is dropped first. Arguments and results may be tensors, trees, containers,
// tuples and aggregates of them, and plain values. The function uses the current values of variables when it runs;
// tensors from outside are constants. Changes of variables happen at each call, in order; so do draws of random
// numbers. Everything else in the callable happens only while it is traced: to branch on a value use cond, to loop over
// values use while_loop.
// Results are the same as when running the callable directly, to the bit. Functions may be called inside functions,
// under tapes (gradients flow through them) and have tapes inside. Throws what the callable throws, Disposed for
// arguments, OutOfMemory before anything has run. Thread safety: any thread, if the callable allows it while it is
// traced. Copies of a function are the same function. Cost of a call: about 200 ns in addition to the operations.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/function_ref.h"
#include "plimsoll/graph/call_signature.h"
#include "plimsoll/graph/memory_plan.h"
#include "plimsoll/graph/passes.h"
#include "plimsoll/graph/replace_tensors.h"

namespace plimsoll {

struct FunctionOptions {
  // Bytes that a call may use, as part of the BudgetScope it is made in. Below the natural peak values are recomputed,
  // down to memory_plan(...).smallest_bytes; the results are the same, to the bit.
  std::optional<std::size_t> budget = {};
  std::string name = {};  // In reports and warnings.
  Passes passes = {};
  // A directory on a disk where calls that would not fit otherwise may also store values temporarily, in a file without
  // a name. Needs a budget; "": none.
  std::string spill = {};
};

// What all functions share, whatever their callable.
class PLIMSOLL_API FunctionCore {
 public:
  struct Trace;
  explicit FunctionCore(FunctionOptions options);
  ~FunctionCore();
  FunctionCore(const FunctionCore&) = delete;
  FunctionCore& operator=(const FunctionCore&) = delete;

  // Called with symbolic tensors in place of the arguments' tensors; returns the results' tensors and an object to keep
  // with the trace.
  struct Traced {
    std::vector<Tensor> results;
    std::shared_ptr<const void> kept;
  };
  using Body = FunctionRef<Traced(std::span<const Tensor> arguments)>;

  // The trace for these arguments; made if necessary.
  std::shared_ptr<Trace> trace_for(const CallSignature& arguments, Body body);
  void call(Trace& trace, const CallSignature& arguments, std::span<Tensor> results);

  static std::size_t num_results(const Trace& trace) noexcept;
  static const void* kept(const Trace& trace) noexcept;
  static MemoryPlan memory_plan(Trace& trace);
  std::size_t trace_count() const noexcept;
  std::size_t cached_traces() const;
  std::size_t cached_bytes() const;
  // Whether the thread is building a graph: a function then becomes part of it.
  static bool is_tracing() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

template <class F>
class Function {
 public:
  Function(F callable, FunctionOptions options)
      : callable_(std::make_shared<F>(std::move(callable))),
        core_(std::make_shared<FunctionCore>(std::move(options))) {}

  template <class... Args>
  auto operator()(const Args&... args) const {
    using Result = std::decay_t<std::invoke_result_t<F&, std::decay_t<Args>...>>;
    CallSignature signature;
    (signature.add(args), ...);
    if (FunctionCore::is_tracing() || signature.has_symbolic()) return Result((*callable_)(args...));
    const std::shared_ptr<FunctionCore::Trace> trace = trace_for<Result>(signature, args...);
    if constexpr (std::is_void_v<Result>) {
      core_->call(*trace, signature, {});
    } else if constexpr (std::is_same_v<Result, Tensor>) {
      Tensor result;
      core_->call(*trace, signature, {&result, 1});
      return result;
    } else {
      std::vector<Tensor> results(FunctionCore::num_results(*trace));
      core_->call(*trace, signature, results);
      Result result = *static_cast<const Result*>(FunctionCore::kept(*trace));
      replace_tensors(result, results);
      return result;
    }
  }

  // The memory of a call with these arguments; traces it if necessary, and runs nothing.
  template <class... Args>
  MemoryPlan memory_plan(const Args&... args) const {
    using Result = std::decay_t<std::invoke_result_t<F&, std::decay_t<Args>...>>;
    CallSignature signature;
    (signature.add(args), ...);
    return FunctionCore::memory_plan(*trace_for<Result>(signature, args...));
  }

  std::size_t trace_count() const noexcept { return core_->trace_count(); }  // Traces made so far.
  std::size_t cached_traces() const { return core_->cached_traces(); }       // Traces currently kept.
  std::size_t cached_bytes() const { return core_->cached_bytes(); }         // Their size.

 private:
  template <class Result, class... Args>
  std::shared_ptr<FunctionCore::Trace> trace_for(const CallSignature& signature, const Args&... args) const {
    return core_->trace_for(signature, [&](std::span<const Tensor> symbolic) {
      std::tuple<std::decay_t<const Args>...> copies(args...);
      replace_tensors(copies, symbolic);
      FunctionCore::Traced traced;
      if constexpr (std::is_void_v<Result>) {
        std::apply(*callable_, copies);
      } else {
        auto result = std::make_shared<Result>(std::apply(*callable_, copies));
        visit_all_tensors(*result, [&](const Tensor& tensor) { traced.results.push_back(tensor); });
        traced.kept = std::move(result);
      }
      return traced;
    });
  }

  std::shared_ptr<F> callable_;
  std::shared_ptr<FunctionCore> core_;
};

template <class F>
Function<std::decay_t<F>> function(F&& callable, FunctionOptions options = {}) {
  return Function<std::decay_t<F>>(std::forward<F>(callable), std::move(options));
}

}  // namespace plimsoll
