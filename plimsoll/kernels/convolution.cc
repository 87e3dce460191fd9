#include "plimsoll/kernels/convolution.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/convolution_filter.h"
#include "plimsoll/kernels/internal/convolution_loops.h"
#include "plimsoll/kernels/internal/convolution_sweep.h"
#include "plimsoll/kernels/internal/convolution_winograd.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kSlots = 16;             // Parts of a batch in progress at once, each with its own copy.
constexpr std::int64_t kCopyBytes = 128 << 10;  // A copy stays in the second cache,
constexpr std::int64_t kPassBytes = 1 << 20;    // together with panels of a large filter.

constexpr std::int64_t kAnyPixels = std::numeric_limits<std::int64_t>::max();

struct TapSpan {
  std::int64_t begin, end;
  friend bool operator==(const TapSpan&, const TapSpan&) = default;
};

// Taps of an output that are not padding.
TapSpan taps_inside(const SweepAxis& axis, std::int64_t output) noexcept {
  const std::int64_t first = axis.first(output);
  TapSpan taps = {0, axis.taps};
  while (taps.begin < taps.end && first + taps.begin * axis.tap_step < 0) ++taps.begin;
  while (taps.end > taps.begin && first + (taps.end - 1) * axis.tap_step >= axis.inputs) --taps.end;
  return taps;
}

// Outputs none of whose taps is padding.
TapSpan outputs_inside(const SweepAxis& axis) noexcept {
  TapSpan outputs = {0, axis.outputs};
  while (outputs.begin < outputs.end && axis.first(outputs.begin) < 0) ++outputs.begin;
  while (outputs.end > outputs.begin && axis.first(outputs.end - 1) + axis.span(1) > axis.inputs) --outputs.end;
  return outputs;
}

// Output channels of a group.
struct ColumnSpan {
  std::int64_t begin, end;
};

// One sweep, how it is split and what it needs: panels of the filter, the runs, and a copy per slot.
struct GatherPlan {
  const ConvolutionLoops& loops;
  Sweep sweep;
  std::int64_t groups, group_channels, group_outputs;
  bool backward, depthwise;
  std::int64_t size;  // Bytes of an element.
  SweepCut cut;
  InputLayout layout;
  std::int64_t slots;

