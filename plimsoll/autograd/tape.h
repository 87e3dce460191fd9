// GradientTape: records operations as they run and computes the gradients of their results.
//
//   GradientTape tape;
//   tape.watch(x);                                   // trainable variables are watched automatically
//   Tensor loss = square(matmul(x, w) - y).mean();
//   std::vector<Tensor> g = tape.gradient(loss, {x, w});
//
// It sees the operations of its thread from construction to destruction, and keeps for each the minimum that its
// gradient reads: buffers, not tensors, so disposing of an intermediate result or leaving a tidy does not affect it.
// gradient() frees each buffer as soon as it has been read, and everything when it is done or throws; a persistent tape
// keeps everything and can be used again. A result that is not a scalar counts by its sum. A result that does not
// depend on a source gives an empty handle (size() == 0).
// Tapes nest: an outer tape sees the operations of an inner tape's gradient, so
//   { GradientTape outer; outer.watch(x); { GradientTape inner; ...; d = inner.gradient(y, x); } dd = outer.gradient(d,
//   x); }
// gives second derivatives; a tape, persistent or not, does not see the operations of its own gradients.
// Thread safety: a tape belongs to the thread that made it; elsewhere watch(), gradient() and reset() throw
// FailedPrecondition, and operations are not seen. Cost: about 30 ns for each operation that depends on something
// watched.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/ops/variable.h"
#include "plimsoll/tensor/holder.h"
#include "plimsoll/tensor/interceptor.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {
namespace internal {
class TapeRecord;
}  // namespace internal

struct TapeOptions {
  bool persistent = false;  // gradient() may be called more than once.
};

struct ThreadContext;

class PLIMSOLL_API GradientTape final : public Interceptor, public Holder {
 public:
  explicit GradientTape(TapeOptions options = {});
  ~GradientTape() override;

  // Throws Disposed, and InvalidArgument for dtypes without gradients (integers, booleans).
  void watch(const Tensor& tensor);

  // d target / d source, with the source's shape and dtype. Throws FailedPrecondition for a second call on a tape that
  // is not persistent, InvalidArgument for a target that does not have a float dtype.
  Tensor gradient(const Tensor& target, const Tensor& source);
  std::vector<Tensor> gradient(const Tensor& target, std::initializer_list<Tensor> sources);
  std::vector<Tensor> gradient(const Tensor& target, std::span<const Tensor> sources);
  std::vector<Tensor> gradient(const Tensor& target, const std::vector<Tensor>& sources);
  std::vector<Tensor> gradient(const Tensor& target, const std::vector<Variable>& sources);

  void reset();  // Forgets everything it has recorded and watched.
  // Stops recording, as if the tape were destroyed, but gradient() still works; it may then be destroyed on any thread.
  // A second call does nothing. For code that ends the recording before the tape, as Python's `with` does. Throws as
  // watch() on another thread.
  void stop();

 private:
  void executed(const Op& op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs) override;
  bool watches(std::span<const Tensor* const> inputs) const override;
  std::string describe() const override;
  void visit_held(Visit f) const override;
  void require_own_thread(const char* where) const;
  bool leave() noexcept;  // False: it does not belong to this thread.

  const TapeOptions options_;
  const ThreadContext* const thread_;  // The thread that made it.
  std::unique_ptr<TapeRecord> record_;
  bool used_ = false;
  bool paused_ = false;
  bool stopped_ = false;
};

// While it lives, no tape sees the operations of its thread: for results that need no gradient.
//
//   { WithoutTapes unseen; log(accuracy(y, labels)); }
class PLIMSOLL_API WithoutTapes {
 public:
  WithoutTapes() noexcept;
  ~WithoutTapes();
  WithoutTapes(const WithoutTapes&) = delete;
  WithoutTapes& operator=(const WithoutTapes&) = delete;

 private:
  const InterceptWith unseen_;
};

// The derivative of f, a function from one tensor to one tensor, as a function.
template <class F>
auto grad(F f) {
  return [f = std::move(f)](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = f(x);
    return tape.gradient(y, x);
  };
}

namespace tape_detail {
template <class F, std::size_t... I>
auto value_and_gradients(F& f, std::span<const Tensor> x, std::index_sequence<I...>) {
  GradientTape tape;
  for (const Tensor& source : x) tape.watch(source);
  Tensor value = f(x[I]...);
  std::vector<Tensor> gradients = tape.gradient(value, x);
  return std::pair(std::move(value), std::move(gradients));
}
}  // namespace tape_detail

// {f(x, w), {df/dx, df/dw}}: f takes as many tensors as the list has. The list may contain variables.
template <class F, class T, std::size_t N>
std::pair<Tensor, std::vector<Tensor>> value_and_gradients(F&& f, const T (&sources)[N]) {
  std::array<Tensor, N> x;
  for (std::size_t i = 0; i < N; ++i) x[i] = sources[i];
  return tape_detail::value_and_gradients(f, x, std::make_index_sequence<N>{});
}

// The same for any number of sources: f takes no argument and reads the variables itself.
template <class F>
std::pair<Tensor, std::vector<Tensor>> value_and_gradients(F&& f, const std::vector<Variable>& sources) {
  GradientTape tape;
  Tensor value = f();
  std::vector<Tensor> gradients = tape.gradient(value, sources);
  return {std::move(value), std::move(gradients)};
}

}  // namespace plimsoll
