#include "plimsoll/ops/take_along.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/axis_split.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kGrain = 16384;

// Calls f(position in the tensor with the indices' size, position in the other) for every index in range.
template <class Index, class F>
void for_each_index(const AxisSplit& many, const AxisSplit& few, const Index* indices, F f) noexcept {
  parallel_for(few.outer * few.inner, std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, few.size)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t lane = begin; lane < end; ++lane) {
                   const std::int64_t from = few.start(lane), to = many.start(lane);
                   for (std::int64_t j = 0; j < few.size; ++j) {
                     const std::int64_t at = from + j * few.inner, index = static_cast<std::int64_t>(indices[at]);
                     f(at, index >= 0 && index < many.size ? to + index * many.inner : -1);
                   }
                 }
               });
}

template <class F>
void for_each_index(const AxisSplit& many, const AxisSplit& few, const ConstTensorView& indices, F f) noexcept {
  if (indices.dtype() == i32)
    for_each_index(many, few, indices.data<std::int32_t>(), f);
  else
    for_each_index(many, few, indices.data<std::int64_t>(), f);
}

template <class T>
T sum_of(T a, T b) noexcept {
  if constexpr (std::is_same_v<T, bool>)
    return a || b;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  else if constexpr (std::is_same_v<T, double>)
    return a + b;
  else
    return static_cast<T>(static_cast<float>(a) + static_cast<float>(b));
}

}  // namespace

void TakeAlong::run(const OpRun& run) const noexcept {
  if (run.out[0].size() == 0) return;
  const AxisSplit many(run.in[0].shape(), axis_), few(run.in[1].shape(), axis_);
  visit_dtype(run.in[0].dtype(), [&]<class T>(TypeTag<T>) {
    const T* x = run.in[0].data<T>();
    T* y = run.out[0].data<T>();
    for_each_index(many, few, run.in[1], [&](std::int64_t at, std::int64_t from) { y[at] = from < 0 ? T{} : x[from]; });
  });
}

void TakeAlong::gradient(GradientContext& c) const {
  c.give(0, execute(PlaceAlong(axis_, c.input_shape(0)[axis_]), c.grad(), c.input(1)));
}

void PlaceAlong::infer(const Specs& in, SpecList& out) const {
  std::int64_t sizes[kMaxRank];
  std::copy(in.shape(0).begin(), in.shape(0).end(), sizes);
  sizes[axis_] = size_;
  out.add(Shape(std::span<const std::int64_t>(sizes, in.shape(0).rank())), in.dtype(0));
}

void PlaceAlong::run(const OpRun& run) const noexcept {
  if (run.out[0].size() == 0) return;
  if (run.out[0].size() > 0) std::memset(run.out[0].bytes(), 0, run.out[0].nbytes());
  if (run.in[0].size() == 0) return;
  const AxisSplit many(run.out[0].shape(), axis_), few(run.in[1].shape(), axis_);
  visit_dtype(run.in[0].dtype(), [&]<class T>(TypeTag<T>) {
    const T* updates = run.in[0].data<T>();
    T* y = run.out[0].data<T>();
    for_each_index(many, few, run.in[1], [&](std::int64_t at, std::int64_t to) {
      if (to >= 0) y[to] = sum_of(y[to], updates[at]);
    });
  });
}

void PlaceAlong::gradient(GradientContext& c) const { c.give(0, execute(TakeAlong(axis_), c.grad(), c.input(1))); }

}  // namespace plimsoll::internal
