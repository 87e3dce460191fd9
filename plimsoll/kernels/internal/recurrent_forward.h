// RecurrentForward: a sequence through time, segment by segment: for recurrent(), and for what its gradient computes
// again.
#pragma once

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/recurrent_plan.h"
#include "plimsoll/kernels/matmul.h"

namespace plimsoll::internal {

template <class T>
struct RecurrentForward {
  RecurrentPlan<T> plan;
  const RecurrentLoopsOf<T>& loops;
  const T *bias, *recurrent_bias;  // Null, or those of GateStep.
  const T *initial_h, *initial_c;
  const bool* mask;
  T *sequence, *last, *final_h, *final_c;
  T *after_h = nullptr, *after_c = nullptr;  // [batch, units]: the state after the segment.
  bool is_again = false;

  // Whole columns of the recurrent kernel, once for all steps; and the sum of the biases, which are null when there are
  // none.
  void prepare(const RecurrentInputs& in, const T* biases) noexcept {
    const std::int64_t units = plan.units, width = plan.width(), first = plan.first_columns();
    const T* kernel = in.recurrent_kernel.data<T>();
    loops.pack(kernel, units, first, width, 1, plan.panels);
    if (plan.is_gru()) loops.pack(kernel + first, units, units, width, 1, plan.third_panels);
    bias = biases;
    if (!bias || !plan.has_bias_pair()) return;
    std::copy_n(bias, width, plan.bias);
    for (std::int64_t i = 0; i < first; ++i) plan.bias[i] += bias[width + i];
    recurrent_bias = bias + width + first;
    bias = plan.bias;
  }

  T* next_h(std::int64_t b, std::int64_t k) const noexcept {
    return k + 1 < plan.high ? plan.h.at(b, plan.place(k + 1)) : after_h + b * plan.units;
  }
  T* next_c(std::int64_t b, std::int64_t k) const noexcept {
    return k + 1 < plan.high ? plan.c.at(b, plan.place(k + 1)) : after_c + b * plan.units;
  }

  // The state before the segment, which is kept beside it where that is asked for.
  void start(std::int64_t b) const noexcept {
    const std::int64_t units = plan.units;
    const auto begin = [&](T* to, const T* from, T* kept) {
      kept = kept ? kept + b * units : nullptr;
      if (plan.low > 0 || is_again) return copy_row(to, kept, units);
      from ? copy_row(to, from + b * units, units) : static_cast<void>(std::fill_n(to, units, T(0)));
      if (kept) copy_row(kept, to, units);
    };
    const bool has_starts = plan.has_starts();
    begin(plan.h.at(b, plan.place(plan.low)), initial_h, has_starts ? plan.start_h_of(plan.segment) : nullptr);
    if (!plan.is_lstm()) return;
    begin(plan.c.at(b, plan.place(plan.low)), initial_c, has_starts ? plan.start_c_of(plan.segment) : nullptr);
  }

  void multiply(std::int64_t begin, std::int64_t rows, std::int64_t t, const T* panels, const StepRows<T>& from,
                std::int64_t columns, const StepRows<T>& to, std::int64_t offset, bool accumulate) const noexcept {
    loops.multiply(from.at(begin, t), from.row, 1, rows, plan.units, panels, columns, to.at(begin, t) + offset, to.row,
                   accumulate);
  }

  // The gates of the rows that are not masked.
  template <class F>
  void for_rows(std::int64_t begin, std::int64_t end, std::int64_t k, F gates) const noexcept {
    const std::int64_t t = plan.place(k);
    for (std::int64_t b = begin; b < end; ++b) {
      if (is_masked(mask, plan.time, b, t)) continue;
      GateStep<T> step = plan.step_of(b, t);
      step.bias = bias, step.recurrent_bias = recurrent_bias;
      step.h_next = next_h(b, k);
      step.c_next = plan.is_lstm() ? next_c(b, k) : nullptr;
      gates(step);
    }
  }

