#include "plimsoll/kernels/internal/convolution_winograd.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/convolution_loops.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kNumbers = 16;               // Per patch.
constexpr std::int64_t kSlots = 16;                 // Blocks in progress at once, each with its own memory.
constexpr std::int64_t kSlotBytes = 2 << 20;        // For all of them.
constexpr std::int64_t kSumsBytes = 2 << 20;        // For all sums of a filter's gradient.
constexpr std::int64_t kLine = 64 / sizeof(float);  // Between planes, so that they do not collide in the first cache.

// Tiles of one image; `offset` is where the first patch begins.
struct Tiles {
  std::int64_t images, rows, columns, channels;       // The source.
  std::int64_t output_rows, output_columns, outputs;  // The destination.
  std::int64_t row_offset, column_offset;

  std::int64_t down() const noexcept { return divide_up(output_rows, 2); }
  std::int64_t across() const noexcept { return divide_up(output_columns, 2); }
  std::int64_t count() const noexcept { return images * down() * across(); }
};

Tiles tiles_of(const ConvolutionSizes& s, const Window& w, bool backward) noexcept {
  if (!backward)
    return {s.batch,           s.rows, s.columns, s.channels, s.output_rows, s.output_columns,
            s.output_channels, -w.top, -w.left};
  return {s.batch,   s.output_rows, s.output_columns, s.output_channels, s.rows,
          s.columns, s.channels,    w.top - 2,        w.left - 2};
}

struct TilePlace {
  std::int64_t image, row, column;  // The first output's place.
};

TilePlace place_of(const Tiles& t, std::int64_t index) noexcept {
  const std::int64_t of_image = t.down() * t.across(), at = index % of_image;
  return {index / of_image, at / t.across() * 2, at % t.across() * 2};
}

// Blocks of tiles, and memory for two tensors [16][tiles][channels] each.
struct Blocks {
  std::int64_t tiles, count, slots, first_plane, second_plane;

  Blocks(std::int64_t all_tiles, std::int64_t first_channels, std::int64_t second_channels) noexcept {
    tiles = std::max(first_channels, second_channels) <= 32 ? 60 : 30;  // Whole tiles of products: of 6 and of 10.
    count = divide_up(all_tiles, tiles);
    first_plane = tiles * first_channels + kLine;
    second_plane = tiles * second_channels + kLine;
    slots = std::min(count, std::clamp<std::int64_t>(kSlotBytes / (elements() * 4), 2, kSlots));
  }
  std::int64_t elements() const noexcept { return kNumbers * (first_plane + second_plane); }  // Per slot.
};

// The pixels of a patch; `none` for those outside.
void patch_of(const Tiles& t, const TilePlace& place, const float* images, const float* none,
              const void** pixels) noexcept {
  const float* image = images + place.image * t.rows * t.columns * t.channels;
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t row = place.row + t.row_offset + i, column = place.column + t.column_offset;
    const bool inside = row >= 0 && row < t.rows;
    for (std::int64_t j = 0; j < 4; ++j)
      pixels[i * 4 + j] = inside && column + j >= 0 && column + j < t.columns
                              ? image + (row * t.columns + column + j) * t.channels
                              : none;
  }
}

// The four outputs of a tile, or `none` where it reaches beyond the image.
template <class T>
void outputs_of(const Tiles& t, const TilePlace& place, T* images, T* none, T** pixels) noexcept {
  T* image = images + place.image * t.output_rows * t.output_columns * t.outputs;
  for (std::int64_t i = 0; i < 4; ++i) {
    const std::int64_t row = place.row + i / 2, column = place.column + i % 2;
    const bool inside = row < t.output_rows && column < t.output_columns;
    pixels[i] = inside ? image + (row * t.output_columns + column) * t.outputs : none;
  }
}

void transform_inputs(const WinogradLoops& loops, const Tiles& tiles, std::int64_t begin, std::int64_t end,
                      const float* images, const float* none, float* to, std::int64_t plane) noexcept {
  for (std::int64_t t = begin; t < end; ++t) {
    const void* pixels[kNumbers];
    patch_of(tiles, place_of(tiles, t), images, none, pixels);
    loops.input(pixels, tiles.channels, to + (t - begin) * tiles.channels, plane);
  }
}

