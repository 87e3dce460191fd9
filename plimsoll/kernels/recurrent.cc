#include "plimsoll/kernels/recurrent.h"

#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/recurrent_plan.h"
#include "plimsoll/kernels/matmul.h"

namespace plimsoll::internal {
namespace {

template <class T>
struct Forward {
  RecurrentPlan<T> plan;
  const RecurrentLoopsOf<T>& loops;
  const T *bias, *recurrent_bias;  // Null, or those of GateStep.
  const T *initial_h, *initial_c;
  const bool* mask;
  T *sequence, *last, *final_h, *final_c;

  // Whole columns of the recurrent kernel, once for all steps; and the sum of the biases.
  void prepare(const RecurrentInputs& in) noexcept {
    const std::int64_t units = plan.units, width = plan.width(), first = plan.first_columns();
    const T* kernel = in.recurrent_kernel.data<T>();
    loops.pack(kernel, units, first, width, 1, plan.panels);
    if (plan.is_gru()) loops.pack(kernel + first, units, units, width, 1, plan.third_panels);
    if (!in.bias.base()) return;
    bias = in.bias.data<T>();
    if (!plan.is_gru() || !plan.options.reset_after) return;
    std::copy_n(bias, width, plan.bias);
    for (std::int64_t i = 0; i < first; ++i) plan.bias[i] += bias[width + i];
    recurrent_bias = bias + width + first;
    bias = plan.bias;
  }

  T* next_h(std::int64_t b, std::int64_t k) const noexcept {
    return k + 1 < plan.time ? plan.h.at(b, plan.place(k + 1)) : final_h + b * plan.units;
  }
  T* next_c(std::int64_t b, std::int64_t k) const noexcept {
    return k + 1 < plan.time ? plan.c.at(b, plan.place(k + 1)) : final_c + b * plan.units;
  }

  void start(std::int64_t b) const noexcept {
    const std::int64_t units = plan.units;
    const auto begin = [&](T* to, const T* from) {
      from ? copy_row(to, from + b * units, units) : static_cast<void>(std::fill_n(to, units, T(0)));
    };
    begin(plan.h.at(b, plan.place(0)), initial_h);
    if (plan.is_lstm()) begin(plan.c.at(b, plan.place(0)), initial_c);
  }

  void multiply(std::int64_t begin, std::int64_t rows, std::int64_t t, const T* panels, const StepRows<T>& from,
                std::int64_t columns, const StepRows<T>& to, std::int64_t offset, bool accumulate) const noexcept {
    loops.multiply(from.at(begin, t), from.row, 1, rows, plan.units, panels, columns, to.at(begin, t) + offset, to.row,
                   accumulate);
  }

  // Runs the gates of the rows that are not masked.
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
    for (std::int64_t b = begin; b < end; ++b) start(b);
    for (std::int64_t k = 0; k < plan.time; ++k) {
      step(begin, end, k);
      for (std::int64_t b = begin; b < end; ++b) finish(b, k, seen[b - begin]);
    }
  }
};

template <class T>
void run_forward(const RecurrentRule& options, const RecurrentInputs& in, const RecurrentResults<TensorView>& out,
                 std::span<std::byte> workspace, std::span<std::byte> scratch) noexcept {
  const RecurrentSizes sizes = recurrent_sizes(in);
  Forward<T> forward = {plan_recurrent<T>(options, sizes, false, workspace.data(), scratch.data()),
                        recurrent_loops_of<T>(),
                        nullptr,
                        nullptr,
                        data_or_null<T>(in.initial_h),
                        data_or_null<T>(in.initial_c),
                        data_or_null<bool>(in.mask),
                        data_or_null<T>(out.sequence),
                        data_or_null<T>(out.last),
                        data_or_null<T>(out.final_h),
                        data_or_null<T>(out.final_c)};
  const RecurrentPlan<T>& plan = forward.plan;
  PLIMSOLL_CHECK(workspace.size() >= plan.workspace_bytes && scratch.size() >= plan.scratch_bytes);
  if (!forward.final_h) forward.final_h = plan.final_h;
  if (!forward.final_c) forward.final_c = plan.final_c;
  matmul(in.x.reshaped({plan.steps(), plan.inputs}), in.kernel,
         TensorView(plan.values.data, 0, in.x.dtype(), {plan.steps(), plan.width()}), {},
         {plan.products, scratch.data() + scratch.size()});
  forward.prepare(in);
  parallel_for(plan.batch, plan.group_rows(),
               [&](std::int64_t begin, std::int64_t end) { forward.run_group(begin, end); });
}

}  // namespace

std::size_t recurrent_workspace_bytes(const RecurrentRule& options, const RecurrentSizes& sizes, DType dtype) noexcept {
  return dtype == f32 ? plan_recurrent<float>(options, sizes, false, nullptr, nullptr).workspace_bytes
                      : plan_recurrent<double>(options, sizes, false, nullptr, nullptr).workspace_bytes;
}

std::size_t recurrent_scratch_bytes(const RecurrentRule& options, const RecurrentSizes& sizes, DType dtype) noexcept {
  return dtype == f32 ? plan_recurrent<float>(options, sizes, false, nullptr, nullptr).scratch_bytes
                      : plan_recurrent<double>(options, sizes, false, nullptr, nullptr).scratch_bytes;
}

void recurrent(const RecurrentRule& options, const RecurrentInputs& in, const RecurrentResults<TensorView>& out,
               std::span<std::byte> workspace, std::span<std::byte> scratch) noexcept {
  if (in.x.dtype() == f32)
    run_forward<float>(options, in, out, workspace, scratch);
  else
    run_forward<double>(options, in, out, workspace, scratch);
}

}  // namespace plimsoll::internal