  void step(std::int64_t begin, std::int64_t end, std::int64_t k) const noexcept {
    const std::int64_t t = plan.place(k), rows = end - begin, first = plan.first_columns();
    multiply(begin, rows, t, plan.panels, plan.h, first, plan.values, 0, true);
    if (!plan.is_gru()) return for_rows(begin, end, k, plan.is_lstm() ? loops.lstm : loops.simple);
    if (plan.options.reset_after) {
      multiply(begin, rows, t, plan.third_panels, plan.h, plan.units, plan.extra, 0, false);
      for_rows(begin, end, k, loops.gru_after);
    } else {
      for_rows(begin, end, k, loops.gru_before);
      multiply(begin, rows, t, plan.third_panels, plan.extra, plan.units, plan.values, first, true);
    }
    for_rows(begin, end, k, loops.gru);
  }

  // Carries masked states over and writes outputs.
  void finish(std::int64_t b, std::int64_t k, bool& seen) const noexcept {
    const std::int64_t t = plan.place(k), units = plan.units;
    if (is_masked(mask, plan.time, b, t)) {
      copy_row(next_h(b, k), plan.h.at(b, t), units);
      if (plan.is_lstm()) copy_row(next_c(b, k), plan.c.at(b, t), units);
      if (plan.is_gru()) std::fill_n(plan.extra.at(b, t), units, T(0));  // The gradient multiplies it by zeros.
    } else {
      seen = true;
    }
    T* outputs[] = {sequence ? sequence + (b * plan.time + plan.output_place(k)) * units : nullptr,
                    last && k + 1 == plan.time ? last + b * units : nullptr};
    for (T* to : outputs) {
      if (!to) continue;
      if (seen)
        copy_row(to, next_h(b, k), units);
      else
        std::fill_n(to, units, T(0));
    }
  }

  void run_group(std::int64_t begin, std::int64_t end) const noexcept {
    bool seen[kRecurrentRows] = {};
    for (std::int64_t b = begin; b < end; ++b) {
      start(b);
      seen[b - begin] = plan.low > 0 && first_step(mask, plan, b) < plan.low;
    }
    for (std::int64_t k = plan.low; k < plan.high; ++k) {
      step(begin, end, k);
      for (std::int64_t b = begin; b < end; ++b) finish(b, k, seen[b - begin]);
    }
  }

  // The products of the segment's inputs. All of them, or some: the same bits.
  void multiply_inputs(const RecurrentInputs& in, std::span<std::byte> scratch) const noexcept {
    const std::int64_t steps = plan.high - plan.low, rows = plan.batch * steps, inputs = plan.inputs;
    const TensorView to(plan.values.data, 0, in.x.dtype(), {rows, plan.width()});
    if (steps == plan.time) return matmul(in.x.reshaped({rows, inputs}), in.kernel, to, {}, scratch);
    const T* const from = in.x.data<T>() + std::min(plan.place(plan.low), plan.place(plan.high - 1)) * inputs;
    for (std::int64_t b = 0; b < plan.batch; ++b)
      copy_row(plan.segment_x + b * steps * inputs, from + b * plan.time * inputs, steps * inputs);
    matmul(TensorView(plan.segment_x, 0, in.x.dtype(), {rows, inputs}), in.kernel, to, {.part_of_rows = plan.steps()},
           scratch);
  }

  void run_segment(const RecurrentInputs& in, std::span<std::byte> scratch) const noexcept {
    multiply_inputs(in, scratch);
    parallel_for(plan.batch, plan.group_rows(), [&](std::int64_t begin, std::int64_t end) { run_group(begin, end); });
  }

  // For the first time.
  void run(const RecurrentInputs& in, std::span<std::byte> scratch) noexcept {
    for (std::int64_t number = 0; number < plan.num_segments(); ++number) {
      plan.select(number);
      const bool is_last = plan.high == plan.time;
      after_h = is_last ? final_h : plan.start_h_of(number + 1);
      after_c = is_last || !plan.is_lstm() ? final_c : plan.start_c_of(number + 1);
      run_segment(in, scratch);
    }
  }

  // Again, from the state that was kept: what comes after it is discarded.
  void run_again(std::int64_t number, const RecurrentInputs& in, std::span<std::byte> scratch) noexcept {
    plan.select(number);
    is_again = true;
    after_h = plan.final_h;
    after_c = plan.final_c;
    run_segment(in, scratch);
  }
};

}  // namespace plimsoll::internal
