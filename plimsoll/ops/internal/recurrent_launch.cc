// An LSTM without a mask, of f32, on devices with kernels of their own. Where rows are enough work for all processors
// of a device (rows do not depend on each other), one launch takes all steps; else there is one for each step, going
// back two. Products of some steps are made together. The workspace is as kernels/recurrent.h leaves it: the gates'
// values [batch, time, 4 units], then the cells before each step [batch, time, units].
#include <algorithm>

#include "plimsoll/kernels/reduce.h"
#include "plimsoll/ops/internal/recurrent_ops.h"
#include "plimsoll/ops/launch.h"

namespace plimsoll {
namespace {

constexpr std::int64_t kChunkRows = 128;  // About how many rows of all steps have their gradients multiplied together.

constexpr std::int64_t kRows = 4;  // Of one item.

bool takes_rows(const KernelQueue& queue, std::int64_t batch) noexcept {
  const auto processors = static_cast<std::int64_t>(queue.num_processors());
  return processors > 0 && batch >= kRows * processors;
}

std::size_t items_of(std::int64_t size, std::int64_t each) noexcept {
  return static_cast<std::size_t>((size + each - 1) / each);
}

bool is_launched(const RecurrentRule& rule, DType dtype) noexcept {
  return rule.cell == RecurrentCell::lstm && rule.unmasked && rule.remade == 0 && dtype == f32;
}

// Pieces of device memory, aligned.
class Pieces {
 public:
  explicit Pieces(std::byte* at, std::size_t bytes) noexcept : at_(at), left_(bytes) {}
  std::byte* take(std::int64_t elements) noexcept {
    const std::size_t bytes = (static_cast<std::size_t>(elements) * sizeof(float) + 63) / 64 * 64;
    std::byte* const piece = at_;
    fits_ = fits_ && bytes <= left_;
    at_ += bytes;
    left_ -= std::min(bytes, left_);
    return piece;
  }
  bool fits() const noexcept { return fits_; }

 private:
  std::byte* at_;
  std::size_t left_;
  bool fits_ = true;
};

struct Sizes {
  std::int64_t batch, time, inputs, units;
  bool reverse, in_step_order;