  GatherPlan(const ConvolutionSizes& s, const Sweep& with, bool is_backward, DType dtype) noexcept
      : loops(convolution_loops().of(dtype)),
        sweep(with),
        groups(s.groups),
        group_channels(is_backward ? s.group_outputs() : s.group_channels()),
        group_outputs(is_backward ? s.group_channels() : s.group_outputs()),
        backward(is_backward),
        depthwise(s.is_depthwise()),
        size(static_cast<std::int64_t>(size_of(dtype))) {
    const std::int64_t work = std::max<std::int64_t>(depth() * sweep.output_channels, 1);  // Products per pixel.
    const std::int64_t limit = depthwise ? std::numeric_limits<std::int64_t>::max() : kCopyBytes / size;
    cut = cut_sweep(sweep, 0, limit, kAnyPixels, kSlots, std::max<std::int64_t>(24, 200'000 / work));
    if (depthwise)
      layout = {false, sweep.across.inputs, sweep.channels, 0};
    else
      layout = input_layout(sweep, cut, sweep.channels, false);
    slots = s.at_once(std::min(kSlots, units()));
  }

  std::int64_t taps() const noexcept { return sweep.down.taps * sweep.across.taps; }
  std::int64_t depth() const noexcept { return taps() * group_channels; }  // Products per output.
  std::int64_t units() const noexcept { return sweep.images * cut.blocks(); }
  bool merges() const noexcept { return !depthwise && groups == 1 && sweep.across.tap_step == 1; }
  std::int64_t num_runs() const noexcept { return depthwise ? 0 : merges() ? sweep.down.taps : taps(); }
  std::int64_t runs_of_row_tap() const noexcept { return merges() ? 1 : sweep.across.taps; }

  TapSpan row_taps(std::int64_t output_row) const noexcept { return taps_inside(sweep.down, output_row); }
  // Whether enough is padding that skipping it pays: an eighth of the rows.
  bool splits_rows() const noexcept {
    const SweepAxis& axis = sweep.down;
    if (axis.outputs == 0 || axis.taps == 0) return false;
    const std::int64_t outside = std::max<std::int64_t>(0, -axis.offset) +
                                 std::max<std::int64_t>(0, axis.offset + axis.span(axis.outputs) - axis.inputs);
    return outside * 8 >= axis.span(axis.outputs);
  }
  // Output channels whose panels are packed at once, and stay in the second cache while all pixels are computed.
  std::int64_t pass_columns() const noexcept {
    const std::int64_t panel = 2 * loops.width, most = kPassBytes / std::max<std::int64_t>(1, depth() * panel * size);
    return groups > 1 ? group_outputs : std::min(group_outputs, std::max<std::int64_t>(1, most) * panel);
  }
  // The size of one group's panels of a pass.
  std::int64_t panel_bytes() const noexcept { return depth() * loops.padded_columns(pass_columns()) * size; }
  std::int64_t filter_bytes() const noexcept {
    return round_up(depthwise ? taps() * groups * size : groups * panel_bytes(), 64);
  }
  std::int64_t runs_bytes() const noexcept {
    return round_up(num_runs() * static_cast<std::int64_t>(sizeof(GatherRun)), 64);
  }
  std::int64_t copy_bytes() const noexcept { return round_up(layout.copy_elements * size, 64); }
  std::int64_t scratch_bytes() const noexcept { return filter_bytes() + runs_bytes() + slots * copy_bytes(); }
  // Position of tap t, in the order of the runs, in the filter.
  std::int64_t filter_tap(std::int64_t t, std::int64_t filter_columns) const noexcept {
    const std::int64_t row = sweep.down.tap + t / sweep.across.taps * sweep.down.filter_step;
    return row * filter_columns + sweep.across.tap + t % sweep.across.taps * sweep.across.filter_step;
  }
};

struct GatherCall {
  const GatherPlan& plan;
  const std::byte *x, *filter, *bias;
  std::byte* y;
  std::int64_t filter_columns;
  const Rectifier& rectifier;
  std::byte* scratch;

  std::byte* panels() const noexcept { return scratch; }
  GatherRun* runs() const noexcept { return reinterpret_cast<GatherRun*>(scratch + plan.filter_bytes()); }
  std::byte* copy(std::int64_t slot) const noexcept {
    return scratch + plan.filter_bytes() + plan.runs_bytes() + slot * plan.copy_bytes();
  }

  void make_runs() const noexcept {
    const Sweep& s = plan.sweep;
    const std::int64_t row_pitch = plan.layout.row_pitch();
    const std::int64_t across = plan.merges() ? 1 : s.across.taps;
    const std::int64_t length = plan.group_channels * (plan.merges() ? s.across.taps : 1);
    for (std::int64_t i = 0; i < plan.num_runs(); ++i)
      runs()[i] = {i / across * s.down.tap_step * row_pitch + i % across * s.across.tap_step * s.channels, length};
  }

  // Some columns of the filter, rows in the order of the runs: [group][panel][tap][channel][column].
  void pack_filter(const ColumnSpan& some) const noexcept {
    const std::int64_t channels_out = plan.backward ? plan.sweep.channels : plan.sweep.output_channels;
    const std::int64_t columns = 2 * plan.loops.width, panels_of_group = divide_up(some.end - some.begin, columns);
    const std::int64_t depth = plan.group_channels, count = plan.groups * panels_of_group * plan.taps();
    const std::int64_t rows_of_tap = plan.backward ? plan.group_outputs : plan.group_channels;
    const std::int64_t grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, depth * columns));
    parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t t = i % plan.taps(), panel = i / plan.taps(), group = panel / panels_of_group;
        const std::int64_t column = some.begin + panel % panels_of_group * columns;
        const std::int64_t n = std::min(columns, some.end - column), padded = plan.loops.panel_columns(n);
        const std::int64_t tap = filter_tap(t) * rows_of_tap * channels_out;
        const std::int64_t start =
            plan.backward ? tap + column * channels_out + group * depth : tap + group * plan.group_outputs + column;
        std::byte* const to = panels() + group * plan.panel_bytes() +
                              ((column - some.begin) * plan.depth() + t * depth * padded) * plan.size;
        plan.loops.pack(filter + start * plan.size, depth, plan.backward ? 1 : channels_out,
                        plan.backward ? channels_out : 1, n, to);
      }
    });
  }
  std::int64_t filter_tap(std::int64_t t) const noexcept { return plan.filter_tap(t, filter_columns); }

  void copy_taps() const noexcept {
    const std::int64_t bytes = plan.groups * plan.size;
    for (std::int64_t t = 0; t < plan.taps(); ++t)
      std::memcpy(panels() + t * bytes, filter + filter_tap(t) * bytes, static_cast<std::size_t>(bytes));
  }

  // Read in place: taps that meet padding are left out.
  void run_depthwise(const SweepBlock& block) const noexcept {
    const Sweep& s = plan.sweep;
    const std::int64_t input_row = s.across.inputs * plan.groups, output_row = s.output_columns * plan.groups;
    const std::byte* image = x + block.image * s.down.inputs * input_row * plan.size;
    std::byte* results = y + block.image * output_rows * output_row * plan.size;
    const TapSpan inside = outputs_inside(s.across);
    Depthwise d = {};
    d.x_step = s.across.input_step * plan.groups, d.y_step = s.across.step * plan.groups;
    d.tap_row_step = s.down.tap_step * input_row, d.tap_column_step = s.across.tap_step * plan.groups;
    d.filter_row_step = s.across.taps * plan.groups;
    d.channels = plan.groups, d.bias = bias, d.rectifier = rectifier;
    for (std::int64_t u = block.row; u < block.row + block.rows; ++u) {
      const TapSpan down = taps_inside(s.down, u);
      const std::int64_t input = (s.down.first(u) + down.begin * s.down.tap_step) * input_row;
      const std::int64_t output = (s.down.start + u * s.down.step) * output_row;
      d.tap_rows = down.end - down.begin;
      for (std::int64_t v = block.column, end = block.column + block.columns, next; v < end; v = next) {
        next = v >= inside.begin && v < inside.end ? std::min(end, inside.end) : v + 1;
        const TapSpan across = taps_inside(s.across, v);
        d.tap_columns = across.end - across.begin;
        const bool any = d.tap_rows > 0 && d.tap_columns > 0;
        const std::int64_t at = any ? input + (s.across.first(v) + across.begin * s.across.tap_step) * plan.groups : 0;
        d.x = image + at * plan.size;
        d.y = results + (output + (s.across.start + v * s.across.step) * plan.groups) * plan.size;
        d.filter = panels() + (down.begin * s.across.taps + across.begin) * plan.groups * plan.size;
        d.pixels = next - v;
        plan.loops.depthwise(d);
      }
    }
  }

  void run_block(const SweepBlock& block, std::byte* copy, const ColumnSpan& some) const noexcept {
    if (plan.depthwise) return run_depthwise(block);
    const Sweep& s = plan.sweep;
    const BlockInput in = block_input(s, plan.layout, block, x, static_cast<std::size_t>(plan.size), copy);
    const std::int64_t image_columns = s.output_columns, image_rows = output_rows;
    const std::int64_t row = s.down.start + block.row * s.down.step;
    const std::int64_t column = s.across.start + block.column * s.across.step;
    std::byte* out = y + ((block.image * image_rows + row) * image_columns + column) * s.output_channels * plan.size;
    const PixelGrid<const void> from = {in.data, s.down.input_step * in.row_pitch, s.across.input_step * in.pitch};
    const PixelGrid<void> into = {out, s.down.step * image_columns * s.output_channels,
                                  s.across.step * s.output_channels};
    // Rows whose taps meet the same number of padding rows run together; products with padding are skipped.
    const bool split = plan.splits_rows();
    for (std::int64_t u = 0, end; u < block.rows; u = end) {
      const TapSpan taps = plan.row_taps(block.row + u);
      end = split ? u + 1 : block.rows;
      while (end < block.rows && plan.row_taps(block.row + end) == taps) ++end;
      gather_rows({in.data + u * from.row_step * plan.size, from.row_step, from.column_step},
                  {out + u * into.row_step * plan.size, into.row_step, into.column_step}, end - u, block.columns,
                  split ? taps : TapSpan{0, s.down.taps}, some);
    }
  }

  // Some channels of each group, of a grid of outputs, of some of the filter's rows.
  void gather_rows(const PixelGrid<const std::byte>& from, const PixelGrid<std::byte>& into, std::int64_t rows,
                   std::int64_t row_pixels, TapSpan taps, const ColumnSpan& some) const noexcept {
    const std::int64_t columns = 2 * plan.loops.width, runs_of_tap = plan.runs_of_row_tap();
    const std::int64_t skipped = taps.begin * plan.sweep.across.taps * plan.group_channels;  // Rows of panels.
    for (std::int64_t group = 0; group < plan.groups; ++group)
      for (std::int64_t c = some.begin; c < some.end; c += columns) {
        const std::int64_t channel = group * plan.group_outputs + c, n = std::min(columns, some.end - c);
        Gather gather = {};
        gather.x = {from.data + group * plan.group_channels * plan.size, from.row_step, from.column_step};
        gather.y = {into.data + channel * plan.size, into.row_step, into.column_step};
        gather.rows = rows, gather.columns = row_pixels;
        gather.runs = runs() + taps.begin * runs_of_tap;
        gather.num_runs = (taps.end - taps.begin) * runs_of_tap;
        gather.filter = panels() + group * plan.panel_bytes() +
                        ((c - some.begin) * plan.depth() + skipped * plan.loops.panel_columns(n)) * plan.size;
        gather.n = n;
        if (c + columns < some.end)
          gather.next_filter = static_cast<const std::byte*>(gather.filter) + columns * plan.depth() * plan.size;
        gather.bias = bias ? bias + channel * plan.size : nullptr;
        gather.rectifier = rectifier;
        plan.loops.gather(gather);
      }
  }

  void run() const noexcept {
    if (plan.units() == 0 || plan.sweep.output_channels == 0) return;
    make_runs();
    if (plan.depthwise) copy_taps();
    const std::int64_t columns = plan.depthwise ? plan.group_outputs : plan.pass_columns();
    for (std::int64_t c = 0; c < plan.group_outputs; c += columns) {
      const ColumnSpan some = {c, std::min(plan.group_outputs, c + columns)};
      if (!plan.depthwise) pack_filter(some);
      parallel_for(plan.slots, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t slot = begin; slot < end; ++slot)
          for (std::int64_t i = slot * plan.units() / plan.slots; i < (slot + 1) * plan.units() / plan.slots; ++i)
            run_block(block_of(plan.sweep, plan.cut, i), copy(slot), some);
      });
    }
  }

  std::int64_t output_rows;
};

