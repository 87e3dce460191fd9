// The kernels of convolutions and poolings, for images [batch, rows, columns, channels].
#include "plimsoll/device/opencl/kernel_sources.h"

namespace plimsoll::internal {
namespace {

// Tiles in registers: 4 pixels x 16 channels, or 8 x 8 where there are few channels.
constexpr std::string_view kTiles = R"(#if LANES == 8
#define TILE 8
#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#else
#define TILE 4
#define EACH(DO) DO(0) DO(1) DO(2) DO(3)
#endif
#define SUM(i) V s##i = 0.f;
)";

// Weights are [taps, channels from, channels to]. Where fewer channels are left than a vector has, those read behind
// them belong to the next row and are not stored; after the last row none are read. OVER(count, DO) does it for `count`
// rows of weights.
constexpr std::string_view kWeights = R"(
#define PRODUCT(i) s##i += p##i[k] * right;
#define PRODUCT_INSIDE(i) { const float e = p##i[k]; s##i += (in##i ? e : 0.f) * right; }
#define OVER(count, DO) { \
    int k = 0; \
    for (; k < min(count, safe - at); ++k) { const V right = LOAD(0, weights + (long)k * to); EACH(DO) } \
    for (; k < count; ++k) { const V right = load_some(weights + (long)k * to, width); EACH(DO) } \
  }
int rows_of_vectors(int rows, int to, int column) {
  if (to - column >= LANES) return rows;
  const long last = (long)rows * to - column - LANES;
  return last < 0 ? 0 : (int)min((long)rows, last / to + 1);
}
void finish(V value, global float* out, global const float* bias, int width, int has_bias, int relu) {
  if (has_bias) value += load_some(bias, width);
  store_some(relu ? PICK(value < 0.f, 0.f, value) : value, out, width);
}
#define ARGUMENTS OUT(out, float), IN(x, float), IN(w, float), IN(bias, float), int lines, int to, int from, int taps_y, \
    int taps_x, int rows, int columns, int out_rows, int out_columns, int stride_y, int stride_x, int apart_y, \
    int apart_x, int top, int left, int has_bias, int relu
)";

// One item has pixels beside each other of one line of results. Where all of them have taps inside of the image, and
// taps lie beside each other, those are one product; the others follow.
constexpr std::string_view kForward = R"(
kernel void run(ARGUMENTS) {
  ADDRESS(out, float) ADDRESS(x, float) ADDRESS(w, float) ADDRESS(bias, float)
  const int blocks = (out_columns + TILE - 1) / TILE, line = get_global_id(1) / blocks;
  const int px = get_global_id(1) % blocks * TILE, column = get_global_id(0) * LANES, width = to - column;
  if (line >= lines || width <= 0) return;
  const int count = min(TILE, out_columns - px), safe = rows_of_vectors(taps_y * taps_x * from, to, column);
  const int z = px * stride_x - left, far = z + (count - 1) * stride_x;
  const int low = z >= 0 ? 0 : min(taps_x, (apart_x - 1 - z) / apart_x);
  const int high = max(low, far >= columns ? 0 : min(taps_x, (columns - 1 - far) / apart_x + 1));
  const int joined = apart_x == 1 ? high - low : 1;
  global const float* const image = x + (long)(line / out_rows) * rows * columns * from;
  EACH(SUM)
  for (int r = 0; r < taps_y; ++r) {
    const int y = line % out_rows * stride_y - top + r * apart_y;
    if (y < 0 || y >= rows) continue;
    global const float* const pixels = image + (long)y * columns * from;
    for (int c = low; c < high; c += joined) {
      const int at = (r * taps_x + c) * from;
      global const float* const weights = w + (long)at * to + column;
#define POINT(i) global const float* const p##i = pixels + (long)(z + min(i, count - 1) * stride_x + c * apart_x) * from;
      EACH(POINT)
      OVER(joined * from, PRODUCT)
    }
    for (int c = 0; c < taps_x; ++c) {
      if (c == low) c = high;
      if (c >= taps_x) break;
      const int at = (r * taps_x + c) * from;
      global const float* const weights = w + (long)at * to + column;
#define POINT_INSIDE(i) \
      const int z##i = z + min(i, count - 1) * stride_x + c * apart_x, in##i = z##i >= 0 && z##i < columns; \
      global const float* const p##i = pixels + (long)clamp(z##i, 0, columns - 1) * from;
      EACH(POINT_INSIDE)
      OVER(from, PRODUCT_INSIDE)
    }
  }
  out += ((long)line * out_columns + px) * to + column;
#define FINISH(i) if (i < count) finish(s##i, out + (long)i * to, bias + (has_bias ? column : 0), width, has_bias, relu);
  EACH(FINISH)
})";