  Sizes(const Shape& x, const Shape& recurrent, const RecurrentRule& rule) noexcept
      : batch(x[0]),
        time(x[1]),
        inputs(x[2]),
        units(recurrent[0]),
        reverse(rule.reverse),
        in_step_order(rule.in_step_order) {}
  std::int64_t width() const noexcept { return 4 * units; }
  std::int64_t place(std::int64_t k) const noexcept { return reverse ? time - 1 - k : k; }
  std::int64_t output_place(std::int64_t k) const noexcept { return in_step_order ? k : place(k); }
};

// Element `index` of floats at an address.
std::byte* at(std::byte* base, std::int64_t index) noexcept { return base + index * std::int64_t{sizeof(float)}; }

TensorView matrix(std::byte* base, std::int64_t rows, std::int64_t columns) noexcept {
  return {base, 0, f32, {rows, columns}};
}

std::int64_t code(RecurrentActivation activation) noexcept { return static_cast<std::int64_t>(activation); }

}  // namespace

bool RecurrentOp::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  const ConstTensorView& x = run.in[0];
  if (!is_launched(options_, x.dtype()) || x.size() == 0) return false;
  const Sizes s(x.shape(), run.in[2].shape(), options_);
  const std::int64_t rows = s.batch * s.time, width = s.width();
  Pieces scratch(run.scratch.data(), run.scratch.size());
  const bool keep = options_.keep_for_gradient;
  std::byte* const gates = keep ? run.out[workspace_output()].bytes() : scratch.take(rows * width);
  std::byte* const cells = keep ? gates + (static_cast<std::size_t>(rows * width) * sizeof(float) + 63) / 64 * 64
                                : scratch.take(s.batch * s.units);
  std::byte* const both = scratch.take(2 * s.batch * s.units);
  std::byte* const states[] = {both, at(both, s.batch * s.units)};
  if (!scratch.fits()) return false;
  MatmulLaunch product;
  if (given_.bias) product.bias = &run.in[bias_input()];
  if (!launch_matmul(queue, x, run.in[1], matrix(gates, rows, width), rows, width, s.inputs, product)) return false;
  const std::byte* h = given_.initial_h ? run.in[initial_h_input()].bytes() : nullptr;
  const std::byte* c = given_.initial_c ? run.in[initial_c_input()].bytes() : nullptr;
  const std::int64_t cell_step = keep ? s.time * s.units : s.units;
  std::int64_t c_step = s.units;
  // The cells before the first step are kept for the gradient.
  if (keep && !launch_fill(queue, 0, matrix(cells, rows, s.units))) return false;
  if (keep && c) {
    StridedBox box;
    const std::int64_t sizes[] = {s.batch, s.units}, steps[] = {cell_step, 1};
    const TensorView to = matrix(at(cells, s.place(0) * s.units), s.batch, s.units);
    if (!box.set(2, sizes, steps) || !launch_placed(queue, run.in[initial_c_input()], box, to)) return false;
  }
  if (takes_rows(queue, s.batch)) {
    KernelCall call("lstm_rows");
    call.out(gates).in(run.in[2].bytes()).in(h).in(c).out(both).out(cells).out(run.out[0].bytes());
    call.out(run.out[1].bytes()).out(run.out[2].bytes()).integer(s.batch).integer(s.units).integer(s.time);
    call.integer(s.reverse).integer(keep).integer(return_sequences_).integer(s.in_step_order);
    call.integer(h ? 1 : 0).integer(c ? 1 : 0);
    call.integer(code(options_.activation)).integer(code(options_.recurrent_activation));
    return queue.run(call.items(items_of(s.batch, kRows)));
  }
  for (std::int64_t k = 0; k < s.time; ++k) {
    const bool is_last = k + 1 == s.time;
    std::byte* const h_next = is_last ? run.out[1].bytes() : states[k % 2];
    std::byte* const c_next = is_last ? run.out[2].bytes() : keep ? at(cells, s.place(k + 1) * s.units) : cells;
    const std::int64_t c_next_step = is_last ? s.units : cell_step;
    const bool has_y = return_sequences_ || is_last;
    std::byte* const y = return_sequences_ ? at(run.out[0].bytes(), s.output_place(k) * s.units) : run.out[0].bytes();
    KernelCall call("lstm_step");
    call.out(at(gates, s.place(k) * width)).in(run.in[2].bytes()).in(h).in(c).out(h_next).out(c_next);
    call.out(has_y ? y : nullptr).integer(s.batch).integer(s.units).integer(s.time * width).integer(c_step);
    call.integer(c_next_step).integer(return_sequences_ ? s.time * s.units : s.units).integer(h ? 1 : 0);
    call.integer(c ? 1 : 0).integer(has_y ? 1 : 0);
    call.integer(code(options_.activation)).integer(code(options_.recurrent_activation));
    if (!queue.run(call.items(items_of(s.units, 16), items_of(s.batch, kRows)))) return false;
    h = h_next;
    c = c_next;
    c_step = c_next_step;
  }
  return true;
}

