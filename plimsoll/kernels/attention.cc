#include "plimsoll/kernels/attention.h"

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/attention_plan.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kBlock = kAttentionBlock;
constexpr std::int64_t kQueries = 2 * kBlock;  // Per block, at most: keys and values are packed once for all of them.

// The data of one block of queries.
template <class T>
struct Slot {
  T *key_panels, *value_panels, *scores, *sums, *maxima;

  static std::int64_t elements(std::int64_t depth, std::int64_t columns) noexcept {
    return panel_elements<T>(depth) + panel_elements<T>(columns) + kQueries * kBlock + 2 * kQueries;
  }
  Slot(T* at, std::int64_t depth, std::int64_t columns) noexcept
      : key_panels(at),
        value_panels(key_panels + panel_elements<T>(depth)),
        scores(value_panels + panel_elements<T>(columns)),
        sums(scores + kQueries * kBlock),
        maxima(sums + kQueries) {}
};

template <class T>
struct Forward {
  AttentionPlan<T> plan;
  HeadRows<T> y;
  T* log_sum;

  // Folds a block of scores into the rows of y: y = y exp(old - new) + exp(scores - new) v. The first block sets y.
  void fold(std::int64_t head, std::int64_t first, std::int64_t rows, std::int64_t key, std::int64_t count, T* out,
            const Slot<T>& slot) const noexcept {
    for (std::int64_t r = 0; r < rows; ++r) {
      T* row = slot.scores + r * kBlock;
      const T largest = std::max(slot.maxima[r], plan.finish_scores(row, head, first + r, key, count));
      if (largest == -std::numeric_limits<T>::infinity()) {  // Nothing to attend to yet.
        std::fill_n(row, count, T(0));
        continue;
      }
      if (largest != slot.maxima[r]) {
        const T factor = std::exp(slot.maxima[r] - largest);
        slot.sums[r] *= factor;
        if (key > 0) plan.loops.scale_row(out + r * y.stride, plan.columns, factor);
        slot.maxima[r] = largest;
      }
      slot.sums[r] += plan.loops.exp_row(row, count, largest);
    }
    plan.products.multiply(slot.scores, kBlock, 1, rows, count, slot.value_panels, plan.columns, out, y.stride,
                           key > 0);
  }

  // When attention is causal, small blocks skip more of the later keys.
  std::int64_t queries_of_block() const noexcept { return plan.causal ? kBlock : kQueries; }

  void run_block(std::int64_t head, std::int64_t first, const Slot<T>& slot) const noexcept {
    const std::int64_t rows = std::min(queries_of_block(), plan.queries - first), start = head * plan.queries + first;
    T* out = y.at(head, first);
    if (plan.keys == 0) y.clear(head, first, rows, plan.columns);
    std::fill_n(slot.sums, rows, T(0));
    std::fill_n(slot.maxima, rows, -std::numeric_limits<T>::infinity());
    for (std::int64_t key = 0; key < plan.keys; key += kBlock) {
      const std::int64_t count = plan.keys_of_block(key, first + rows - 1);
      if (count == 0) break;
      plan.products.pack(plan.k.at(head, key), plan.depth, count, 1, plan.k.stride, slot.key_panels);
      plan.products.pack(plan.v.at(head, key), count, plan.columns, plan.v.stride, 1, slot.value_panels);
      plan.multiply_scores(plan.q.at(head, first), rows, slot.key_panels, count, slot.scores);
      fold(head, first, rows, key, count, out, slot);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      if (slot.sums[r] > 0) plan.loops.scale_row(out + r * y.stride, plan.columns, 1 / slot.sums[r]);
      if (log_sum) log_sum[start + r] = slot.maxima[r] + std::log(slot.sums[r]);
    }
  }

  void run(T* scratch) const noexcept {
    const std::int64_t most = queries_of_block(), blocks = divide_up(plan.queries, most),
                       total = plan.batch * plan.heads * blocks;
    const std::int64_t size = Slot<T>::elements(plan.depth, plan.columns);
    for (std::int64_t wave = 0; wave < total; wave += kAttentionSlots)
      parallel_for(std::min(kAttentionSlots, total - wave), 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t s = begin; s < end; ++s)
          run_block((wave + s) / blocks, (wave + s) % blocks * most,
                    Slot<T>(scratch + s * size, plan.depth, plan.columns));
      });
  }
};

template <class T>
void run_forward(const AttentionRule& options, const AttentionInputs& in, const AttentionOutputs& out,
                 std::span<std::byte> scratch) noexcept {
  const AttentionPlan<T> plan(options, in);
  const Forward<T> forward = {plan,
                              HeadRows<T>(out.y.data<T>(), plan.heads, plan.queries, plan.columns, plan.sequence_first),
                              out.log_sum.base() ? out.log_sum.data<T>() : nullptr};
  forward.run(reinterpret_cast<T*>(scratch.data()));
}

}  // namespace

std::size_t attention_scratch_bytes(const Shape& q, const Shape&, const Shape& v, DType dtype) noexcept {
  const std::int64_t elements = dtype == f32 ? Slot<float>::elements(q[3], v[3]) : Slot<double>::elements(q[3], v[3]);
  return static_cast<std::size_t>(elements * kAttentionSlots) * size_of(dtype);
}

void attention(const AttentionRule& options, const AttentionInputs& in, const AttentionOutputs& out,
               std::span<std::byte> scratch) noexcept {
  if (out.y.size() == 0) return;
  PLIMSOLL_CHECK(scratch.size() >= attention_scratch_bytes(in.q.shape(), in.k.shape(), in.v.shape(), in.q.dtype()));
  if (in.q.dtype() == f32)
    run_forward<float>(options, in, out, scratch);
  else
    run_forward<double>(options, in, out, scratch);
}

}  // namespace plimsoll::internal
