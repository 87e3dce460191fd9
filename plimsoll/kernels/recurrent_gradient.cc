#include "plimsoll/base/error.h"
#include "plimsoll/kernels/internal/recurrent_forward.h"
#include "plimsoll/kernels/recurrent.h"
#include "plimsoll/kernels/reduce.h"

namespace plimsoll::internal {
namespace {

// Steps whose gradients are in the scratch: places [first, first + steps).
struct Chunk {
  std::int64_t low;    // The first of them to be taken.
  std::int64_t first;  // Its least place.
  std::int64_t steps;
  std::int64_t row(std::int64_t b, std::int64_t t) const noexcept { return b * steps + t - first; }
};

// Back through time, from the last step taken to the first: computes the gradients of the gates' products from the
// gates' values.
template <class T>
struct Backward {
  const RecurrentPlan<T>& plan;
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

  T* slopes(const Chunk& chunk, std::int64_t b, std::int64_t t) const noexcept {
    return plan.slopes + chunk.row(b, t) * plan.width();
  }
  T* extra_slopes(const Chunk& chunk, std::int64_t b, std::int64_t t) const noexcept {
    return plan.is_gru() ? plan.extra_slopes + chunk.row(b, t) * plan.units : nullptr;
  }

  void clear(const Chunk& chunk, std::int64_t b, std::int64_t t) const noexcept {
    std::fill_n(slopes(chunk, b, t), plan.width(), T(0));
    if (plan.is_gru()) std::fill_n(extra_slopes(chunk, b, t), plan.units, T(0));
  }