namespace {

// The operands of a gradient; null: absent.
struct Operands {
  ConstTensorView x, kernel, recurrent;
  const std::byte *gates = nullptr, *cells = nullptr;
  const std::byte *initial_h = nullptr, *dy = nullptr, *d_h = nullptr, *d_c = nullptr;
  bool dy_is_sequence = false;
  const TensorView *dx = nullptr, *d_kernel = nullptr, *d_recurrent = nullptr, *d_bias = nullptr;
  const TensorView *d_initial_h = nullptr, *d_initial_c = nullptr;
};

// Steps [low, low + steps) of all rows, the slopes of each step's rows side by side.
class Backward {
 public:
  Backward(KernelQueue& queue, const Sizes& sizes, const RecurrentRule& rule, const Operands& operands,
           std::span<std::byte> scratch) noexcept
      : queue_(queue), s_(sizes), rule_(rule), o_(operands) {
    chunk_ = std::clamp<std::int64_t>((kChunkRows + s_.batch - 1) / s_.batch, 1, s_.time);
    const std::int64_t rows = chunk_ * s_.batch, state = s_.batch * s_.units;
    Pieces pieces(scratch.data(), scratch.size());
    slopes_ = pieces.take(rows * s_.width());
    x_ = pieces.take(rows * s_.inputs);
    dx_ = pieces.take(rows * s_.inputs);
    h_ = pieces.take(rows * s_.units);
    dh_ = pieces.take(state);
    dc_ = pieces.take(state);
    bias_ = pieces.take(s_.width());
    fits_ = pieces.fits();
  }

  bool run() const noexcept {
    if (!fits_) return false;
    for (std::int64_t high = s_.time; high > 0; high -= std::min(chunk_, high)) {
      const std::int64_t steps = std::min(chunk_, high);
      const std::int64_t low = high - steps;
      if (takes_rows(queue_, s_.batch)) {
        KernelCall call = call_of("lstm_back_rows", low, high - 1);
        if (!queue_.run(call.integer(o_.d_initial_h ? 1 : 0).items(items_of(s_.batch, kRows)))) return false;
      } else {
        for (std::int64_t k = high - 1; k >= low; --k)
          if (!step(k, low)) return false;
      }
      if (!multiply(low, steps)) return false;
    }
    const auto copy_state = [&](std::byte* from, const TensorView* to) {
      return !to || launch_copy(queue_, matrix(from, s_.batch, s_.units), *to);
    };
    return copy_state(dh_, o_.d_initial_h) && copy_state(dc_, o_.d_initial_c);
  }

 private:
  // Of steps [low, high], whose slopes begin with those of step `low`.
  KernelCall call_of(const char* kernel, std::int64_t low, std::int64_t high) const noexcept {
    KernelCall call(kernel);
    call.out(slopes_).out(dh_).out(dc_).out(h_).in(o_.gates).in(o_.cells).in(o_.initial_h).in(o_.dy).in(o_.d_h);
    call.in(o_.d_c).in(o_.recurrent.bytes()).integer(s_.batch).integer(s_.units).integer(s_.time).integer(s_.reverse);
    call.integer(low).integer(high).integer(o_.dy_is_sequence ? s_.time * s_.units : s_.units);
    call.integer(o_.dy_is_sequence).integer(s_.in_step_order).integer(o_.initial_h ? 1 : 0).integer(o_.dy ? 1 : 0);
    call.integer(o_.d_h ? 1 : 0).integer(o_.d_c ? 1 : 0);
    return call.integer(code(rule_.activation)).integer(code(rule_.recurrent_activation));
  }

  // The slopes of step k of a chunk that begins with step `low`; then dh of the step before.
  bool step(std::int64_t k, std::int64_t low) const noexcept {
    KernelCall call = call_of("lstm_back", low, k);
    if (!queue_.run(call.items(items_of(s_.units, 16), static_cast<std::size_t>(s_.batch)))) return false;
    if (k == 0 && !o_.d_initial_h) return true;
    MatmulLaunch product;
    product.transpose_b = true;
    std::byte* const slopes = at(slopes_, (k - low) * s_.batch * s_.width());
    return launch_matmul(queue_, matrix(slopes, s_.batch, s_.width()), o_.recurrent, matrix(dh_, s_.batch, s_.units),
                         s_.batch, s_.units, s_.width(), product);
  }