bool fits(const ConvolutionSizes& s, const Window& w, DType dtype) noexcept {
  const std::int64_t width = convolution_loops().f32.width;
  const bool by_ones = w.row_stride == 1 && w.column_stride == 1 && w.row_dilation == 1 && w.column_dilation == 1;
  if (dtype != f32 || !by_ones || s.groups != 1 || s.filter_rows != 3 || s.filter_columns != 3) return false;
  if (s.channels % width != 0 || s.output_channels % width != 0) return false;
  return std::min(s.channels, s.output_channels) >= 16;
}

// Enough tiles, and few of their outputs beyond the image.
bool pays(const Tiles& tiles) noexcept {
  return tiles.count() >= 32 && tiles.output_rows * tiles.output_columns * 10 >= tiles.down() * tiles.across() * 28;
}

struct ForwardPlan {
  const ConvolutionLoops& loops = convolution_loops().f32;
  Tiles tiles;
  Blocks blocks;

  ForwardPlan(const ConvolutionSizes& sizes, const Tiles& of) noexcept
      : tiles(of), blocks(of.count(), of.channels, of.outputs) {
    blocks.slots = sizes.at_once(blocks.slots);
  }

  std::int64_t filter_plane() const noexcept { return tiles.channels * tiles.outputs + kLine; }
  std::int64_t filter_elements() const noexcept { return kNumbers * filter_plane(); }
  std::int64_t none_elements() const noexcept { return round_up(tiles.channels, kLine); }
  std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(filter_elements() + none_elements() + blocks.slots * blocks.elements()) * 4;
  }
};

struct Forward {
  const ForwardPlan& plan;
  const WinogradCall& call;
  float *filter, *none, *memory;

  // [16][panel][channel][column], the rows of each number's matrix in panels of up to two vectors.
  void transform_filter(std::int64_t channels_out) const noexcept {
    const Tiles& t = plan.tiles;
    const std::int64_t columns = 2 * plan.loops.width, tap = t.channels * t.outputs;
    parallel_for(divide_up(t.outputs, columns), std::max<std::int64_t>(1, 8192 / (t.channels * columns)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t c = begin * columns; c < std::min(t.outputs, end * columns); c += columns) {
                     const std::int64_t n = std::min(columns, t.outputs - c);
                     float* to = filter + c * t.channels;
                     if (call.backward)  // Turned by half, and transposed.
                       plan.loops.winograd.filter(call.filter + 8 * tap + c * channels_out, -tap, t.channels, 1,
                                                  channels_out, n, to, plan.filter_plane());
                     else
                       plan.loops.winograd.filter(call.filter + c, tap, t.channels, channels_out, 1, n, to,
                                                  plan.filter_plane());
                   }
                 });
  }

  void multiply(std::int64_t tiles, const float* from, float* to) const noexcept {
    const Tiles& t = plan.tiles;
    const std::int64_t columns = 2 * plan.loops.width;
    const GatherRun run = {0, t.channels};
    for (std::int64_t q = 0; q < kNumbers; ++q)
      for (std::int64_t c = 0; c < t.outputs; c += columns) {
        Gather gather = {};
        gather.x = {from + q * plan.blocks.first_plane, 0, t.channels};
        gather.y = {to + q * plan.blocks.second_plane + c, 0, t.outputs};
        gather.rows = 1, gather.columns = tiles;
        gather.runs = &run, gather.num_runs = 1;
        gather.filter = filter + q * plan.filter_plane() + c * t.channels;
        gather.n = std::min(columns, t.outputs - c);
        if (c + columns < t.outputs)
          gather.next_filter = filter + q * plan.filter_plane() + (c + columns) * t.channels;
        else if (q + 1 < kNumbers)
          gather.next_filter = filter + (q + 1) * plan.filter_plane();
        plan.loops.gather(gather);
      }
  }

  void run_block(std::int64_t block, float* slot) const noexcept {
    const Tiles& t = plan.tiles;
    const Blocks& b = plan.blocks;
    const std::int64_t begin = block * b.tiles, end = std::min(t.count(), begin + b.tiles);
    float* const products = slot + kNumbers * b.first_plane;
    transform_inputs(plan.loops.winograd, t, begin, end, call.x, none, slot, b.first_plane);
    multiply(end - begin, slot, products);
    for (std::int64_t i = begin; i < end; ++i) {
      float* pixels[4];
      outputs_of<float>(t, place_of(t, i), call.y, nullptr, pixels);
      void* const to[4] = {pixels[0], pixels[1], pixels[2], pixels[3]};
      plan.loops.winograd.output(products + (i - begin) * t.outputs, b.second_plane, t.outputs, call.bias,
                                 call.rectifier, to);
    }
  }

  void run(std::int64_t channels_out) const noexcept {
    const Blocks& b = plan.blocks;
    std::fill_n(none, plan.none_elements(), 0.f);
    transform_filter(channels_out);
    parallel_for(b.slots, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t slot = begin; slot < end; ++slot)
        for (std::int64_t i = slot * b.count / b.slots; i < (slot + 1) * b.count / b.slots; ++i)
          run_block(i, memory + slot * b.elements());
    });
  }
};

