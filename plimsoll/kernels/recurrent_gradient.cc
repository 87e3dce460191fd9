#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/recurrent_plan.h"
#include "plimsoll/kernels/matmul.h"
#include "plimsoll/kernels/recurrent.h"
#include "plimsoll/kernels/reduce.h"

namespace plimsoll {
namespace {

// Through time, from the last step taken to the first: from the gates' values the gradients of their products.
template <class T>
struct Backward {
  RecurrentPlan<T> plan;
  const RecurrentLoopsOf<T>& loops;
  const bool* mask;
  const T *sequence, *last, *final_h, *final_c;  // Upstream.
  T *initial_h, *initial_c;

  void prepare(const RecurrentInputs& in) const noexcept {
    const std::int64_t units = plan.units, width = plan.width(), first = plan.first_columns();
    const T* kernel = in.recurrent_kernel.data<T>();
    loops.pack(kernel, first, units, 1, width, plan.panels);
    if (plan.is_gru()) loops.pack(kernel + first, units, units, 1, width, plan.third_panels);
  }

  // The first step taken that is not masked.
  std::int64_t first_step(std::int64_t b) const noexcept {
    std::int64_t k = 0;
    while (k < plan.time && is_masked(mask, plan.time, b, plan.place(k))) ++k;
    return k;
  }

  void start(std::int64_t b) const noexcept {
    const std::int64_t units = plan.units;
    const auto begin = [&](T* to, const T* from) {
      from ? copy_row(to + b * units, from + b * units, units)
           : static_cast<void>(std::fill_n(to + b * units, units, T(0)));
    };
    begin(plan.dh, final_h);
    if (plan.is_lstm()) begin(plan.dc, final_c);
  }

  void add_outputs(std::int64_t b, std::int64_t k) const noexcept {
    const std::int64_t units = plan.units;
    T* dh = plan.dh + b * units;
    if (sequence) {
      const T* from = sequence + (b * plan.time + plan.output_place(k)) * units;
      for (std::int64_t i = 0; i < units; ++i) dh[i] += from[i];
    }
    if (last && k + 1 == plan.time)
      for (std::int64_t i = 0; i < units; ++i) dh[i] += last[b * units + i];
  }

  void clear(std::int64_t b, std::int64_t t) const noexcept {
    std::fill_n(plan.slopes.at(b, t), plan.width(), T(0));
    if (plan.is_gru()) std::fill_n(plan.extra_slopes.at(b, t), plan.units, T(0));
  }

  template <class F>
  void for_rows(std::int64_t begin, std::int64_t end, std::int64_t t, F gates) const noexcept {
    for (std::int64_t b = begin; b < end; ++b) {
      if (is_masked(mask, plan.time, b, t)) continue;
      GateStep<T> step = plan.step_of(b, t);
      step.slopes = plan.slopes.at(b, t);
      step.extra_slopes = plan.is_gru() ? plan.extra_slopes.at(b, t) : nullptr;
      step.dh = plan.dh + b * plan.units;
      step.dc = plan.is_lstm() ? plan.dc + b * plan.units : nullptr;
      step.dreset = plan.is_gru() ? plan.dreset + b * plan.units : nullptr;
      gates(step);
    }
  }

  void multiply(std::int64_t begin, std::int64_t rows, const T* from, std::int64_t stride, std::int64_t depth,
                const T* panels, T* to, bool accumulate) const noexcept {
    loops.multiply(from, stride, 1, rows, depth, panels, plan.units, to + begin * plan.units, plan.units, accumulate);
  }

  void step(std::int64_t begin, std::int64_t end, std::int64_t t) const noexcept {
    const std::int64_t rows = end - begin, first = plan.first_columns(), units = plan.units;
    const T* slopes = plan.slopes.at(begin, t);
    if (!plan.is_gru()) {
      for_rows(begin, end, t, plan.is_lstm() ? loops.lstm_back : loops.simple_back);
    } else {
      for_rows(begin, end, t, loops.gru_back);
      if (plan.options.reset_after) {
        for_rows(begin, end, t, loops.gru_after_back);
        multiply(begin, rows, plan.extra_slopes.at(begin, t), plan.extra_slopes.row, units, plan.third_panels, plan.dh,
                 true);
      } else {
        multiply(begin, rows, slopes + first, plan.slopes.row, units, plan.third_panels, plan.dreset, false);
        for_rows(begin, end, t, loops.gru_before_back);
      }
    }
    multiply(begin, rows, slopes, plan.slopes.row, first, plan.panels, plan.dh, true);
  }

  void run_group(std::int64_t begin, std::int64_t end) const noexcept {
    std::int64_t first[kRecurrentRows];
    for (std::int64_t b = begin; b < end; ++b) {
      start(b);
      first[b - begin] = first_step(b);
    }
    for (std::int64_t k = plan.time - 1; k >= 0; --k) {
      const std::int64_t t = plan.place(k);
      for (std::int64_t b = begin; b < end; ++b) {
        if (k >= first[b - begin]) add_outputs(b, k);  // Before it outputs are zeros.
        if (is_masked(mask, plan.time, b, t)) clear(b, t);
      }
      step(begin, end, t);
    }
    const std::int64_t units = plan.units, count = (end - begin) * units;
    if (initial_h) copy_row(initial_h + begin * units, plan.dh + begin * units, count);
    if (initial_c) copy_row(initial_c + begin * units, plan.dc + begin * units, count);
  }
};

// The gradients of inputs and parameters, from those of all products at once.
template <class T>
struct Products {
  const RecurrentPlan<T>& plan;
  DType dtype;
  std::span<std::byte> scratch;