  template <class F>
  void for_rows(const Chunk& chunk, std::int64_t begin, std::int64_t end, std::int64_t t, F gates) const noexcept {
    for (std::int64_t b = begin; b < end; ++b) {
      if (is_masked(mask, plan.time, b, t)) continue;
      GateStep<T> step = plan.step_of(b, t);
      step.slopes = slopes(chunk, b, t);
      step.extra_slopes = extra_slopes(chunk, b, t);
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

  void step(const Chunk& chunk, std::int64_t begin, std::int64_t end, std::int64_t t) const noexcept {
    const std::int64_t rows = end - begin, first = plan.first_columns(), units = plan.units;
    const std::int64_t stride = chunk.steps * plan.width();
    const T* from = slopes(chunk, begin, t);
    if (!plan.is_gru()) {
      for_rows(chunk, begin, end, t, plan.is_lstm() ? loops.lstm_back : loops.simple_back);
    } else {
      for_rows(chunk, begin, end, t, loops.gru_back);
      if (plan.options.reset_after) {
        for_rows(chunk, begin, end, t, loops.gru_after_back);
        multiply(begin, rows, extra_slopes(chunk, begin, t), chunk.steps * units, units, plan.third_panels, plan.dh,
                 true);
      } else {
        multiply(begin, rows, from + first, stride, units, plan.third_panels, plan.dreset, false);
        for_rows(chunk, begin, end, t, loops.gru_before_back);
      }
    }
    multiply(begin, rows, from, stride, first, plan.panels, plan.dh, true);
  }

  void run_group(const Chunk& chunk, std::int64_t begin, std::int64_t end) const noexcept {
    std::int64_t first[kRecurrentRows];
    for (std::int64_t b = begin; b < end; ++b) {
      if (chunk.low + chunk.steps == plan.time) start(b);
      first[b - begin] = first_step(mask, plan, b);
    }
    for (std::int64_t k = chunk.low + chunk.steps - 1; k >= chunk.low; --k) {
      const std::int64_t t = plan.place(k);
      for (std::int64_t b = begin; b < end; ++b) {
        if (k >= first[b - begin]) add_outputs(b, k);  // Before it outputs are zeros.
        if (is_masked(mask, plan.time, b, t)) clear(chunk, b, t);
      }
      step(chunk, begin, end, t);
    }
    if (chunk.low > 0) return;
    const std::int64_t units = plan.units, count = (end - begin) * units;
    if (initial_h) copy_row(initial_h + begin * units, plan.dh + begin * units, count);
    if (initial_c) copy_row(initial_c + begin * units, plan.dc + begin * units, count);
  }
};

// The gradients of inputs and parameters, from those of a chunk's products; parameter gradients are accumulated.
template <class T>
struct Products {
  const RecurrentPlan<T>& plan;
  const RecurrentInputs& in;
  const RecurrentGradients& out;
  std::span<std::byte> scratch;
  Chunk chunk;

  std::int64_t rows() const noexcept { return plan.batch * chunk.steps; }
  bool is_first() const noexcept { return chunk.low + chunk.steps == plan.time; }
  TensorView view(T* data, std::int64_t columns) const noexcept { return {data, 0, in.x.dtype(), {rows(), columns}}; }
  TensorView products() const noexcept { return view(plan.slopes, plan.width()); }
  T* third_gate(std::int64_t row) const noexcept { return plan.slopes + row * plan.width() + plan.first_columns(); }

  // Prepares what the products of some rows read, in the thread that ran those rows through time: inputs and states of
  // the chunk's steps side by side, and the sums of the biases.
  void prepare(std::int64_t begin, std::int64_t end) const noexcept {
    const StepRows<const T> x = {in.x.data<T>(), plan.time * plan.inputs, plan.inputs};
    if (out.kernel.base()) gather(x, plan.inputs, plan.chunk_x, begin, end);
    if (out.recurrent_kernel.base()) {
      if (plan.keeps_h()) gather(plan.h, plan.units, plan.chunk_h, begin, end);
      if (!plan.keeps_h()) make_states(begin, end);
      if (plan.is_gru() && !plan.has_bias_pair()) gather(plan.extra, plan.units, plan.chunk_extra, begin, end);
    }
    if (out.bias.base()) add_to_bias(begin, end);
  }

  // The chunk's rows, side by side.
  template <class U>
  void gather(const StepRows<U>& from, std::int64_t columns, T* to, std::int64_t begin,
              std::int64_t end) const noexcept {
    for (std::int64_t b = begin; b < end; ++b)
      copy_row<T>(to + b * chunk.steps * columns, from.at(b, chunk.first), chunk.steps * columns);
  }

  void make_states(std::int64_t begin, std::int64_t end) const noexcept {
    for (std::int64_t b = begin; b < end; ++b)
      for (std::int64_t k = chunk.low; k < chunk.low + chunk.steps; ++k) make_state(b, k);
  }
  void make_state(std::int64_t b, std::int64_t k) const noexcept {
    const std::int64_t t = plan.place(k), units = plan.units;
    T* to = plan.chunk_h + chunk.row(b, t) * units;
    if (k == plan.low) {
      const T* const from = plan.has_starts() ? plan.start_h_of(plan.segment) : data_or_null<T>(in.initial_h);
      return from ? copy_row(to, from + b * units, units) : static_cast<void>(std::fill_n(to, units, T(0)));
    }
    GateStep<T> step = plan.step_of(b, plan.place(k - 1));
    step.c = plan.c.at(b, t);
    step.h_next = to;
    recurrent_loops_of<T>().lstm_output(step);
  }

  // to (+)= a^T times the products.
  void multiply(const TensorView& a, const TensorView& b, const TensorView& to) const noexcept {
    matmul(a, b, to, {.transpose_a = true, .accumulate = !is_first()}, scratch);
  }

  // Adds the gradients of a group's rows to the group's own sums: for the gates, then for a GRU's `extra`.
  void add_to_bias(std::int64_t begin, std::int64_t end) const noexcept {
    T* sums = plan.bias_sums_of(begin);
    add_rows(plan.slopes, plan.width(), begin, end, sums);
    if (plan.has_bias_pair()) add_rows(plan.extra_slopes, plan.units, begin, end, sums + plan.width());
  }
  void add_rows(const T* from, std::int64_t columns, std::int64_t begin, std::int64_t end, T* to) const noexcept {
    T* sum = plan.bias_sums_of(begin) + plan.bias_columns();
    const DType dtype = in.x.dtype();
    reduce(ReduceOp::sum,
           ConstTensorView(from + begin * chunk.steps * columns, 0, dtype, {(end - begin) * chunk.steps, columns}),
           axes_mask({0}), TensorView(sum, 0, dtype, {columns}));
    for (std::int64_t i = 0; i < columns; ++i) to[i] = is_first() ? sum[i] : to[i] + sum[i];
  }

  void of_input(T* to) const noexcept {
    const std::int64_t inputs = plan.inputs, steps = chunk.steps;
    matmul(products(), in.kernel, view(plan.chunk_dx, inputs), {.transpose_b = true}, scratch);
    for (std::int64_t b = 0; b < plan.batch; ++b)
      copy_row(to + (b * plan.time + chunk.first) * inputs, plan.chunk_dx + b * steps * inputs, steps * inputs);
  }

  void run() const noexcept {
    if (out.x.base()) of_input(out.x.data<T>());
    if (out.kernel.base()) multiply(view(plan.chunk_x, plan.inputs), products(), out.kernel);
    if (!out.recurrent_kernel.base()) return;
    if (plan.has_bias_pair())  // What the recurrent products had in the third gate's place.
      for (std::int64_t r = 0; r < rows(); ++r) copy_row(third_gate(r), plan.extra_slopes + r * plan.units, plan.units);
    multiply(view(plan.chunk_h, plan.units), products(), out.recurrent_kernel);
    if (plan.is_gru() && !plan.has_bias_pair()) third_of_kernel(out.recurrent_kernel.data<T>());
  }

  // Without reset_after the third gate multiplies r h, not h.
  void third_of_kernel(T* kernel) const noexcept {
    const std::int64_t units = plan.units;
    for (std::int64_t r = 0; r < rows(); ++r) copy_row(plan.extra_slopes + r * units, third_gate(r), units);
    multiply(view(plan.chunk_extra, units), view(plan.extra_slopes, units),
             TensorView(plan.third, 0, in.x.dtype(), {units, units}));
    for (std::int64_t i = 0; i < units; ++i)
      copy_row(kernel + i * plan.width() + plan.first_columns(), plan.third + i * units, units);
  }
};

// Adds the groups' sums in order. The second biases, if there are two, differ in the third gate only.
template <class T>
void finish_bias(const RecurrentPlan<T>& plan, T* to) noexcept {
  const std::int64_t width = plan.width(), first = plan.first_columns();
  if (plan.batch == 0)
    return static_cast<void>(std::fill_n(to, width + (plan.bias_columns() > width ? width : 0), T(0)));
  T* sums = plan.bias_sums_of(0);
  for (std::int64_t b = plan.group_rows(); b < plan.batch; b += plan.group_rows())
    for (std::int64_t i = 0; i < plan.bias_columns(); ++i) sums[i] += plan.bias_sums_of(b)[i];
  copy_row(to, sums, width);
  if (plan.bias_columns() == width) return;
  copy_row(to + width, sums, first);
  copy_row(to + width + first, sums + width, plan.units);
}

// What computes the gates of segments again of which they were not kept.
template <class T>
RecurrentForward<T> forward_again(const RecurrentPlan<T>& plan, const RecurrentInputs& in) noexcept {
  RecurrentForward<T> forward = {plan,    recurrent_loops_of<T>(),     nullptr, nullptr, nullptr,
                                 nullptr, data_or_null<bool>(in.mask), nullptr, nullptr, nullptr,
                                 nullptr};
  forward.plan.panels = plan.forward_panels;
  forward.plan.third_panels = plan.forward_third_panels;
  if (plan.num_remade() > 0) forward.prepare(in, plan.kept_bias);
  return forward;
}

template <class T>
void run_backward(const RecurrentRule& options, const RecurrentInputs& in,
                  const RecurrentResults<ConstTensorView>& upstream, const RecurrentGradients& out,
                  std::span<const std::byte> workspace, std::span<std::byte> scratch) noexcept {
  // The plan has one kind of address; going back, those of the workspace are only read.
  RecurrentPlan<T> plan =
      plan_recurrent<T>(options, recurrent_sizes(in), true, const_cast<std::byte*>(workspace.data()), scratch.data());
  const Backward<T> backward = {plan,
                                recurrent_loops_of<T>(),
                                data_or_null<bool>(in.mask),
                                data_or_null<T>(upstream.sequence),
                                data_or_null<T>(upstream.last),
                                data_or_null<T>(upstream.final_h),
                                data_or_null<T>(upstream.final_c),
                                data_or_null<T>(out.initial_h),
                                data_or_null<T>(out.initial_c)};
  PLIMSOLL_CHECK(options.keep_for_gradient);
  PLIMSOLL_CHECK(workspace.size() >= plan.workspace_bytes && scratch.size() >= plan.scratch_bytes);
  const std::span<std::byte> for_products(plan.products, scratch.data() + scratch.size());
  backward.prepare(in);
  RecurrentForward<T> again = forward_again(plan, in);
  for (std::int64_t segment = plan.num_segments(); segment-- > 0;) {
    plan.select(segment);
    if (segment < plan.num_remade()) again.run_again(segment, in, for_products);
    for (std::int64_t high = plan.high; high > plan.low;) {
      const std::int64_t steps = std::min(plan.chunk_steps(), high - plan.low), low = high - steps;
      const Chunk chunk = {low, std::min(plan.place(low), plan.place(high - 1)), steps};
      const Products<T> products = {plan, in, out, for_products, chunk};
      parallel_for(plan.batch, plan.group_rows(), [&](std::int64_t begin, std::int64_t end) {
        backward.run_group(chunk, begin, end);
        products.prepare(begin, end);
      });
      products.run();
      high = low;
    }
  }
  if (out.bias.base()) finish_bias(plan, out.bias.data<T>());
}

}  // namespace

std::size_t recurrent_gradient_scratch_bytes(const RecurrentRule& options, const RecurrentSizes& sizes,
                                             DType dtype) noexcept {
  return dtype == f32 ? plan_recurrent<float>(options, sizes, true, nullptr, nullptr).scratch_bytes
                      : plan_recurrent<double>(options, sizes, true, nullptr, nullptr).scratch_bytes;
}

void recurrent_gradient(const RecurrentRule& options, const RecurrentInputs& in,
                        const RecurrentResults<ConstTensorView>& upstream, const RecurrentGradients& out,
                        std::span<const std::byte> workspace, std::span<std::byte> scratch) noexcept {
  if (in.x.dtype() == f32)
    run_backward<float>(options, in, upstream, out, workspace, scratch);
  else
    run_backward<double>(options, in, upstream, out, workspace, scratch);
}

}  // namespace plimsoll::internal