// The filter's gradient: sums [16][channels][outputs] over all tiles, in pieces.
struct FilterPlan {
  const ConvolutionLoops& loops = convolution_loops().f32;
  Tiles tiles;
  Blocks blocks;
  std::int64_t pieces, lanes;  // So many of the pieces at once.

  FilterPlan(const ConvolutionSizes& sizes, const Tiles& of) noexcept
      : tiles(of), blocks(of.count(), of.channels, of.outputs) {
    const std::int64_t most = std::clamp<std::int64_t>(kSumsBytes / (sums_elements() * 4), 2, kSlots);
    pieces = std::max<std::int64_t>(1, std::min({blocks.slots, blocks.count, most}) / 2 * 2);
    lanes = sizes.at_once(pieces);
  }
  // Of the first piece, to which the others are added, and of those in progress.
  std::int64_t num_sums() const noexcept { return std::min(pieces, 1 + lanes); }
  std::int64_t sums_of(std::int64_t piece) const noexcept {
    return piece == 0 ? 0 : num_sums() == pieces ? piece : 1 + piece % lanes;
  }
  std::int64_t sums_plane() const noexcept { return tiles.channels * tiles.outputs + kLine; }
  std::int64_t sums_elements() const noexcept { return kNumbers * sums_plane(); }
  std::int64_t none_elements() const noexcept { return round_up(std::max(tiles.channels, tiles.outputs), kLine); }
  std::int64_t offsets_elements() const noexcept { return round_up(tiles.channels * 2, kLine); }
  std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(offsets_elements() + none_elements() + num_sums() * sums_elements() +
                                    lanes * blocks.elements()) *
           4;
  }
};

struct FilterGradient {
  const FilterPlan& plan;
  const float *x, *dy;
  std::int64_t* offsets;
  float *none, *memory;

  float* sums(std::int64_t piece) const noexcept { return memory + plan.sums_of(piece) * plan.sums_elements(); }
  float* slot(std::int64_t lane) const noexcept {
    return memory + plan.num_sums() * plan.sums_elements() + lane * plan.blocks.elements();
  }

  void transform_slopes(std::int64_t begin, std::int64_t end, float* to) const noexcept {
    for (std::int64_t i = begin; i < end; ++i) {
      const float* pixels[4];
      outputs_of<const float>(plan.tiles, place_of(plan.tiles, i), dy, none, pixels);
      const void* const from[4] = {pixels[0], pixels[1], pixels[2], pixels[3]};
      plan.loops.winograd.slope(from, plan.tiles.outputs, to + (i - begin) * plan.tiles.outputs,
                                plan.blocks.second_plane);
    }
  }