// From results back to the image, whose pixels are now `out_rows` x `out_columns`. The pixels of one item are a stride
// apart: the same taps reach them.
constexpr std::string_view kBack = R"(
kernel void run(ARGUMENTS) {
  ADDRESS(out, float) ADDRESS(x, float) ADDRESS(w, float) ADDRESS(bias, float)
  const int each = (out_columns + stride_x - 1) / stride_x, blocks = (each + TILE - 1) / TILE * stride_x;
  const int line = get_global_id(1) / blocks, block = get_global_id(1) % blocks;
  const int px = block % stride_x + block / stride_x * TILE * stride_x, column = get_global_id(0) * LANES;
  const int width = to - column;
  if (line >= lines || width <= 0 || px >= out_columns) return;
  const int count = min(TILE, (out_columns - px + stride_x - 1) / stride_x);
  const int safe = rows_of_vectors(taps_y * taps_x * from, to, column);
  global const float* const image = x + (long)(line / out_rows) * rows * columns * from;
  EACH(SUM)
  for (int r = 0; r < taps_y; ++r) {
    const int down = line % out_rows + top - r * apart_y, y = stride_y == 1 ? down : down / stride_y;
    if (down < 0 || y >= rows || y * stride_y != down) continue;
    global const float* const pixels = image + (long)y * columns * from;
    for (int c = 0; c < taps_x; ++c) {
      const int across = px + left - c * apart_x, z = stride_x == 1 ? across : (across + stride_x * taps_x * apart_x) / stride_x - taps_x * apart_x;
      if (z * stride_x != across || z >= columns || z + count <= 0) continue;
      const int at = (r * taps_x + c) * from;
      global const float* const weights = w + (long)at * to + column;
      if (z >= 0 && z + count <= columns) {
#define POINT(i) global const float* const p##i = pixels + (long)(z + min(i, count - 1)) * from;
        EACH(POINT)
        OVER(from, PRODUCT)
      } else {
#define POINT_INSIDE(i) \
        const int z##i = z + min(i, count - 1), in##i = z##i >= 0 && z##i < columns; \
        global const float* const p##i = pixels + (long)clamp(z##i, 0, columns - 1) * from;
        EACH(POINT_INSIDE)
        OVER(from, PRODUCT_INSIDE)
      }
    }
  }
  out += ((long)line * out_columns + px) * to + column;
#define FINISH(i) if (i < count) store_some(s##i, out + (long)i * stride_x * to, width);
  EACH(FINISH)
})";

