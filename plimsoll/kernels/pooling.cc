#include "plimsoll/kernels/pooling.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/pooling_codes.h"
#include "plimsoll/kernels/internal/pooling_loops.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kSegment = 2048;  // Outputs whose codes are on the stack at once.
constexpr std::int64_t kGrain = 16384;   // Outputs of a chunk.

struct PoolSizes {
  std::int64_t batch, rows, columns, channels, output_rows, output_columns;
};

PoolSizes sizes_of(const Shape& x, const Shape& y, const Pooling& pooling) noexcept {
  PLIMSOLL_CHECK(x.rank() == 4 && y.rank() == 4 && x[0] == y[0] && x[3] == y[3]);
  PLIMSOLL_CHECK(pooling.rows > 0 && pooling.columns > 0 && y[1] == pooling.window.positions_down(x[1], pooling.rows) &&
                 y[2] == pooling.window.positions_across(x[2], pooling.columns));
  return {x[0], x[1], x[2], x[3], y[1], y[2]};
}

// One pooling. `Input` is const void when x is read, void when its gradient is written.
template <class Input, class Output>
struct PoolCall {
  using Bytes = std::conditional_t<std::is_const_v<Input>, const std::byte, std::byte>;
  using OutputBytes = std::conditional_t<std::is_const_v<Output>, const std::byte, std::byte>;

  void (*loop)(const PoolRow<Input, Output>&);
  PoolSizes sizes;
  const Pooling& pooling;
  std::int64_t size;  // Bytes of an element.
  Bytes* x;
  OutputBytes* y;

  std::int64_t row_outputs() const noexcept { return sizes.output_columns * sizes.channels; }
  std::int64_t image_bytes() const noexcept { return sizes.rows * sizes.columns * sizes.channels * size; }

  // Calls visit(row, outputs before it, outputs) for segments of rows [begin, end) of all images, in order. A vector
  // may touch x up to `limit`.
  template <class F>
  void each_segment(std::int64_t begin, std::int64_t end, Bytes* limit, F visit) const noexcept {
    const Window& window = pooling.window;
    const std::int64_t pixels = std::max<std::int64_t>(1, kSegment / sizes.channels);
    const std::int64_t channels = std::min(kSegment, sizes.channels);
    for (std::int64_t r = begin; r < end; ++r)
      for (std::int64_t w = 0; w < sizes.output_columns; w += pixels)
        for (std::int64_t c = 0; c < sizes.channels; c += channels) {
          const std::int64_t before = (r * sizes.output_columns + w) * sizes.channels + c;
          PoolRow<Input, Output> row = {};
          row.image = x + r / sizes.output_rows * image_bytes() + c * size;
          row.end = limit;
          row.outputs = y + before * size;
          row.rows = sizes.rows, row.columns = sizes.columns, row.pitch = sizes.channels;
          row.channels = std::min(channels, sizes.channels - c);
          row.windows = std::min(pixels, sizes.output_columns - w);
          row.taps_down = pooling.rows, row.taps_across = pooling.columns;
          row.row_dilation = window.row_dilation, row.column_dilation = window.column_dilation;
          row.top = r % sizes.output_rows * window.row_stride - window.top;
          row.left = w * window.column_stride - window.left;
          row.column_stride = window.column_stride;
          row.are_apart = window.row_dilation == 1 && window.column_dilation == 1 &&
                          window.row_stride >= pooling.rows && window.column_stride >= pooling.columns;
          visit(row, before, row.windows * row.channels);
        }
  }

  // Forward: by rows, in multiples of 8 so that no two chunks share a byte of codes.
  template <class F>
  void by_rows(F visit) const noexcept {
    const std::int64_t rows = sizes.batch * sizes.output_rows;
    const std::int64_t grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, row_outputs())) + 7;
    parallel_for(rows, grain / 8 * 8, [&](std::int64_t begin, std::int64_t end) {
      each_segment(begin, end, x + sizes.batch * image_bytes(), visit);
    });
  }

  // Backward: by images, because windows overlap.
  template <class F>
  void by_images(F visit) const noexcept {
    const std::int64_t outputs = std::max<std::int64_t>(1, row_outputs() * sizes.output_rows);
    parallel_for(sizes.batch, std::max<std::int64_t>(1, kGrain / outputs), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        Bytes* image = x + i * image_bytes();
        std::memset(image, 0, static_cast<std::size_t>(image_bytes()));
        each_segment(i * sizes.output_rows, (i + 1) * sizes.output_rows, image + image_bytes(), visit);
      }
    });
  }
};

using Forward = PoolCall<const void, void>;
using Backward = PoolCall<void, const void>;

// Room for a segment's codes, and for those of the group of 8 in which it begins; of any element's size.
struct Codes {
  alignas(64) std::byte bytes[(8 + kSegment + 8) * 8];

  std::byte* at(std::int64_t i, std::int64_t size) noexcept { return bytes + i * size; }
};

}  // namespace

bool is_pooling_supported(DType dtype) noexcept { return dtype == f32 || dtype == f64; }