  void add_block(std::int64_t block, float* slot, float* to, bool accumulate) const noexcept {
    const Tiles& t = plan.tiles;
    const Blocks& b = plan.blocks;
    const std::int64_t begin = block * b.tiles, end = std::min(t.count(), begin + b.tiles);
    const std::int64_t columns = 2 * plan.loops.width;
    float* const slopes = slot + kNumbers * b.first_plane;
    transform_inputs(plan.loops.winograd, t, begin, end, x, none, slot, b.first_plane);
    transform_slopes(begin, end, slopes);
    for (std::int64_t q = 0; q < kNumbers; ++q)
      for (std::int64_t c = 0; c < t.outputs; c += columns)
        plan.loops.gather_filter({{slot + q * b.first_plane, 0, t.channels},
                                  {slopes + q * b.second_plane + c, 0, t.outputs},
                                  1,
                                  end - begin,
                                  offsets,
                                  t.channels,
                                  to + q * plan.sums_plane() + c,
                                  t.outputs,
                                  std::min(columns, t.outputs - c),
                                  accumulate});
  }

  void run(float* dfilter) const noexcept {
    const Blocks& b = plan.blocks;
    const std::int64_t pieces = plan.pieces, weights = plan.tiles.channels * plan.tiles.outputs;
    std::fill_n(none, plan.none_elements(), 0.f);
    for (std::int64_t k = 0; k < plan.tiles.channels; ++k) offsets[k] = k;
    for (std::int64_t from = 0; from < pieces; from += plan.lanes) {
      const std::int64_t to = std::min(pieces, from + plan.lanes);
      parallel_for(to - from, 1, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t piece = from + begin; piece < from + end; ++piece) {
          const std::int64_t first = piece * b.count / pieces, last = (piece + 1) * b.count / pieces;
          for (std::int64_t i = first; i < last; ++i) add_block(i, slot(piece - from), sums(piece), i > first);
        }
      });
      parallel_for(weights / plan.loops.width, 256, [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t at = begin * plan.loops.width, n = (end - begin) * plan.loops.width;
        for (std::int64_t piece = std::max<std::int64_t>(1, from); piece < to; ++piece)
          for (std::int64_t q = 0; q < kNumbers; ++q)
            plan.loops.add(sums(piece) + q * plan.sums_plane() + at, sums(0) + q * plan.sums_plane() + at, n);
        if (to == pieces) plan.loops.winograd.taps(sums(0) + at, plan.sums_plane(), n, dfilter + at, weights);
      });
    }
  }
};

}  // namespace

bool is_winograd(const ConvolutionSizes& sizes, const Window& window, DType dtype) noexcept {
  return fits(sizes, window, dtype) && pays(tiles_of(sizes, window, false)) && pays(tiles_of(sizes, window, true));
}

bool is_winograd_filter(const ConvolutionSizes& sizes, const Window& window, DType dtype) noexcept {
  return fits(sizes, window, dtype) && pays(tiles_of(sizes, window, false)) &&
         sizes.channels * sizes.output_channels * kNumbers * 4 <= kSumsBytes / 2;
}

std::size_t winograd_scratch_bytes(const ConvolutionSizes& sizes, bool backward) noexcept {
  return ForwardPlan(sizes, tiles_of(sizes, {}, backward)).bytes();
}

std::size_t winograd_filter_scratch_bytes(const ConvolutionSizes& sizes) noexcept {
  return FilterPlan(sizes, tiles_of(sizes, {}, false)).bytes();
}

void winograd(const ConvolutionSizes& sizes, const Window& window, const WinogradCall& call,
              std::span<std::byte> scratch) noexcept {
  const ForwardPlan plan(sizes, tiles_of(sizes, window, call.backward));
  PLIMSOLL_CHECK(scratch.size() >= plan.bytes());
  float* const filter = reinterpret_cast<float*>(scratch.data());
  float* const none = filter + plan.filter_elements();
  Forward{plan, call, filter, none, none + plan.none_elements()}.run(sizes.output_channels);
}

void winograd_filter_gradient(const ConvolutionSizes& sizes, const Window& window, const float* x, const float* dy,
                              float* dfilter, std::span<std::byte> scratch) noexcept {
  const FilterPlan plan(sizes, tiles_of(sizes, window, false));
  PLIMSOLL_CHECK(scratch.size() >= plan.bytes());
  float* const none = reinterpret_cast<float*>(scratch.data()) + plan.offsets_elements();
  FilterGradient{plan, x, dy, reinterpret_cast<std::int64_t*>(scratch.data()), none, none + plan.none_elements()}.run(
      dfilter);
}

}  // namespace plimsoll::internal
