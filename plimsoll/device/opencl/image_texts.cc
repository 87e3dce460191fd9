// The kernels of convolutions and poolings, for images [batch, rows, columns, channels].
#include "plimsoll/device/opencl/kernel_sources.h"

namespace plimsoll::internal {
namespace {

// From a pixel (py, px) of the result and a tap (r, c) of its window to a pixel (y, z) of the other image; `fits` says
// whether a window lies there at all.
constexpr std::string_view kForward = R"(#define FIND_TAP \
  const int y = py[i] * stride_y - top + r * apart_y, z = px[i] * stride_x - left + c * apart_x, fits = 1;
)";
constexpr std::string_view kBack = R"(#define FIND_TAP \
  const int down = py[i] + top - r * apart_y, across = px[i] + left - c * apart_x; \
  const int fits = down >= 0 && across >= 0 && down % stride_y == 0 && across % stride_x == 0; \
  const int y = down / stride_y, z = across / stride_x;
)";

// As a product: one item has 4 pixels x 16 channels in registers. Weights are [taps, channels from, channels to]. The
// sum of each result is over taps, then channels, in order. Where fewer channels than 16 are left, those read behind
// them belong to nobody and are not written.
constexpr std::string_view kWindows = R"(
kernel void run(OUT(out, float), IN(x, float), IN(w, float), IN(bias, float), int pixels, int to, int from, int taps_y,
    int taps_x, int rows, int columns, int out_rows, int out_columns, int stride_y, int stride_x, int apart_y,
    int apart_x, int top, int left, int has_bias, int relu) {
  ADDRESS(out, float) ADDRESS(x, float) ADDRESS(w, float) ADDRESS(bias, float)
  const int first = get_global_id(1) * 4, column = get_global_id(0) * 16;
  const int count = min(4, pixels - first), width = min(16, to - column);
  int py[4], px[4];
  long image[4];
  for (int i = 0; i < 4; ++i) {
    const int p = min(first + i, pixels - 1);
    px[i] = p % out_columns;
    py[i] = p / out_columns % out_rows;
    image[i] = (long)(p / out_columns / out_rows) * rows * columns * from;
  }
  float16 s0 = 0.f, s1 = 0.f, s2 = 0.f, s3 = 0.f;
  const long last = (long)taps_y * taps_x * from * to - 16 - column;  // Where sixteen weights end inside.
  for (int r = 0; r < taps_y; ++r)
    for (int c = 0; c < taps_x; ++c) {
      int inside[4], any = 0;
      long at[4];
      for (int i = 0; i < 4; ++i) {
        FIND_TAP
        inside[i] = fits && y >= 0 && y < rows && z >= 0 && z < columns;
        at[i] = inside[i] ? image[i] + ((long)y * columns + z) * from : 0;
        any |= inside[i];
      }
      if (!any) continue;
      const long tap = (long)(r * taps_x + c) * from * to;
      global const float* const weights = w + tap + column;
      const int whole = last < tap ? 0 : (int)min((long)from, (last - tap) / to + 1);
      for (int k = 0; k < from; ++k) {
        float16 right;
        if (k < whole) {
          right = vload16(0, weights + (long)k * to);
        } else {
          float some[16];
          for (int j = 0; j < 16; ++j) some[j] = j < width ? weights[(long)k * to + j] : 0.f;
          right = vload16(0, some);
        }
        s0 += (inside[0] ? x[at[0] + k] : 0.f) * right;
        s1 += (inside[1] ? x[at[1] + k] : 0.f) * right;
        s2 += (inside[2] ? x[at[2] + k] : 0.f) * right;
        s3 += (inside[3] ? x[at[3] + k] : 0.f) * right;
      }
    }
  float sum[4][16];
  vstore16(s0, 0, sum[0]);
  vstore16(s1, 0, sum[1]);
  vstore16(s2, 0, sum[2]);
  vstore16(s3, 0, sum[3]);
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < width; ++j) {
      float value = sum[i][j];
      if (has_bias) value += bias[column + j];
      out[(long)(first + i) * to + column + j] = relu && value < 0.f ? 0.f : value;
    }
})";

