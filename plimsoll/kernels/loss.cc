#include "plimsoll/kernels/loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/loss_loops.h"
#include "plimsoll/kernels/internal/reduce_loops.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kGrain = 8192;  // Elements per chunk.

// The arrays of a call; null where not wanted.
template <class T>
struct LossRows {
  std::int64_t rows, columns;
  const T* x;
  T *loss, *gradient;
  const T* upstream;
  double scale;

  LossRows(const ConstTensorView& predictions, const LossOutputs& out) noexcept
      : rows(0),
        columns(predictions.shape().back()),
        x(predictions.data<T>()),
        loss(out.loss.base() ? out.loss.data<T>() : nullptr),
        gradient(out.gradient.base() ? out.gradient.data<T>() : nullptr),
        upstream(out.upstream.base() ? out.upstream.data<T>() : nullptr),
        scale(out.scale) {
    PLIMSOLL_CHECK(columns > 0);
    rows = static_cast<std::int64_t>(predictions.size()) / columns;
    PLIMSOLL_CHECK(!loss || out.loss.size() == static_cast<std::size_t>(rows));
    PLIMSOLL_CHECK(!gradient || out.gradient.size() == predictions.size());
    PLIMSOLL_CHECK(!upstream || out.upstream.size() == static_cast<std::size_t>(rows));
  }

  double weight(std::int64_t row) const noexcept { return upstream ? scale * double(upstream[row]) : scale; }

  template <class F>
  void for_rows(F body) const noexcept {
    parallel_for(rows, std::max<std::int64_t>(1, kGrain / columns), body);
  }
};

template <class T>
T largest_of(const T* x, std::int64_t n) noexcept {
  T largest = -std::numeric_limits<T>::infinity();
  reduce_loops().folds[kFoldMax][std::is_same_v<T, float> ? kNativeF32 : kNativeF64].run(x, n, &largest);
  return largest;
}

template <class T, class Label>
void sparse_row(const LossRows<T>& all, std::int64_t r, Label label) noexcept {
  const std::int64_t n = all.columns;
  const T* x = all.x + r * n;
  T* gradient = all.gradient ? all.gradient + r * n : nullptr;
  if (label < 0 || label >= n) {
    if (all.loss) all.loss[r] = std::numeric_limits<T>::quiet_NaN();
    if (gradient) std::fill_n(gradient, n, std::numeric_limits<T>::quiet_NaN());
    return;
  }
  const T largest = largest_of(x, n);
  const double chosen = double(x[label] - largest);
  const double sum = loss_loops_of<T>().exp_sum(x, n, largest, gradient);
  if (all.loss) all.loss[r] = static_cast<T>(std::log(sum) - chosen);
  if (!gradient) return;
  const double weight = all.weight(r);
  loss_loops_of<T>().scale_minus(gradient, nullptr, n, static_cast<T>(weight / sum), T(0));
  gradient[label] -= static_cast<T>(weight);
}

template <class T>
void target_row(const LossRows<T>& all, std::int64_t r, const T* y) noexcept {
  const std::int64_t n = all.columns;
  const T* x = all.x + r * n;
  T* gradient = all.gradient ? all.gradient + r * n : nullptr;
  const T largest = largest_of(x, n);
  double weight_sum, product;
  loss_loops_of<T>().weigh(x, y, n, largest, &weight_sum, &product);
  const double sum = loss_loops_of<T>().exp_sum(x, n, largest, gradient);
  if (all.loss) all.loss[r] = static_cast<T>(weight_sum * std::log(sum) - product);
  if (!gradient) return;
  const double weight = all.weight(r);
  loss_loops_of<T>().scale_minus(gradient, y, n, static_cast<T>(weight * weight_sum / sum), static_cast<T>(weight));
}

// Long rows, one by one and tile by tile.
template <class T, class Loop>
void element_row(const LossRows<T>& all, std::int64_t r, const T* targets, Loop loop, T delta) noexcept {
  const std::int64_t n = all.columns;
  T values[kLossTile];
  double sum = 0;
  const T factor = static_cast<T>(all.weight(r) / double(n));
  for (std::int64_t i = 0; i < n; i += kLossTile) {
    const std::int64_t at = r * n + i, count = std::min(kLossTile, n - i);
    loop(all.x + at, targets + at, count, all.loss ? values : nullptr, all.gradient ? all.gradient + at : nullptr,
         factor, delta);
    if (all.loss) sum += loss_loops_of<T>().sum(values, count);
  }
  if (all.loss) all.loss[r] = static_cast<T>(sum / double(n));
}