// One item has some channels of x by some channels of the results, for taps that lie beside each other in a line of the
// image: the sum over all pixels, by lines of the results.
constexpr std::string_view kFilter = R"(
kernel void run(OUT(out, float), IN(x, float), IN(dy, float), int lines, int to, int from, int taps_y, int taps_x,
    int rows, int columns, int out_rows, int out_columns, int stride_y, int stride_x, int apart_y, int apart_x, int top,
    int left) {
  ADDRESS(out, float) ADDRESS(x, float) ADDRESS(dy, float)
  const int joined = apart_x == 1 ? taps_x : 1, length = joined * from, blocks = (length + TILE - 1) / TILE;
  const int group = get_global_id(1) / blocks, first = get_global_id(1) % blocks * TILE, column = get_global_id(0) * LANES;
  const int r = group / (taps_x / joined), tap = group % (taps_x / joined), width = to - column;
  if (r >= taps_y || width <= 0) return;
  const int count = min(TILE, length - first), safe = rows_of_vectors(lines * out_columns, to, column);
  const int shift = tap * apart_x - left;  // From a pixel of the results to that of x, for the first of the taps.
  int begin = 0, end = out_columns;
#define SPAN(i) \
  const int j##i = first + min(i, count - 1), f##i = shift + j##i / from; \
  const int b##i = f##i >= 0 ? 0 : min(out_columns, (stride_x - 1 - f##i) / stride_x); \
  const int e##i = f##i >= columns ? 0 : min(out_columns, (columns - 1 - f##i) / stride_x + 1); \
  begin = max(begin, b##i); \
  end = min(end, e##i); \
  V t##i = 0.f;
  EACH(SPAN)
  end = max(begin, end);
  for (int line = 0; line < lines; ++line) {
    const int y = line % out_rows * stride_y - top + r * apart_y;
    if (y < 0 || y >= rows) continue;
    global const float* const pixels = x + (((long)(line / out_rows) * rows + y) * columns + shift) * from;
    global const float* const slopes = dy + (long)line * out_columns * to + column;
    const int vectors = min(end, safe - line * out_columns);
    EACH(SUM)
    int p = begin;
#define ADD(i) s##i += at[j##i] * right;
    for (; p < vectors; ++p) {
      const V right = LOAD(0, slopes + (long)p * to);
      global const float* const at = pixels + (long)p * stride_x * from;
      EACH(ADD)
    }
    for (; p < end; ++p) {
      const V right = load_some(slopes + (long)p * to, width);
      global const float* const at = pixels + (long)p * stride_x * from;
      EACH(ADD)
    }
#define ADD_ENDS(i) \
    for (int q = b##i; q < e##i; ++q) { \
      if (q == begin) q = end; \
      if (q >= e##i) break; \
      s##i += pixels[(long)q * stride_x * from + j##i] * load_some(slopes + (long)q * to, width); \
    } \
    t##i += s##i;
    EACH(ADD_ENDS)
  }
  out += ((long)(r * taps_x + tap) * from + first) * to + column;
#define FINISH(i) if (i < count) store_some(t##i, out + (long)i * to, width);
  EACH(FINISH)
})";

// One item has 32 results. The positions of eight are packed together: as kernels/pooling.h.
constexpr std::string_view kMaxPool = R"(
kernel void run(OUT(out, float), OUT(codes, uchar), IN(x, float), int n, int bits, int rows, int columns, int channels,
    int out_rows, int out_columns, int taps_y, int taps_x, int stride_y, int stride_x, int apart_y, int apart_x,
    int top, int left) {
  ADDRESS(out, float) ADDRESS(codes, uchar) ADDRESS(x, float)
  int o = get_global_id(0) * 32, channel = o % channels, p = o / channels, px = p % out_columns;
  p /= out_columns;
  int py = p % out_rows;
  global const float* image = x + (long)(p / out_rows) * rows * columns * channels;
  int fresh = 1, low_r = 0, high_r = 0, low_c = 0, high_c = 0;
  global const float* window = image;
  for (int end = min(n, o + 32); o < end;) {
    ulong packed = 0;
    const int group = o / 8;
    for (int i = 0; i < 8 && o < end; ++i, ++o) {
      if (fresh) {  // Another pixel: the taps that are inside.
        const int y = py * stride_y - top, z = px * stride_x - left;
        low_r = y >= 0 ? 0 : (apart_y - 1 - y) / apart_y;
        low_c = z >= 0 ? 0 : (apart_x - 1 - z) / apart_x;
        high_r = y >= rows ? 0 : min(taps_y, (rows - 1 - y) / apart_y + 1);
        high_c = z >= columns ? 0 : min(taps_x, (columns - 1 - z) / apart_x + 1);
        window = image + ((long)y * columns + z) * channels;
        fresh = 0;
      }
      float best = -INFINITY;
      int code = 0, seen = 0;
      for (int r = low_r; r < high_r; ++r)
        for (int c = low_c; c < high_c; ++c) {
          const float value = window[((long)r * apart_y * columns + c * apart_x) * channels + channel];
          const int better = !seen || value > best || (value != value && best == best);
          best = better ? value : best;
          code = better ? r * taps_x + c : code;
          seen = 1;
        }
      out[o] = best;
      if (bits == 32) ((global int*)codes)[o] = code;
      packed |= (ulong)code << (i * (bits & 15));
      if (++channel == channels) {
        channel = 0;
        fresh = 1;
        if (++px == out_columns) {
          px = 0;
          if (++py == out_rows) { py = 0; image += (long)rows * columns * channels; }
        }
      }
    }
    if (bits < 32) for (int b = 0; b < bits; ++b) codes[(long)group * bits + b] = (uchar)(packed >> (8 * b));
  }
})";

// One item has up to 16 pixels of one line: what the windows that hold each give it, in order.
constexpr std::string_view kMaxPoolBack = R"(
kernel void run(OUT(out, float), IN(dy, float), IN(codes, uchar), int lines, int bits, int rows, int columns,
    int channels, int out_rows, int out_columns, int taps_y, int taps_x, int stride_y, int stride_x, int apart_y,
    int apart_x, int top, int left) {
  ADDRESS(out, float) ADDRESS(dy, float) ADDRESS(codes, uchar)
  const int first = get_global_id(0) * 16, line = get_global_id(1);
  if (line >= lines) return;
  const int down = line % rows + top, mask = bits == 32 ? -1 : (1 << bits) - 1;
  const long image = (long)(line / rows) * out_rows;
  const int low_y = max(0, (down - (taps_y - 1) * apart_y + stride_y - 1) / stride_y);
  const int high_y = min(out_rows - 1, down / stride_y);
  out += ((long)line * columns + first) * channels;
  for (int z = first; z < min(columns, first + 16); ++z, out += channels) {
    const int across = z + left, high_x = min(out_columns - 1, across / stride_x);
    const int low_x = max(0, (across - (taps_x - 1) * apart_x + stride_x - 1) / stride_x);
    for (int channel = 0; channel < channels; ++channel) out[channel] = 0.f;
    for (int py = low_y; py <= high_y; ++py) {
      const int r = (down - py * stride_y) / apart_y;
      if (r * apart_y != down - py * stride_y) continue;
      for (int px = low_x; px <= high_x; ++px) {
        const int c = (across - px * stride_x) / apart_x, code = r * taps_x + c;
        if (c * apart_x != across - px * stride_x) continue;
        const long from = ((image + py) * out_columns + px) * channels;
        for (int channel = 0; channel < channels; ++channel) {
          const long o = from + channel;
          const int seen = bits == 32 ? ((global int*)codes)[o] : codes[o * bits >> 3] >> (o * bits & 7) & mask;
          out[channel] += seen == code ? dy[o] : 0.f;
        }
      }
    }
  }
})";