  // Adds the contributions of a chunk's slopes to the gradients.
  bool multiply(std::int64_t low, std::int64_t steps) const noexcept {
    const std::int64_t rows = steps * s_.batch, width = s_.width();
    const bool is_first = low + steps == s_.time;
    const TensorView slopes = matrix(slopes_, rows, width);
    StridedBox box;  // Of the chunk in x, its steps first.
    const std::int64_t sizes[] = {steps, s_.batch, s_.inputs};
    const std::int64_t jumps[] = {s_.reverse ? -s_.inputs : s_.inputs, s_.time * s_.inputs, 1};
    box.start = s_.place(low) * s_.inputs;
    if (!box.set(3, sizes, jumps)) return false;
    if (o_.dx) {
      MatmulLaunch product;
      product.transpose_b = true;
      const TensorView dx = matrix(dx_, rows, s_.inputs);
      if (!launch_matmul(queue_, slopes, o_.kernel, dx, rows, s_.inputs, width, product) ||
          !launch_placed(queue_, dx, box, *o_.dx))
        return false;
    }
    MatmulLaunch sum;
    sum.transpose_a = true;
    sum.accumulate = !is_first;
    if (o_.d_kernel) {
      const TensorView x = matrix(x_, rows, s_.inputs);
      if (!launch_strided(queue_, o_.x, box, x) ||
          !launch_matmul(queue_, x, slopes, *o_.d_kernel, s_.inputs, width, rows, sum))
        return false;
    }
    if (o_.d_recurrent &&
        !launch_matmul(queue_, matrix(h_, rows, s_.units), slopes, *o_.d_recurrent, s_.units, width, rows, sum))
      return false;
    return !o_.d_bias || add_to_bias(slopes, is_first);
  }

  bool add_to_bias(const TensorView& slopes, bool is_first) const noexcept {
    const TensorView sums(is_first ? o_.d_bias->bytes() : bias_, 0, f32, {s_.width()});
    if (!launch_reduce(queue_, "reduce.sum.f32", slopes, axes_mask({0}), sums)) return false;
    return is_first || launch_binary(queue_, "add", *o_.d_bias, sums, *o_.d_bias);
  }

  KernelQueue& queue_;
  const Sizes& s_;
  const RecurrentRule& rule_;
  const Operands& o_;
  std::int64_t chunk_ = 1;
  std::byte *slopes_ = nullptr, *x_ = nullptr, *dx_ = nullptr, *h_ = nullptr, *dh_ = nullptr, *dc_ = nullptr;
  std::byte* bias_ = nullptr;
  bool fits_ = false;
};

}  // namespace

bool RecurrentGradient::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  if (!is_launched(options_, run.in[0].dtype()) || run.in[0].size() == 0) return false;
  const Sizes sizes(run.in[0].shape(), run.in[2].shape(), options_);
  Operands o;
  o.x = run.in[0], o.kernel = run.in[1], o.recurrent = run.in[2];
  o.gates = run.in[3].bytes();
  o.cells =
      o.gates + (static_cast<std::size_t>(sizes.batch * sizes.time * sizes.width()) * sizeof(float) + 63) / 64 * 64;
  std::size_t next = 4;
  if (parts_.reads_initial_h) o.initial_h = run.in[next++].bytes();
  if (parts_.d_output) o.dy = run.in[next++].bytes();
  if (parts_.d_h) o.d_h = run.in[next++].bytes();
  if (parts_.d_c) o.d_c = run.in[next++].bytes();
  o.dy_is_sequence = parts_.return_sequences;
  next = 0;
  const auto take = [&](bool asked, const TensorView*& to) {
    if (asked) to = &run.out[next++];
  };
  take(parts_.x, o.dx);
  take(parts_.kernel, o.d_kernel);
  take(parts_.recurrent_kernel, o.d_recurrent);
  take(parts_.bias, o.d_bias);
  take(parts_.initial_h, o.d_initial_h);
  take(parts_.initial_c, o.d_initial_c);
  return Backward(queue, sizes, options_, o, run.scratch).run();
}

}  // namespace plimsoll