std::size_t max_pool_positions_bytes(const Shape& y, const Pooling& pooling) noexcept {
  return static_cast<std::size_t>(
      bytes_of_codes(static_cast<std::int64_t>(y.size()), bits_of_code(pooling.rows * pooling.columns)));
}

void max_pool(const ConstTensorView& x, const TensorView& y, const Pooling& pooling, std::byte* positions) noexcept {
  PLIMSOLL_CHECK(is_pooling_supported(x.dtype()));
  const PoolSizes sizes = sizes_of(x.shape(), y.shape(), pooling);
  if (y.size() == 0) return;
  const int bits = bits_of_code(pooling.rows * pooling.columns);
  const Forward call = {pooling_loops().of(x.dtype()).max,
                        sizes,
                        pooling,
                        static_cast<std::int64_t>(size_of(x.dtype())),
                        x.bytes(),
                        y.bytes()};
  const PoolingLoops& loops = pooling_loops().of(x.dtype());
  call.by_rows([&](const PoolForwardRow& from, std::int64_t before, std::int64_t count) {
    if (!positions) return call.loop(from);
    Codes codes;
    PoolForwardRow row = from;
    const std::int64_t ahead = bits == 32 ? 0 : before % 8;  // Codes of the group that are there already.
    std::byte* const to = positions + bytes_of_codes(before - ahead, bits);
    if (ahead > 0) loops.unpack_codes(to, 8, bits, codes.bytes);
    row.codes = codes.at(ahead, call.size);
    call.loop(row);
    std::memset(codes.at(ahead + count, call.size), 0, static_cast<std::size_t>(8 * call.size));
    loops.pack_codes(codes.bytes, ahead + count, bits, to);
  });
}

void max_pool_gradient(const ConstTensorView& dy, const std::byte* positions, const TensorView& dx,
                       const Pooling& pooling) noexcept {
  PLIMSOLL_CHECK(is_pooling_supported(dy.dtype()));
  const PoolSizes sizes = sizes_of(dx.shape(), dy.shape(), pooling);
  if (dx.size() == 0) return;
  const int bits = bits_of_code(pooling.rows * pooling.columns);
  const Backward call = {pooling_loops().of(dy.dtype()).max_gradient,    sizes,      pooling,
                         static_cast<std::int64_t>(size_of(dy.dtype())), dx.bytes(), dy.bytes()};
  const PoolingLoops& loops = pooling_loops().of(dy.dtype());
  call.by_images([&](const PoolBackwardRow& from, std::int64_t before, std::int64_t count) {
    Codes codes;
    PoolBackwardRow row = from;
    const std::int64_t ahead = bits == 32 ? 0 : before % 8;
    loops.unpack_codes(positions + bytes_of_codes(before - ahead, bits), ahead + count, bits, codes.bytes);
    row.codes = codes.at(ahead, call.size);
    call.loop(row);
  });
}

void max_pool_take(const ConstTensorView& x, const std::byte* positions, const TensorView& y,
                   const Pooling& pooling) noexcept {
  PLIMSOLL_CHECK(is_pooling_supported(x.dtype()));
  const PoolSizes sizes = sizes_of(x.shape(), y.shape(), pooling);
  if (y.size() == 0) return;
  const int bits = bits_of_code(pooling.rows * pooling.columns);
  const PoolingLoops& loops = pooling_loops().of(x.dtype());
  const Forward call = {loops.take, sizes,    pooling, static_cast<std::int64_t>(size_of(x.dtype())),
                        x.bytes(),  y.bytes()};
  call.by_rows([&](const PoolForwardRow& from, std::int64_t before, std::int64_t count) {
    Codes codes;
    PoolForwardRow row = from;
    const std::int64_t ahead = bits == 32 ? 0 : before % 8;
    loops.unpack_codes(positions + bytes_of_codes(before - ahead, bits), ahead + count, bits, codes.bytes);
    row.codes = codes.at(ahead, call.size);
    call.loop(row);
  });
}

void average_pool(const ConstTensorView& x, const TensorView& y, const Pooling& pooling) noexcept {
  PLIMSOLL_CHECK(is_pooling_supported(x.dtype()));
  const PoolSizes sizes = sizes_of(x.shape(), y.shape(), pooling);
  if (y.size() == 0) return;
  const Forward call = {pooling_loops().of(x.dtype()).average,         sizes,     pooling,
                        static_cast<std::int64_t>(size_of(x.dtype())), x.bytes(), y.bytes()};
  call.by_rows([&](const PoolForwardRow& row, std::int64_t, std::int64_t) { call.loop(row); });
}

void average_pool_gradient(const ConstTensorView& dy, const TensorView& dx, const Pooling& pooling) noexcept {
  PLIMSOLL_CHECK(is_pooling_supported(dy.dtype()));
  const PoolSizes sizes = sizes_of(dx.shape(), dy.shape(), pooling);
  if (dx.size() == 0) return;
  const Backward call = {pooling_loops().of(dy.dtype()).average_gradient, sizes,      pooling,
                         static_cast<std::int64_t>(size_of(dy.dtype())),  dx.bytes(), dy.bytes()};
  call.by_images([&](const PoolBackwardRow& row, std::int64_t, std::int64_t) { call.loop(row); });
}

}  // namespace plimsoll::internal