// Short rows, a tile of them at once.
template <class T, class Loop>
void element_tile(const LossRows<T>& all, std::int64_t begin, std::int64_t end, const T* targets, Loop loop,
                  T delta) noexcept {
  const std::int64_t n = all.columns, at = begin * n, count = (end - begin) * n;
  T values[kLossTile];
  T* gradient = all.gradient ? all.gradient + at : nullptr;
  loop(all.x + at, targets + at, count, all.loss ? values : nullptr, gradient, static_cast<T>(all.scale / double(n)),
       delta);
  if (gradient && all.upstream)
    for (std::int64_t i = 0; i < count; ++i) gradient[i] *= all.upstream[begin + i / n];
  if (!all.loss) return;
  for (std::int64_t r = begin; r < end; ++r) {
    double sum = 0;
    for (std::int64_t c = 0; c < n; ++c) sum += double(values[(r - begin) * n + c]);
    all.loss[r] = static_cast<T>(sum / double(n));
  }
}

template <class T>
void element_loss(ElementLoss kind, const ConstTensorView& predictions, const ConstTensorView& targets, double delta,
                  const LossOutputs& out) noexcept {
  const LossRows<T> all(predictions, out);
  const T* y = targets.data<T>();
  const auto loop = loss_loops_of<T>().elements[kind];
  const std::int64_t at_once = kLossTile / all.columns;
  all.for_rows([&](std::int64_t begin, std::int64_t end) {
    if (at_once < 8) {
      for (std::int64_t r = begin; r < end; ++r) element_row(all, r, y, loop, static_cast<T>(delta));
    } else {
      for (std::int64_t r = begin; r < end; r += at_once)
        element_tile(all, r, std::min(end, r + at_once), y, loop, static_cast<T>(delta));
    }
  });
}

void element_loss(ElementLoss kind, const ConstTensorView& predictions, const ConstTensorView& targets, double delta,
                  const LossOutputs& out) noexcept {
  if (predictions.size() == 0) return;
  PLIMSOLL_CHECK(targets.size() == predictions.size());
  if (predictions.dtype() == f32)
    element_loss<float>(kind, predictions, targets, delta, out);
  else
    element_loss<double>(kind, predictions, targets, delta, out);
}

template <class T, class Label>
void sparse_loss(const ConstTensorView& logits, const ConstTensorView& labels, const LossOutputs& out) noexcept {
  const LossRows<T> all(logits, out);
  const Label* label = labels.data<Label>();
  PLIMSOLL_CHECK(labels.size() == static_cast<std::size_t>(all.rows));
  all.for_rows([&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) sparse_row(all, r, label[r]);
  });
}

template <class T>
void target_loss(const ConstTensorView& logits, const ConstTensorView& targets, const LossOutputs& out) noexcept {
  const LossRows<T> all(logits, out);
  const T* y = targets.data<T>();
  all.for_rows([&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) target_row(all, r, y + r * all.columns);
  });
}

}  // namespace

void sparse_softmax_cross_entropy(const ConstTensorView& logits, const ConstTensorView& labels,
                                  const LossOutputs& out) noexcept {
  if (logits.size() == 0) return;
  const bool single = logits.dtype() == f32;
  if (labels.dtype() == i32)
    return single ? sparse_loss<float, std::int32_t>(logits, labels, out)
                  : sparse_loss<double, std::int32_t>(logits, labels, out);
  return single ? sparse_loss<float, std::int64_t>(logits, labels, out)
                : sparse_loss<double, std::int64_t>(logits, labels, out);
}

void softmax_cross_entropy(const ConstTensorView& logits, const ConstTensorView& targets,
                           const LossOutputs& out) noexcept {
  if (logits.size() == 0) return;
  PLIMSOLL_CHECK(targets.size() == logits.size());
  return logits.dtype() == f32 ? target_loss<float>(logits, targets, out) : target_loss<double>(logits, targets, out);
}

void sigmoid_cross_entropy(const ConstTensorView& logits, const ConstTensorView& targets,
                           const LossOutputs& out) noexcept {
  element_loss(kSigmoidCrossEntropy, logits, targets, 0, out);
}
void squared_error(const ConstTensorView& predictions, const ConstTensorView& targets,
                   const LossOutputs& out) noexcept {
  element_loss(kSquaredError, predictions, targets, 0, out);
}
void absolute_error(const ConstTensorView& predictions, const ConstTensorView& targets,
                    const LossOutputs& out) noexcept {
  element_loss(kAbsoluteError, predictions, targets, 0, out);
}
void huber(const ConstTensorView& predictions, const ConstTensorView& targets, double delta,
           const LossOutputs& out) noexcept {
  element_loss(kHuber, predictions, targets, delta, out);
}

}  // namespace plimsoll::internal
