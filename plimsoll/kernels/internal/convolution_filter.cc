#include "plimsoll/kernels/internal/convolution_filter.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/convolution_loops.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kWorkers = 16;            // Parts of the work, each with its own copies.
constexpr std::int64_t kBlockBytes = 256 << 10;  // For x and dy, which stay in the second cache.
constexpr std::int64_t kTileBytes = 24 << 10;    // What a tile reads of them stays in the first.
constexpr std::int64_t kPieceBytes = 1 << 20;    // For all sums in scratch.
constexpr std::int64_t kLeastRows = 48;          // Of the filter, for one worker.

struct FilterPlan {
  const ConvolutionLoops& loops;
  const ConvolutionSizes& sizes;
  Sweep sweep;
  std::int64_t size;  // Bytes of an element.
  SweepCut cut;
  InputLayout layout;
  std::int64_t pieces, row_parts;  // Each part of each piece is somebody's work,
  std::int64_t together, lanes;    // of so many pieces at a time, in so many lanes.

  FilterPlan(const ConvolutionSizes& s, const Window& window, DType dtype) noexcept
      : loops(convolution_loops().of(dtype)),
        sizes(s),
        sweep(forward_sweep(s, window)),
        size(static_cast<std::int64_t>(size_of(dtype))) {
    const std::int64_t work = std::max<std::int64_t>(rows() * s.output_channels, 1);
    const std::int64_t pixel = s.channels + loops.panel_columns(s.group_outputs());
    const std::int64_t pixels = std::clamp<std::int64_t>(kTileBytes / size / pixel, 128, 512);
    cut = cut_sweep(sweep, s.output_channels, kBlockBytes / size, pixels, kWorkers,
                    std::max<std::int64_t>(64, 200'000 / work));
    layout = input_layout(sweep, cut, x_pitch(), x_pitch() != s.channels);
    const std::int64_t most = kPieceBytes / std::max<std::int64_t>(filter_elements() * size, 1) + 1;
    pieces = std::clamp<std::int64_t>(std::min(units(), most), 1, kWorkers);
    row_parts = s.is_depthwise() ? 1 : std::clamp<std::int64_t>(rows() / kLeastRows, 1, kWorkers / pieces);
    lanes = s.at_once(pieces * row_parts);
    together = std::max<std::int64_t>(1, lanes / row_parts);
  }

  std::int64_t rows() const noexcept { return sizes.taps() * sizes.group_channels(); }
  std::int64_t filter_elements() const noexcept { return rows() * sizes.output_channels; }
  std::int64_t units() const noexcept { return sweep.images * cut.blocks(); }
  // Pixels whose distance is a multiple of many cache lines would evict each other from the first cache.
  std::int64_t x_pitch() const noexcept {
    const std::int64_t line = 64 / size;
    return !sizes.is_depthwise() && sizes.channels % (4 * line) == 0 ? sizes.channels + line : sizes.channels;
  }
  // dy is copied where vectors would reach beyond it, or where its pixels would evict each other.
  bool packs_dy() const noexcept {
    return !sizes.is_depthwise() && (sizes.group_outputs() % loops.width != 0 || sizes.output_channels * size > 128);
  }
  std::int64_t offsets_bytes() const noexcept { return round_up(rows() * 8, 64); }
  std::int64_t sums_bytes() const noexcept { return round_up(filter_elements() * size, 64); }
  std::int64_t x_bytes() const noexcept { return round_up(layout.copy_elements * size, 64); }
  std::int64_t dy_bytes() const noexcept {
    if (!packs_dy()) return 0;
    return round_up(cut.rows * cut.columns * loops.panel_columns(sizes.group_outputs()) * size, 64);
  }
  // Of pieces but the first, which has its sums where all of them are added up.
  std::int64_t num_sums() const noexcept { return std::min(pieces - 1, together); }
  std::int64_t scratch_bytes() const noexcept {
    return offsets_bytes() + num_sums() * sums_bytes() + lanes * (x_bytes() + dy_bytes());
  }
};

struct FilterCall {
  const FilterPlan& plan;
  const std::byte *x, *dy;
  std::byte *dfilter, *scratch;

  std::int64_t* offsets() const noexcept { return reinterpret_cast<std::int64_t*>(scratch); }
  std::byte* sums(std::int64_t piece) const noexcept {
    return piece == 0 ? dfilter : scratch + plan.offsets_bytes() + (piece - 1) % plan.together * plan.sums_bytes();
  }
  std::byte* copies(std::int64_t lane) const noexcept {
    return scratch + plan.offsets_bytes() + plan.num_sums() * plan.sums_bytes() +
           lane * (plan.x_bytes() + plan.dy_bytes());
  }

  void make_offsets() const noexcept {
    const Sweep& s = plan.sweep;
    const std::int64_t row_pitch = plan.layout.row_pitch(), depth = plan.sizes.group_channels();
    for (std::int64_t k = 0; k < plan.rows(); ++k) {
      const std::int64_t tap = k / depth, row = tap / s.across.taps, column = tap % s.across.taps;
      offsets()[k] = row * s.down.tap_step * row_pitch + column * s.across.tap_step * plan.layout.pitch + k % depth;
    }
  }

  const std::byte* dy_of(const SweepBlock& block) const noexcept {
    const ConvolutionSizes& s = plan.sizes;
    const std::int64_t pixel = (block.image * s.output_rows + block.row) * s.output_columns + block.column;
    return dy + pixel * s.output_channels * plan.size;
  }

  // n columns of a block's dy, from `column` on: in place, or copied side by side.
  PixelGrid<const void> panel_of(const SweepBlock& block, std::int64_t column, std::int64_t n,
                                 std::byte* copy) const noexcept {
    const ConvolutionSizes& s = plan.sizes;
    const std::byte* from = dy_of(block) + column * plan.size;
    const std::int64_t row_step = s.output_columns * s.output_channels, columns = plan.loops.panel_columns(n);
    if (!plan.packs_dy()) return {from, row_step, s.output_channels};
    for (std::int64_t row = 0; row < block.rows; ++row, from += row_step * plan.size)
      plan.loops.pack(from, block.columns, s.output_channels, 1, n, copy + row * block.columns * columns * plan.size);
    return {copy, block.columns * columns, columns};
  }

  void add_block(const SweepBlock& block, std::int64_t worker, std::byte* copy, bool accumulate) const noexcept {
    const ConvolutionSizes& s = plan.sizes;
    const std::int64_t piece = worker / plan.row_parts, part = worker % plan.row_parts;
    const BlockInput in = block_input(plan.sweep, plan.layout, block, x, static_cast<std::size_t>(plan.size), copy);
    const PixelGrid<const void> from = {in.data, plan.sweep.down.input_step * in.row_pitch,
                                        plan.sweep.across.input_step * in.pitch};
    std::byte* panel = copy + plan.x_bytes();
    if (s.is_depthwise()) {
      const PixelGrid<const void> grid = panel_of(block, 0, s.output_channels, panel);
      plan.loops.depthwise_filter(
          {from, grid, block.rows, block.columns, offsets(), plan.rows(), sums(piece), s.groups, accumulate});
      return;
    }
    const std::int64_t first = part * plan.rows() / plan.row_parts, last = (part + 1) * plan.rows() / plan.row_parts;
    for (std::int64_t group = 0; group < s.groups; ++group)
      for (std::int64_t c = 0; c < s.group_outputs(); c += 2 * plan.loops.width) {
        const std::int64_t n = std::min(2 * plan.loops.width, s.group_outputs() - c);
        const std::int64_t channel = group * s.group_outputs() + c;
        GatherFilter gather = {from,
                               panel_of(block, channel, n, panel),
                               block.rows,
                               block.columns,
                               offsets() + first,
                               last - first,
                               nullptr,
                               s.output_channels,
                               n,
                               accumulate};
        gather.x.data = in.data + group * s.group_channels() * plan.size;
        gather.dfilter = sums(piece) + (first * s.output_channels + channel) * plan.size;
        plan.loops.gather_filter(gather);
      }
  }

  void run_worker(std::int64_t worker, std::byte* copy) const noexcept {
    const std::int64_t piece = worker / plan.row_parts;
    const std::int64_t first = piece * plan.units() / plan.pieces, last = (piece + 1) * plan.units() / plan.pieces;
    for (std::int64_t i = first; i < last; ++i) add_block(block_of(plan.sweep, plan.cut, i), worker, copy, i > first);
  }

  void run() const noexcept {
    make_offsets();
    for (std::int64_t from = 0; from < plan.pieces; from += plan.together) {
      const std::int64_t to = std::min(plan.pieces, from + plan.together), workers = (to - from) * plan.row_parts;
      const std::int64_t lanes = std::min(plan.lanes, workers);
      parallel_for(lanes, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t lane = begin; lane < end; ++lane)
          for (std::int64_t i = lane * workers / lanes; i < (lane + 1) * workers / lanes; ++i)
            run_worker(from * plan.row_parts + i, copies(lane));
      });
      if (to > 1)
        parallel_for(plan.filter_elements(), 4096, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t piece = std::max<std::int64_t>(1, from); piece < to; ++piece)
            plan.loops.add(sums(piece) + begin * plan.size, dfilter + begin * plan.size, end - begin);
        });
    }
  }
};

}  // namespace

std::size_t filter_gradient_scratch_bytes(const ConvolutionSizes& sizes, const Window& window, DType dtype) noexcept {
  return static_cast<std::size_t>(FilterPlan(sizes, window, dtype).scratch_bytes());
}

void filter_gradient(const ConvolutionSizes& sizes, const Window& window, DType dtype, const std::byte* x,
                     const std::byte* dy, std::byte* dfilter, std::span<std::byte> scratch) noexcept {
  const FilterPlan plan(sizes, window, dtype);
  PLIMSOLL_CHECK(scratch.size() >= static_cast<std::size_t>(plan.scratch_bytes()));
  if (plan.filter_elements() == 0) return;
  if (plan.units() == 0) {
    std::memset(dfilter, 0, static_cast<std::size_t>(plan.filter_elements() * plan.size));
    return;
  }
  FilterCall{plan, x, dy, dfilter, scratch.data()}.run();
}

}  // namespace plimsoll::internal