constexpr std::string_view kAveragePool = R"(
kernel void run(OUT(out, float), IN(x, float), int n, int rows, int columns, int channels, int out_rows,
    int out_columns, int taps_y, int taps_x, int stride_y, int stride_x, int apart_y, int apart_x, int top, int left) {
  ADDRESS(out, float) ADDRESS(x, float)
  const int o = get_global_id(0);
  if (o >= n) return;
  const int channel = o % channels, p = o / channels, px = p % out_columns, py = p / out_columns % out_rows;
  global const float* const image = x + (long)(p / out_columns / out_rows) * rows * columns * channels + channel;
  float sum = 0.f;
  int count = 0;
  for (int r = 0; r < taps_y; ++r)
    for (int c = 0; c < taps_x; ++c) {
      const int y = py * stride_y - top + r * apart_y, z = px * stride_x - left + c * apart_x;
      if (y < 0 || y >= rows || z < 0 || z >= columns) continue;
      sum += image[((long)y * columns + z) * channels];
      ++count;
    }
  out[o] = sum / (float)max(count, 1);
})";

constexpr std::string_view kAveragePoolBack = R"(
int inside(int from, int taps, int apart, int size) {
  int count = 0;
  for (int i = 0; i < taps; ++i) count += from + i * apart >= 0 && from + i * apart < size;
  return count;
}
kernel void run(OUT(out, float), IN(dy, float), int n, int rows, int columns, int channels, int out_rows,
    int out_columns, int taps_y, int taps_x, int stride_y, int stride_x, int apart_y, int apart_x, int top, int left) {
  ADDRESS(out, float) ADDRESS(dy, float)
  const int e = get_global_id(0);
  if (e >= n) return;
  const int channel = e % channels, p = e / channels, z = p % columns, y = p / columns % rows;
  const long image = (long)(p / columns / rows) * out_rows;
  float sum = 0.f;
  for (int r = taps_y - 1; r >= 0; --r)
    for (int c = taps_x - 1; c >= 0; --c) {
      const int down = y + top - r * apart_y, across = z + left - c * apart_x;
      if (down < 0 || across < 0 || down % stride_y != 0 || across % stride_x != 0) continue;
      const int py = down / stride_y, px = across / stride_x;
      if (py >= out_rows || px >= out_columns) continue;
      const int count = inside(py * stride_y - top, taps_y, apart_y, rows) *
                        inside(px * stride_x - left, taps_x, apart_x, columns);
      sum += dy[((image + py) * out_columns + px) * channels + channel] / (float)count;
    }
  out[e] = sum;
})";

constexpr KernelText kImageTexts[] = {
    {"convolution.8", kForward, kTiles, kWeights, 8},
    {"convolution.16", kForward, kTiles, kWeights, 16},
    {"convolution_back.8", kBack, kTiles, kWeights, 8},
    {"convolution_back.16", kBack, kTiles, kWeights, 16},
    {"convolution_filter.8", kFilter, kTiles, kWeights, 8},
    {"convolution_filter.16", kFilter, kTiles, kWeights, 16},
    {"max_pool", kMaxPool},
    {"max_pool_back", kMaxPoolBack},
    {"average_pool", kAveragePool},
    {"average_pool_back", kAveragePoolBack},
};

}  // namespace

std::span<const KernelText> image_texts() noexcept { return kImageTexts; }

}  // namespace plimsoll::internal