const float* floats(const ConstTensorView& view) noexcept {
  return static_cast<const float*>(static_cast<const void*>(view.bytes()));
}
float* floats(const TensorView& view) noexcept { return static_cast<float*>(static_cast<void*>(view.bytes())); }

// All at once: where strides are longer than the filter, most pixels get nothing.
void clear(const TensorView& x) noexcept {
  constexpr std::int64_t kGrain = 1 << 18;
  parallel_for(static_cast<std::int64_t>(x.nbytes()), kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::memset(x.bytes() + begin, 0, static_cast<std::size_t>(end - begin));
  });
}

}  // namespace

bool is_convolution_supported(DType dtype) noexcept { return dtype == f32 || dtype == f64; }

std::size_t convolution_scratch_bytes(ConvolutionPass pass, const Shape& x, const Shape& filter, const Shape& y,
                                      const Convolution& convolution, DType dtype) noexcept {
  const ConvolutionSizes sizes = convolution_sizes(x, filter, y, convolution);
  std::int64_t bytes = 0;
  const bool filters = pass == ConvolutionPass::filter_gradient;
  if (filters && is_winograd_filter(sizes, convolution.window, dtype)) return winograd_filter_scratch_bytes(sizes);
  if (filters) return filter_gradient_scratch_bytes(sizes, convolution.window, dtype);
  if (is_winograd(sizes, convolution.window, dtype))
    return winograd_scratch_bytes(sizes, pass == ConvolutionPass::input_gradient);
  if (pass == ConvolutionPass::forward)
    bytes = GatherPlan(sizes, forward_sweep(sizes, convolution.window), false, dtype).scratch_bytes();
  else
    for (std::int64_t phase = 0; phase < phases(sizes, convolution.window); ++phase)
      bytes = std::max(
          bytes, GatherPlan(sizes, backward_sweep(sizes, convolution.window, phase), true, dtype).scratch_bytes());
  return static_cast<std::size_t>(bytes);
}

