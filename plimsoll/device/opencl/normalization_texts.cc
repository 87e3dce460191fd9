// The kernels of batch and layer normalization. Rows are cut into pieces, whose sums are then joined in order: a device
// always gives the same bits.
#include "plimsoll/device/opencl/kernel_sources.h"

namespace plimsoll::internal {
namespace {

// Sums of rows are by 64, to keep rounding small.
constexpr std::string_view kColumns = R"(#define BLOCK 64
float16 or_one(global const float* from, int count, int has) { return has ? load_some(from, count) : (float16)1.f; }
float16 or_zero(global const float* from, int count, int has) { return has ? load_some(from, count) : (float16)0.f; }
)";

// Of a piece of the rows: the mean and the sum of squares around it.
constexpr std::string_view kMoments = R"(
kernel void run(OUT(parts, float), IN(x, float), int rows, int channels, int piece_rows) {
  ADDRESS(parts, float) ADDRESS(x, float)
  const int column = get_global_id(0) * 16, piece = get_global_id(1), begin = piece * piece_rows;
  const int end = min(rows, begin + piece_rows), width = channels - column;
  float16 sum = 0.f, squares = 0.f;
  for (int from = begin; from < end; from += BLOCK) {
    float16 block = 0.f;
    for (int r = from; r < min(end, from + BLOCK); ++r) block += load_some(x + (long)r * channels + column, width);
    sum += block;
  }
  const float16 mean = sum / (float)max(end - begin, 1);
  for (int from = begin; from < end; from += BLOCK) {
    float16 block = 0.f;
    for (int r = from; r < min(end, from + BLOCK); ++r) {
      const float16 apart = load_some(x + (long)r * channels + column, width) - mean;
      block += apart * apart;
    }
    squares += block;
  }
  store_some(mean, parts + (long)piece * 2 * channels + column, width);
  store_some(squares, parts + ((long)piece * 2 + 1) * channels + column, width);
})";

constexpr std::string_view kJoinMoments = R"(
kernel void run(OUT(mean, float), OUT(variance, float), OUT(rstd, float), IN(parts, float), int rows, int channels,
    int piece_rows, int pieces, float epsilon) {
  ADDRESS(mean, float) ADDRESS(variance, float) ADDRESS(rstd, float) ADDRESS(parts, float)
  const int c = get_global_id(0);
  if (c >= channels) return;
  float all = parts[c], squares = parts[channels + c];
  for (int p = 1; p < pieces; ++p) {
    const int before = p * piece_rows, here = min(piece_rows, rows - before);
    const float share = (float)here / (float)(before + here), apart = parts[(long)p * 2 * channels + c] - all;
    squares += parts[((long)p * 2 + 1) * channels + c] + apart * apart * share * (float)before;
    all += apart * share;
  }
  const float spread = squares / (float)max(rows, 1);
  mean[c] = all;
  variance[c] = spread;
  rstd[c] = 1.f / sqrt(spread + epsilon);
})";

// One item has 8 rows of 16 channels. `deviation` is rstd, or a variance when epsilon is to be added.
constexpr std::string_view kApply = R"(
kernel void run(OUT(y, float), IN(x, float), IN(mean, float), IN(deviation, float), IN(gamma, float), IN(beta, float),
    int rows, int channels, int has_gamma, int has_beta, int relu, int is_variance, float epsilon) {
  ADDRESS(y, float) ADDRESS(x, float) ADDRESS(mean, float) ADDRESS(deviation, float) ADDRESS(gamma, float)
  ADDRESS(beta, float)
  const int column = get_global_id(0) * 16, first = get_global_id(1) * 8, width = channels - column;
  float16 rstd = load_some(deviation + column, width);
  if (is_variance) rstd = 1.f / sqrt(rstd + epsilon);
  const float16 middle = load_some(mean + column, width), scale = or_one(gamma + column, width, has_gamma) * rstd;
  const float16 shift = or_zero(beta + column, width, has_beta);
  for (int r = first; r < min(rows, first + 8); ++r) {
    const long at = (long)r * channels + column;
    float16 value = (load_some(x + at, width) - middle) * scale + shift;
    if (relu) value = select(value, (float16)0.f, value < 0.f);
    store_some(value, y + at, width);
  }
})";

