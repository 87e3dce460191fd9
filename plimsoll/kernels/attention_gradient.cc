#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/attention.h"
#include "plimsoll/kernels/internal/attention_plan.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kBlock = kAttentionBlock;

// The data of one head.
template <class T>
struct Slot {
  T *key_panels, *transposed_key_panels, *value_panels, *query_panels, *slope_panels;
  T *scores, *slopes;  // P; dP, then dS.

  static std::int64_t elements(std::int64_t depth, std::int64_t columns) noexcept {
    return 3 * panel_elements<T>(depth) + 2 * panel_elements<T>(columns) + 2 * kBlock * kBlock;
  }
  Slot(T* at, std::int64_t depth, std::int64_t columns) noexcept
      : key_panels(at),
        transposed_key_panels(key_panels + panel_elements<T>(depth)),
        value_panels(transposed_key_panels + panel_elements<T>(depth)),
        query_panels(value_panels + panel_elements<T>(columns)),
        slope_panels(query_panels + panel_elements<T>(depth)),
        scores(slope_panels + panel_elements<T>(columns)),
        slopes(scores + kBlock * kBlock) {}
};

template <class T>
struct Backward {
  AttentionPlan<T> plan;
  HeadRows<const T> y, dy;
  const T* log_sum;
  HeadRows<T> dq, dk, dv;

  // P from the scores, dS from dP.
  void score_gradients(std::int64_t head, std::int64_t first, std::int64_t rows, std::int64_t key, std::int64_t count,
                       const Slot<T>& slot) const noexcept {
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t at = head * plan.queries + first + r;
      T *row = slot.scores + r * kBlock, *slope = slot.slopes + r * kBlock;
      plan.finish_scores(row, head, first + r, key, count);
      if (log_sum[at] == -std::numeric_limits<T>::infinity())
        std::fill_n(row, count, T(0));
      else
        plan.loops.exp_row(row, count, log_sum[at]);
      const T offset = plan.loops.dot(dy.at(head, first + r), y.at(head, first + r), plan.columns);
      plan.loops.score_gradient(row, slope, count, offset, plan.scale);
    }
  }

  // The first block of queries of a block of keys sets their gradients, the others add to them.
  void run_block(std::int64_t head, std::int64_t first, std::int64_t key, std::int64_t count, bool is_first,
                 const Slot<T>& slot) const noexcept {
    const std::int64_t rows = std::min(kBlock, plan.queries - first), depth = plan.depth, columns = plan.columns;
    const T *q_at = plan.q.at(head, first), *dy_at = dy.at(head, first);
    const RecurrentLoopsOf<T>& products = plan.products;
    plan.multiply_scores(q_at, rows, slot.transposed_key_panels, count, slot.scores);
    products.multiply(dy_at, dy.stride, 1, rows, columns, slot.value_panels, count, slot.slopes, kBlock, false);
    score_gradients(head, first, rows, key, count, slot);
    products.pack(q_at, rows, depth, plan.q.stride, 1, slot.query_panels);
    products.pack(dy_at, rows, columns, dy.stride, 1, slot.slope_panels);
    products.multiply(slot.scores, 1, kBlock, count, rows, slot.slope_panels, columns, dv.at(head, key), dv.stride,
                      !is_first);
    products.multiply(slot.slopes, 1, kBlock, count, rows, slot.query_panels, depth, dk.at(head, key), dk.stride,
                      !is_first);
    products.multiply(slot.slopes, kBlock, 1, rows, count, slot.key_panels, depth, dq.at(head, first), dq.stride,
                      key > 0);
  }

  void run_head(std::int64_t head, const Slot<T>& slot) const noexcept {
    const std::int64_t depth = plan.depth, columns = plan.columns;
    if (plan.keys == 0) dq.clear(head, 0, plan.queries, depth);
    for (std::int64_t key = 0; key < plan.keys; key += kBlock) {
      const std::int64_t most = std::min(kBlock, plan.keys - key);
      const T* k_at = plan.k.at(head, key);
      plan.products.pack(k_at, most, depth, plan.k.stride, 1, slot.key_panels);
      plan.products.pack(k_at, depth, most, 1, plan.k.stride, slot.transposed_key_panels);
      plan.products.pack(plan.v.at(head, key), columns, most, 1, plan.v.stride, slot.value_panels);
      bool is_first = true;
      for (std::int64_t first = 0; first < plan.queries; first += kBlock) {
        const std::int64_t last = std::min(first + kBlock, plan.queries) - 1;
        if (plan.keys_of_block(key, last) == 0) continue;
        run_block(head, first, key, most, is_first, slot);
        is_first = false;
      }
      if (!is_first) continue;  // Otherwise no query attends to these keys.
      dk.clear(head, key, most, depth);
      dv.clear(head, key, most, columns);
    }
  }

  void run(T* scratch) const noexcept {
    const std::int64_t total = plan.batch * plan.heads, size = Slot<T>::elements(plan.depth, plan.columns);
    for (std::int64_t wave = 0; wave < total; wave += kAttentionSlots)
      parallel_for(std::min(kAttentionSlots, total - wave), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t s = begin; s < end; ++s)
          run_head(wave + s, Slot<T>(scratch + s * size, plan.depth, plan.columns));
      });
  }
};

template <class T>
void run_backward(const AttentionRule& options, const AttentionInputs& in, const ConstTensorView& y,
                  const ConstTensorView& log_sum, const ConstTensorView& dy, const AttentionGradients& out,
                  std::span<std::byte> scratch) noexcept {
  const AttentionPlan<T> plan(options, in);
  const auto rows = [&](auto* data, std::int64_t count, std::int64_t width) {
    return HeadRows<std::remove_pointer_t<decltype(data)>>(data, plan.heads, count, width, plan.sequence_first);
  };
  const Backward<T> backward = {plan,
                                rows(y.data<T>(), plan.queries, plan.columns),
                                rows(dy.data<T>(), plan.queries, plan.columns),
                                log_sum.data<T>(),
                                rows(out.q.data<T>(), plan.queries, plan.depth),
                                rows(out.k.data<T>(), plan.keys, plan.depth),
                                rows(out.v.data<T>(), plan.keys, plan.columns)};
  backward.run(reinterpret_cast<T*>(scratch.data()));
}

}  // namespace

std::size_t attention_gradient_scratch_bytes(const Shape& q, const Shape&, const Shape& v, DType dtype) noexcept {
  const std::int64_t elements = dtype == f32 ? Slot<float>::elements(q[3], v[3]) : Slot<double>::elements(q[3], v[3]);
  return static_cast<std::size_t>(elements * kAttentionSlots) * size_of(dtype);
}

void attention_gradient(const AttentionRule& options, const AttentionInputs& in, const ConstTensorView& y,
                        const ConstTensorView& log_sum, const ConstTensorView& dy, const AttentionGradients& out,
                        std::span<std::byte> scratch) noexcept {
  PLIMSOLL_CHECK(scratch.size() >=
                 attention_gradient_scratch_bytes(in.q.shape(), in.k.shape(), in.v.shape(), in.q.dtype()));
  if (in.q.dtype() == f32)
    run_backward<float>(options, in, y, log_sum, dy, out, scratch);
  else
    run_backward<double>(options, in, y, log_sum, dy, out, scratch);
}

}  // namespace plimsoll::internal