// One item has 4 channels x 16 channels of one tap: the sum over all pixels, by rows of the images.
constexpr std::string_view kFilter = R"(
kernel void run(OUT(out, float), IN(x, float), IN(dy, float), int batch, int to, int from, int taps_y, int taps_x,
    int rows, int columns, int out_rows, int out_columns, int stride_y, int stride_x, int apart_y, int apart_x, int top,
    int left) {
  ADDRESS(out, float) ADDRESS(x, float) ADDRESS(dy, float)
  const int blocks = (from + 3) / 4, channel = get_global_id(1) % blocks * 4, tap = get_global_id(1) / blocks;
  const int r = tap / taps_x, c = tap % taps_x, column = get_global_id(0) * 16;
  const int count = min(4, from - channel), width = min(16, to - column);
  const int k1 = min(1, count - 1), k2 = min(2, count - 1), k3 = min(3, count - 1);
  const long last = (long)batch * out_rows * out_columns * to - 16;  // Where sixteen slopes end inside.
  float16 t0 = 0.f, t1 = 0.f, t2 = 0.f, t3 = 0.f;
  const int shift = c * apart_x - left;  // z of the first pixel.
  const int begin = shift >= 0 ? 0 : (-shift + stride_x - 1) / stride_x;
  const int end = shift >= columns ? 0 : min(out_columns, (columns - 1 - shift) / stride_x + 1);
  for (int line = 0; line < batch * out_rows; ++line) {
    const int y = line % out_rows * stride_y - top + r * apart_y;
    if (y < 0 || y >= rows) continue;
    global const float* const pixels = x + ((long)(line / out_rows) * rows + y) * columns * from + channel;
    global const float* const slopes = dy + (long)line * out_columns * to + column;
    float16 s0 = 0.f, s1 = 0.f, s2 = 0.f, s3 = 0.f;
    for (int p = begin; p < end; ++p) {
      float16 right;
      if ((long)line * out_columns * to + (long)p * to + column <= last) {
        right = vload16(0, slopes + (long)p * to);
      } else {
        float some[16];
        for (int j = 0; j < 16; ++j) some[j] = j < width ? slopes[(long)p * to + j] : 0.f;
        right = vload16(0, some);
      }
      global const float* const at = pixels + (long)(p * stride_x + shift) * from;
      s0 += at[0] * right;
      s1 += at[k1] * right;
      s2 += at[k2] * right;
      s3 += at[k3] * right;
    }
    t0 += s0;
    t1 += s1;
    t2 += s2;
    t3 += s3;
  }
  float total[4][16];
  vstore16(t0, 0, total[0]);
  vstore16(t1, 0, total[1]);
  vstore16(t2, 0, total[2]);
  vstore16(t3, 0, total[3]);
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < width; ++j) out[((long)tap * from + channel + i) * to + column + j] = total[i][j];
})";

// One item has eight results, whose positions are packed together: as kernels/pooling.h.
constexpr std::string_view kMaxPool = R"(
kernel void run(OUT(out, float), OUT(codes, uchar), IN(x, float), int n, int bits, int rows, int columns, int channels,
    int out_rows, int out_columns, int taps_y, int taps_x, int stride_y, int stride_x, int apart_y, int apart_x,
    int top, int left) {
  ADDRESS(out, float) ADDRESS(codes, uchar) ADDRESS(x, float)
  const int group = get_global_id(0);
  ulong packed = 0;
  for (int i = 0; i < 8; ++i) {
    const int o = group * 8 + i;
    if (o >= n) break;
    const int channel = o % channels, p = o / channels, px = p % out_columns, py = p / out_columns % out_rows;
    global const float* const image = x + (long)(p / out_columns / out_rows) * rows * columns * channels + channel;
    float best = -INFINITY;
    int code = 0, seen = 0;
    for (int r = 0; r < taps_y; ++r)
      for (int c = 0; c < taps_x; ++c) {
        const int y = py * stride_y - top + r * apart_y, z = px * stride_x - left + c * apart_x;
        if (y < 0 || y >= rows || z < 0 || z >= columns) continue;
        const float value = image[((long)y * columns + z) * channels];
        if (!seen || value > best || (value != value && best == best)) {
          best = value;
          code = r * taps_x + c;
        }
        seen = 1;
      }
    out[o] = best;
    if (bits == 32) ((global int*)codes)[o] = code;
    packed |= (ulong)code << (i * (bits & 15));
  }
  if (bits < 32) for (int b = 0; b < bits; ++b) codes[(long)group * bits + b] = (uchar)(packed >> (8 * b));
})";

// One item has one element: what the windows that hold it give it, in order.
constexpr std::string_view kMaxPoolBack = R"(
kernel void run(OUT(out, float), IN(dy, float), IN(codes, uchar), int n, int bits, int rows, int columns, int channels,
    int out_rows, int out_columns, int taps_y, int taps_x, int stride_y, int stride_x, int apart_y, int apart_x,
    int top, int left) {
  ADDRESS(out, float) ADDRESS(dy, float) ADDRESS(codes, uchar)
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
      const long o = ((image + py) * out_columns + px) * channels + channel;
      const long bit = o % 8 * bits;
      const int code = bits == 32 ? ((global int*)codes)[o]
                                  : codes[o / 8 * bits + bit / 8] >> (bit % 8) & ((1 << bits) - 1);
      if (code == r * taps_x + c) sum += dy[o];
    }
  out[e] = sum;
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

constexpr KernelText kTexts[] = {
    {"convolution", kWindows, kForward},     {"convolution_back", kWindows, kBack},
    {"convolution_filter", kFilter},         {"max_pool", kMaxPool},
    {"max_pool_back", kMaxPoolBack},         {"average_pool", kAveragePool},
    {"average_pool_back", kAveragePoolBack},
};

}  // namespace

std::span<const KernelText> image_texts() noexcept { return kTexts; }

}  // namespace plimsoll::internal