// dy where a relu that was fused let it through.
constexpr std::string_view kSlopesBefore = R"(
float16 through(float16 slope, float16 apart, float16 scale, float16 shift, int relu) {
  return relu ? select((float16)0.f, slope, apart * scale + shift > 0.f) : slope;
}
)";
// Of a piece of the rows: the sum of dy, and of dy times x - mean.
constexpr std::string_view kSlopes = R"(
kernel void run(OUT(parts, float), IN(x, float), IN(dy, float), IN(mean, float), IN(rstd, float), IN(gamma, float),
    IN(beta, float), int rows, int channels, int piece_rows, int has_gamma, int has_beta, int relu) {
  ADDRESS(parts, float) ADDRESS(x, float) ADDRESS(dy, float) ADDRESS(mean, float) ADDRESS(rstd, float)
  ADDRESS(gamma, float) ADDRESS(beta, float)
  const int column = get_global_id(0) * 16, piece = get_global_id(1), begin = piece * piece_rows;
  const int end = min(rows, begin + piece_rows), width = channels - column;
  const float16 middle = load_some(mean + column, width);
  const float16 scale = or_one(gamma + column, width, has_gamma) * load_some(rstd + column, width);
  const float16 shift = or_zero(beta + column, width, has_beta);
  float16 sum = 0.f, product = 0.f;
  for (int from = begin; from < end; from += BLOCK) {
    float16 s = 0.f, p = 0.f;
    for (int r = from; r < min(end, from + BLOCK); ++r) {
      const long at = (long)r * channels + column;
      const float16 apart = load_some(x + at, width) - middle;
      const float16 slope = through(load_some(dy + at, width), apart, scale, shift, relu);
      s += slope;
      p += slope * apart;
    }
    sum += s;
    product += p;
  }
  store_some(sum, parts + (long)piece * 2 * channels + column, width);
  store_some(product, parts + ((long)piece * 2 + 1) * channels + column, width);
})";

// The pieces' sums, and the factors of dx behind them.
constexpr std::string_view kJoinSlopes = R"(
kernel void run(OUT(dgamma, float), OUT(dbeta, float), OUT(factors, float), IN(parts, float), IN(rstd, float),
    IN(gamma, float), int rows, int channels, int pieces, int has_gamma) {
  ADDRESS(dgamma, float) ADDRESS(dbeta, float) ADDRESS(factors, float) ADDRESS(parts, float) ADDRESS(rstd, float)
  ADDRESS(gamma, float)
  const int c = get_global_id(0);
  if (c >= channels) return;
  float sum = 0.f, product = 0.f;
  for (int p = 0; p < pieces; ++p) {
    sum += parts[(long)p * 2 * channels + c];
    product += parts[((long)p * 2 + 1) * channels + c];
  }
  const float r = rstd[c], scale = has_gamma ? gamma[c] * r : r, n = (float)max(rows, 1);
  dgamma[c] = product * r;
  dbeta[c] = sum;
  factors[c] = -scale * r * r * product / n;
  factors[channels + c] = -scale * sum / n;
})";

constexpr std::string_view kBatchBack = R"(
kernel void run(OUT(dx, float), IN(x, float), IN(dy, float), IN(mean, float), IN(rstd, float), IN(gamma, float),
    IN(beta, float), IN(factors, float), int rows, int channels, int has_gamma, int has_beta, int relu) {
  ADDRESS(dx, float) ADDRESS(x, float) ADDRESS(dy, float) ADDRESS(mean, float) ADDRESS(rstd, float)
  ADDRESS(gamma, float) ADDRESS(beta, float) ADDRESS(factors, float)
  const int column = get_global_id(0) * 16, first = get_global_id(1) * 8, width = channels - column;
  const float16 middle = load_some(mean + column, width);
  const float16 scale = or_one(gamma + column, width, has_gamma) * load_some(rstd + column, width);
  const float16 shift = or_zero(beta + column, width, has_beta);
  const float16 slope = load_some(factors + column, width);
  const float16 added = load_some(factors + channels + column, width);
  for (int r = first; r < min(rows, first + 8); ++r) {
    const long at = (long)r * channels + column;
    const float16 apart = load_some(x + at, width) - middle;
    const float16 from = through(load_some(dy + at, width), apart, scale, shift, relu);
    store_some(from * scale + apart * slope + added, dx + at, width);
  }
})";

// One item has one row. Rows whose length is not a multiple of 16 end with a part of a vector, filled with zeros.
constexpr std::string_view kLayer = R"(
kernel void run(OUT(y, float), OUT(mean, float), OUT(rstd, float), IN(x, float), IN(gamma, float), IN(beta, float),
    int rows, int columns, int has_gamma, int has_beta, int has_moments, float epsilon) {
  ADDRESS(y, float) ADDRESS(mean, float) ADDRESS(rstd, float) ADDRESS(x, float) ADDRESS(gamma, float)
  ADDRESS(beta, float)
  const int row = get_global_id(0);
  if (row >= rows) return;
  x += (long)row * columns;
  y += (long)row * columns;
  float16 sum = 0.f, squares = 0.f;
  for (int i = 0; i < columns; i += 16) sum += load_some(x + i, columns - i);
  const float middle = total_of(sum) / (float)columns;
  int i = 0;
  for (; i + 16 <= columns; i += 16) {
    const float16 apart = vload16(0, x + i) - middle;
    squares += apart * apart;
  }
  float all = total_of(squares);
  for (; i < columns; ++i) all += (x[i] - middle) * (x[i] - middle);
  const float deviation = 1.f / sqrt(all / (float)columns + epsilon);
  for (i = 0; i < columns; i += 16) {
    const int width = columns - i;
    const float16 value = (load_some(x + i, width) - middle) * deviation;
    store_some(value * or_one(gamma + i, width, has_gamma) + or_zero(beta + i, width, has_beta), y + i, width);
  }
  if (has_moments) {
    mean[row] = middle;
    rstd[row] = deviation;
  }
})";