  TensorView view(T* data, std::int64_t rows, std::int64_t columns) const noexcept {
    return {data, 0, dtype, {rows, columns}};
  }
  TensorView products() const noexcept { return view(plan.slopes.data, plan.steps(), plan.width()); }
  TensorView states() const noexcept { return view(plan.h.data, plan.steps(), plan.units); }
  T* third_gate(std::int64_t row) const noexcept {
    return plan.slopes.data + row * plan.width() + plan.first_columns();
  }

  void run(const RecurrentInputs& in, const RecurrentGradients& out) const noexcept {
    const ConstTensorView x = in.x.reshaped({plan.steps(), plan.inputs});
    if (out.x.base())
      matmul(products(), in.kernel, out.x.reshaped({plan.steps(), plan.inputs}), {.transpose_b = true}, scratch);
    if (out.kernel.base()) matmul(x, products(), out.kernel, {.transpose_a = true}, scratch);
    const bool two_biases = plan.is_gru() && plan.options.reset_after;
    const TensorView bias = two_biases && out.bias.base() ? out.bias.reshaped({2, plan.width()}) : out.bias;
    if (out.bias.base()) reduce(ReduceOp::sum, products(), axes_mask({0}), two_biases ? bias.rows(0, 1) : bias);
    if (two_biases)  // What the recurrent products had in the third gate's place.
      for (std::int64_t r = 0; r < plan.steps(); ++r)
        copy_row(third_gate(r), plan.extra_slopes.data + r * plan.units, plan.units);
    if (two_biases && out.bias.base()) reduce(ReduceOp::sum, products(), axes_mask({0}), bias.rows(1, 2));
    if (!out.recurrent_kernel.base()) return;
    matmul(states(), products(), out.recurrent_kernel, {.transpose_a = true}, scratch);
    if (plan.is_gru() && !two_biases) third_of_kernel(out.recurrent_kernel.data<T>());
  }

  // Without reset_after the third gate's products were those of r h, not of h.
  void third_of_kernel(T* kernel) const noexcept {
    const std::int64_t units = plan.units;
    T* gathered = plan.extra_slopes.data;
    for (std::int64_t r = 0; r < plan.steps(); ++r) copy_row(gathered + r * units, third_gate(r), units);
    matmul(view(plan.extra.data, plan.steps(), units), view(gathered, plan.steps(), units),
           view(plan.third, units, units), {.transpose_a = true}, scratch);
    for (std::int64_t i = 0; i < units; ++i)
      copy_row(kernel + i * plan.width() + plan.first_columns(), plan.third + i * units, units);
  }
};

template <class T>
void run_backward(const RecurrentOptions& options, const RecurrentInputs& in,
                  const RecurrentResults<ConstTensorView>& upstream, const RecurrentGradients& out,
                  std::span<const std::byte> workspace, std::span<std::byte> scratch) noexcept {
  // The plan has one kind of address; going back, those of the workspace are only read.
  const Backward<T> backward = {
      plan_recurrent<T>(options, recurrent_sizes(in), true, const_cast<std::byte*>(workspace.data()), scratch.data()),
      recurrent_loops_of<T>(),
      data_or_null<bool>(in.mask),
      data_or_null<T>(upstream.sequence),
      data_or_null<T>(upstream.last),
      data_or_null<T>(upstream.final_h),
      data_or_null<T>(upstream.final_c),
      data_or_null<T>(out.initial_h),
      data_or_null<T>(out.initial_c)};
  const RecurrentPlan<T>& plan = backward.plan;
  PLIMSOLL_CHECK(options.keep_for_gradient);
  PLIMSOLL_CHECK(workspace.size() >= plan.workspace_bytes && scratch.size() >= plan.scratch_bytes);
  backward.prepare(in);
  parallel_for(plan.batch, plan.group_rows(),
               [&](std::int64_t begin, std::int64_t end) { backward.run_group(begin, end); });
  Products<T>{plan, in.x.dtype(), {plan.products, scratch.data() + scratch.size()}}.run(in, out);
}

}  // namespace

std::size_t recurrent_gradient_scratch_bytes(const RecurrentOptions& options, const RecurrentSizes& sizes,
                                             DType dtype) noexcept {
  return dtype == f32 ? plan_recurrent<float>(options, sizes, true, nullptr, nullptr).scratch_bytes
                      : plan_recurrent<double>(options, sizes, true, nullptr, nullptr).scratch_bytes;
}

void recurrent_gradient(const RecurrentOptions& options, const RecurrentInputs& in,
                        const RecurrentResults<ConstTensorView>& upstream, const RecurrentGradients& out,
                        std::span<const std::byte> workspace, std::span<std::byte> scratch) noexcept {
  if (in.x.dtype() == f32)
    run_backward<float>(options, in, upstream, out, workspace, scratch);
  else
    run_backward<double>(options, in, upstream, out, workspace, scratch);
}

}  // namespace plimsoll