void convolution(const ConstTensorView& x, const ConstTensorView& filter, const TensorView& y,
                 const Convolution& convolution, const ConvolutionFinish& finish,
                 std::span<std::byte> scratch) noexcept {
  PLIMSOLL_CHECK(is_convolution_supported(x.dtype()));
  const ConvolutionSizes sizes = convolution_sizes(x.shape(), filter.shape(), y.shape(), convolution);
  if (is_winograd(sizes, convolution.window, x.dtype()))
    return winograd(
        sizes, convolution.window,
        {floats(x), floats(filter), finish.bias ? floats(*finish.bias) : nullptr, floats(y), finish.rectifier, false},
        scratch);
  const GatherPlan plan(sizes, forward_sweep(sizes, convolution.window), false, x.dtype());
  PLIMSOLL_CHECK(scratch.size() >= static_cast<std::size_t>(plan.scratch_bytes()));
  GatherCall{plan,
             x.bytes(),
             filter.bytes(),
             finish.bias ? finish.bias->bytes() : nullptr,
             y.bytes(),
             filter.shape()[1],
             finish.rectifier,
             scratch.data(),
             sizes.output_rows}
      .run();
}

void convolution_input_gradient(const ConstTensorView& dy, const ConstTensorView& filter, const TensorView& dx,
                                const Convolution& convolution, const ConvolutionFinish& finish,
                                std::span<std::byte> scratch) noexcept {
  PLIMSOLL_CHECK(is_convolution_supported(dy.dtype()));
  const ConvolutionSizes sizes = convolution_sizes(dx.shape(), filter.shape(), dy.shape(), convolution);
  if (is_winograd(sizes, convolution.window, dy.dtype()))
    return winograd(
        sizes, convolution.window,
        {floats(dy), floats(filter), finish.bias ? floats(*finish.bias) : nullptr, floats(dx), finish.rectifier, true},
        scratch);
  const bool are_cleared = !finish.bias && sizes.taps() < phases(sizes, convolution.window);
  if (are_cleared) clear(dx);
  for (std::int64_t phase = 0; phase < phases(sizes, convolution.window); ++phase) {
    const GatherPlan plan(sizes, backward_sweep(sizes, convolution.window, phase), true, dy.dtype());
    if (are_cleared && plan.taps() == 0) continue;
    PLIMSOLL_CHECK(scratch.size() >= static_cast<std::size_t>(plan.scratch_bytes()));
    GatherCall{plan,       dy.bytes(),        filter.bytes(),   finish.bias ? finish.bias->bytes() : nullptr,
               dx.bytes(), filter.shape()[1], finish.rectifier, scratch.data(),
               sizes.rows}
        .run();
  }
}

void convolution_filter_gradient(const ConstTensorView& x, const ConstTensorView& dy, const TensorView& dfilter,
                                 const Convolution& convolution, std::span<std::byte> scratch) noexcept {
  PLIMSOLL_CHECK(is_convolution_supported(x.dtype()));
  const ConvolutionSizes sizes = convolution_sizes(x.shape(), dfilter.shape(), dy.shape(), convolution);
  if (is_winograd_filter(sizes, convolution.window, x.dtype()))
    return winograd_filter_gradient(sizes, convolution.window, floats(x), floats(dy), floats(dfilter), scratch);
  filter_gradient(sizes, convolution.window, x.dtype(), x.bytes(), dy.bytes(), dfilter.bytes(), scratch);
}

}  // namespace plimsoll::internal