constexpr std::string_view kLayerBack = R"(
kernel void run(OUT(dx, float), IN(x, float), IN(dy, float), IN(mean, float), IN(rstd, float), IN(gamma, float),
    int rows, int columns, int has_gamma) {
  ADDRESS(dx, float) ADDRESS(x, float) ADDRESS(dy, float) ADDRESS(mean, float) ADDRESS(rstd, float)
  ADDRESS(gamma, float)
  const int row = get_global_id(0);
  if (row >= rows) return;
  x += (long)row * columns;
  dy += (long)row * columns;
  dx += (long)row * columns;
  const float middle = mean[row], deviation = rstd[row];
  float16 sum = 0.f, product = 0.f;
  for (int i = 0; i < columns; i += 16) {
    const int width = columns - i;
    const float16 slope = load_some(dy + i, width) * or_one(gamma + i, width, has_gamma);
    sum += slope;
    product += slope * ((load_some(x + i, width) - middle) * deviation);
  }
  const float a = total_of(sum) / (float)columns, b = total_of(product) / (float)columns;
  for (int i = 0; i < columns; i += 16) {
    const int width = columns - i;
    const float16 slope = load_some(dy + i, width) * or_one(gamma + i, width, has_gamma);
    const float16 value = (load_some(x + i, width) - middle) * deviation;
    store_some(deviation * (slope - a - value * b), dx + i, width);
  }
})";

// Of a piece of the rows: the sums of dy and of dy times the normalized x.
constexpr std::string_view kLayerSlopes = R"(
kernel void run(OUT(parts, float), IN(x, float), IN(dy, float), IN(mean, float), IN(rstd, float), int rows, int columns,
    int piece_rows) {
  ADDRESS(parts, float) ADDRESS(x, float) ADDRESS(dy, float) ADDRESS(mean, float) ADDRESS(rstd, float)
  const int column = get_global_id(0) * 16, piece = get_global_id(1), begin = piece * piece_rows;
  const int end = min(rows, begin + piece_rows), width = columns - column;
  float16 sum = 0.f, product = 0.f;
  for (int from = begin; from < end; from += BLOCK) {
    float16 s = 0.f, p = 0.f;
    for (int r = from; r < min(end, from + BLOCK); ++r) {
      const long at = (long)r * columns + column;
      const float16 slope = load_some(dy + at, width);
      s += slope;
      p += slope * ((load_some(x + at, width) - mean[r]) * rstd[r]);
    }
    sum += s;
    product += p;
  }
  store_some(sum, parts + (long)piece * 2 * columns + column, width);
  store_some(product, parts + ((long)piece * 2 + 1) * columns + column, width);
})";

constexpr std::string_view kJoinParts = R"(
kernel void run(OUT(dgamma, float), OUT(dbeta, float), IN(parts, float), int columns, int pieces) {
  ADDRESS(dgamma, float) ADDRESS(dbeta, float) ADDRESS(parts, float)
  const int c = get_global_id(0);
  if (c >= columns) return;
  float sum = 0.f, product = 0.f;
  for (int p = 0; p < pieces; ++p) {
    sum += parts[(long)p * 2 * columns + c];
    product += parts[((long)p * 2 + 1) * columns + c];
  }
  dgamma[c] = product;
  dbeta[c] = sum;
})";

}  // namespace

std::span<const KernelText> normalization_texts() noexcept {
  static constexpr KernelText kNormalizationTexts[] = {
      {"batch_norm_moments", kMoments, kColumns, "", 16},
      {"batch_norm_join", kJoinMoments},
      {"batch_norm_apply", kApply, kColumns, "", 16},
      {"batch_norm_slopes", kSlopes, kColumns, kSlopesBefore, 16},
      {"batch_norm_join_slopes", kJoinSlopes},
      {"batch_norm_back", kBatchBack, kColumns, kSlopesBefore, 16},
      {"layer_norm", kLayer, kColumns, "", 16},
      {"layer_norm_back", kLayerBack, kColumns, "", 16},
      {"layer_norm_slopes", kLayerSlopes, kColumns, "", 16},
      {"layer_norm_join_slopes", kJoinParts},
  };
  return kNormalizationTexts;
}

}  // namespace plimsoll::internal
