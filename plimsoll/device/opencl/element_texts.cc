// Kernels of elements, rows and updates that are not generated, and what all kernels share. Sums are over elements in
// order, so that a device always gives the same bits.
#include "plimsoll/device/opencl/kernel_sources.h"

namespace plimsoll::internal {
namespace {

constexpr std::string_view kCommon = R"(#pragma OPENCL FP_CONTRACT OFF
#define IN(name, type) global uchar* name##_buffer, ulong name##_offset
#define OUT(name, type) global uchar* name##_buffer, ulong name##_offset
#define ADDRESS(name, type) global type* name = (global type*)(name##_buffer + name##_offset);
#define SELU_SCALE 1.0507009873554804934193349852946f
#define SELU_ALPHA 1.6732632423543772848170429916717f
)";

// Between a dense tensor and elements of another at these steps. One item has eight: it divides once.
constexpr std::string_view kBox = R"(
kernel void run(OUT(out, T), IN(x, T), int n, int d1, int d2, int d3, int d4, int s0, int s1, int s2, int s3, int s4,
    int start) {
  ADDRESS(out, T) ADDRESS(x, T)
  const int first = get_global_id(0) * 8;
  int i4 = first % d4, left = first / d4;
  int i3 = left % d3; left /= d3;
  int i2 = left % d2; left /= d2;
  int i1 = left % d1; left /= d1;
  for (int i = first; i < first + 8 && i < n; ++i) {
    const int at = start + left * s0 + i1 * s1 + i2 * s2 + i3 * s3 + i4 * s4;
    MOVE
    if (++i4 == d4) {
      i4 = 0;
      if (++i3 == d3) {
        i3 = 0;
        if (++i2 == d2) { i2 = 0; if (++i1 == d1) { i1 = 0; ++left; } }
      }
    }
  }
})";

constexpr KernelText kElementTexts[] = {
    // Fills with a pattern of 1, 4 or 8 bytes.
    {"fill.1", R"(kernel void run(OUT(out, uchar), int n, int low, int high) {
  ADDRESS(out, uchar)
  const int i = get_global_id(0);
  if (i < n) out[i] = (uchar)low;
})"},
    {"fill.4", R"(kernel void run(OUT(out, int), int n, int low, int high) {
  ADDRESS(out, int)
  const int i = get_global_id(0);
  if (i < n) out[i] = low;
})"},
    {"fill.8", R"(kernel void run(OUT(out, ulong), int n, int low, int high) {
  ADDRESS(out, ulong)
  const int i = get_global_id(0);
  if (i < n) out[i] = (uint)low | (ulong)(uint)high << 32;
})"},
    {"strided.1", kBox, "#define T uchar\n", "#define MOVE out[i] = x[at];\n"},
    {"strided.4", kBox, "#define T int\n", "#define MOVE out[i] = x[at];\n"},
    {"strided.8", kBox, "#define T long\n", "#define MOVE out[i] = x[at];\n"},
    {"placed.1", kBox, "#define T uchar\n", "#define MOVE out[at] = x[i];\n"},
    {"placed.4", kBox, "#define T int\n", "#define MOVE out[at] = x[i];\n"},
    {"placed.8", kBox, "#define T long\n", "#define MOVE out[at] = x[i];\n"},
    // Reductions of [outer, count, inner] over the middle axis.
    {"reduce.sum.f32", R"(kernel void run(OUT(out, float), IN(x, float), int outer, int count, int inner) {
  ADDRESS(out, float) ADDRESS(x, float)
  const int i = get_global_id(0);
  if (i >= outer * inner) return;
  x += (long)(i / inner) * count * inner + i % inner;
  float sum[8] = {0};
  int k = 0;
  for (; k + 8 <= count; k += 8) for (int c = 0; c < 8; ++c) sum[c] += x[(long)(k + c) * inner];
  for (; k < count; ++k) sum[0] += x[(long)k * inner];
  out[i] = ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
})"},
    // The same with sixteen columns for an item.
    {"reduce_columns.sum.f32", R"(kernel void run(OUT(out, float), IN(x, float), int outer, int count, int inner) {
  ADDRESS(out, float) ADDRESS(x, float)
  const int column = get_global_id(0) * 16, width = inner - column;
  x += (long)get_global_id(1) * count * inner + column;
  out += (long)get_global_id(1) * inner + column;
  V s0 = 0.f, s1 = 0.f, s2 = 0.f, s3 = 0.f, s4 = 0.f, s5 = 0.f, s6 = 0.f, s7 = 0.f;
  int k = 0;
  for (; k + 8 <= count; k += 8) {
    s0 += load_some(x + (long)k * inner, width);
    s1 += load_some(x + (long)(k + 1) * inner, width);
    s2 += load_some(x + (long)(k + 2) * inner, width);
    s3 += load_some(x + (long)(k + 3) * inner, width);
    s4 += load_some(x + (long)(k + 4) * inner, width);
    s5 += load_some(x + (long)(k + 5) * inner, width);
    s6 += load_some(x + (long)(k + 6) * inner, width);
    s7 += load_some(x + (long)(k + 7) * inner, width);
  }
  for (; k < count; ++k) s0 += load_some(x + (long)k * inner, width);
  store_some(((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7)), out, width);
})",
     "", "", 16},
    {"reduce.mean.f32", R"(kernel void run(OUT(out, float), IN(x, float), int outer, int count, int inner) {
  ADDRESS(out, float) ADDRESS(x, float)
  const int i = get_global_id(0);
  if (i >= outer * inner) return;
  x += (long)(i / inner) * count * inner + i % inner;
  float sum[8] = {0};
  int k = 0;
  for (; k + 8 <= count; k += 8) for (int c = 0; c < 8; ++c) sum[c] += x[(long)(k + c) * inner];
  for (; k < count; ++k) sum[0] += x[(long)k * inner];
  out[i] = (((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]))) / count;
})"},
    {"reduce.max.f32", R"(kernel void run(OUT(out, float), IN(x, float), int outer, int count, int inner) {
  ADDRESS(out, float) ADDRESS(x, float)
  const int i = get_global_id(0);
  if (i >= outer * inner) return;
  x += (long)(i / inner) * count * inner + i % inner;
  float best = x[0];
  for (int k = 1; k < count; ++k) { const float y = x[(long)k * inner]; if (y > best || y != y) best = y; }
  out[i] = best;
})"},
    {"reduce.min.f32", R"(kernel void run(OUT(out, float), IN(x, float), int outer, int count, int inner) {
  ADDRESS(out, float) ADDRESS(x, float)
  const int i = get_global_id(0);
  if (i >= outer * inner) return;
  x += (long)(i / inner) * count * inner + i % inner;
  float best = x[0];
  for (int k = 1; k < count; ++k) { const float y = x[(long)k * inner]; if (y < best || y != y) best = y; }
  out[i] = best;
})"},
    {"argmax.f32", R"(kernel void run(OUT(out, long), IN(x, float), int outer, int count, int inner) {
  ADDRESS(out, long) ADDRESS(x, float)
  const int i = get_global_id(0);
  if (i >= outer * inner) return;
  x += (long)(i / inner) * count * inner + i % inner;
  float best = x[0];
  int at = 0;
  for (int k = 1; k < count && best == best; ++k) {
    const float y = x[(long)k * inner];
    if (y != y || y > best) { best = y; at = k; }
  }
  out[i] = at;
})"},
    {"argmin.f32", R"(kernel void run(OUT(out, long), IN(x, float), int outer, int count, int inner) {
  ADDRESS(out, long) ADDRESS(x, float)
  const int i = get_global_id(0);
  if (i >= outer * inner) return;
  x += (long)(i / inner) * count * inner + i % inner;
  float best = x[0];
  int at = 0;
  for (int k = 1; k < count && best == best; ++k) {
    const float y = x[(long)k * inner];
    if (y != y || y < best) { best = y; at = k; }
  }
  out[i] = at;
})"},
    // Rows [rows, columns].
    {"softmax", R"(kernel void run(OUT(out, float), IN(x, float), int rows, int columns, int log_of) {
  ADDRESS(out, float) ADDRESS(x, float)
  const int row = get_global_id(0);
  if (row >= rows) return;
  x += (long)row * columns;
  out += (long)row * columns;
  float most = -INFINITY;
  for (int i = 0; i < columns; ++i) most = fmax(most, x[i]);
  float sum = 0.f;
  for (int i = 0; i < columns; ++i) sum += exp(x[i] - most);
  if (log_of) {
    const float total = log(sum);
    for (int i = 0; i < columns; ++i) out[i] = (x[i] - most) - total;
  } else {
    for (int i = 0; i < columns; ++i) out[i] = exp(x[i] - most) / sum;
  }
})"},
    {"softmax_grad",
     R"(kernel void run(OUT(out, float), IN(y, float), IN(g, float), int rows, int columns, int log_of) {
  ADDRESS(out, float) ADDRESS(y, float) ADDRESS(g, float)
  const int row = get_global_id(0);
  if (row >= rows) return;
  y += (long)row * columns;
  g += (long)row * columns;
  out += (long)row * columns;
  float sum = 0.f;
  for (int i = 0; i < columns; ++i) sum += log_of ? g[i] : g[i] * y[i];
  for (int i = 0; i < columns; ++i) out[i] = log_of ? g[i] - exp(y[i]) * sum : (g[i] - sum) * y[i];
})"},
// A loss for each row. Labels are checked before.
#define PLIMSOLL_SPARSE_LOSS(suffix, type)                                                                            \
  {"sparse_loss." suffix,                                                                                             \
   "kernel void run(OUT(out, float), IN(label, " type                                                                 \
   "), IN(x, float), int rows, int columns) {\n"                                                                      \
   "  ADDRESS(out, float) ADDRESS(label, " type                                                                       \
   ") ADDRESS(x, float)\n"                                                                                            \
   "  const int row = get_global_id(0);\n  if (row >= rows) return;\n  x += (long)row * columns;\n"                   \
   "  float most = -INFINITY, sum = 0.f;\n"                                                                           \
   "  for (int i = 0; i < columns; ++i) most = fmax(most, x[i]);\n"                                                   \
   "  for (int i = 0; i < columns; ++i) sum += exp(x[i] - most);\n"                                                   \
   "  const bool is_class = label[row] >= 0 && label[row] < columns;\n"                                               \
   "  out[row] = is_class ? log(sum) - (x[label[row]] - most) : 0.f;\n}\n"},                                          \
  {                                                                                                                   \
    "sparse_loss_grad." suffix, "kernel void run(OUT(out, float), IN(label, " type                                    \
                                "), IN(x, float), IN(g, float), int rows, int columns) {\n"                           \
                                "  ADDRESS(out, float) ADDRESS(label, " type                                          \
                                ") ADDRESS(x, float) ADDRESS(g, float)\n"                                             \
                                "  const int row = get_global_id(0);\n  if (row >= rows) return;\n"                   \
                                "  x += (long)row * columns;\n  out += (long)row * columns;\n"                        \
                                "  const float slope = g[row];\n  float most = -INFINITY, sum = 0.f;\n"               \
                                "  for (int i = 0; i < columns; ++i) most = fmax(most, x[i]);\n"                      \
                                "  for (int i = 0; i < columns; ++i) sum += exp(x[i] - most);\n"                      \
                                "  for (int i = 0; i < columns; ++i)\n"                                               \
                                "    out[i] = slope * (exp(x[i] - most) / sum - (i == label[row] ? 1.f : 0.f));\n}\n" \
  }
    PLIMSOLL_SPARSE_LOSS("i32", "int"),
    PLIMSOLL_SPARSE_LOSS("i64", "long"),
#undef PLIMSOLL_SPARSE_LOSS
    {"softmax_loss", R"(kernel void run(OUT(out, float), IN(label, float), IN(x, float), int rows, int columns) {
  ADDRESS(out, float) ADDRESS(label, float) ADDRESS(x, float)
  const int row = get_global_id(0);
  if (row >= rows) return;
  x += (long)row * columns;
  label += (long)row * columns;
  float most = -INFINITY, sum = 0.f, loss = 0.f;
  for (int i = 0; i < columns; ++i) most = fmax(most, x[i]);
  for (int i = 0; i < columns; ++i) sum += exp(x[i] - most);
  const float total = log(sum);
  for (int i = 0; i < columns; ++i) if (label[i] != 0.f) loss += label[i] * (total - (x[i] - most));
  out[row] = loss;
})"},
    {"softmax_loss_grad",
     R"(kernel void run(OUT(out, float), IN(label, float), IN(x, float), IN(g, float), int rows, int columns) {
  ADDRESS(out, float) ADDRESS(label, float) ADDRESS(x, float) ADDRESS(g, float)
  const int row = get_global_id(0);
  if (row >= rows) return;
  x += (long)row * columns;
  label += (long)row * columns;
  out += (long)row * columns;
  const float slope = g[row];
  float most = -INFINITY, sum = 0.f, labels = 0.f;
  for (int i = 0; i < columns; ++i) most = fmax(most, x[i]);
  for (int i = 0; i < columns; ++i) { sum += exp(x[i] - most); labels += label[i]; }
  for (int i = 0; i < columns; ++i) out[i] = slope * (exp(x[i] - most) / sum * labels - label[i]);
})"},
    {"sigmoid_loss", R"(kernel void run(OUT(out, float), IN(label, float), IN(x, float), int rows, int columns) {
  ADDRESS(out, float) ADDRESS(label, float) ADDRESS(x, float)
  const int i = get_global_id(0);
  if (i < rows) out[i] = fmax(x[i], 0.f) - x[i] * label[i] + log1p(exp(-fabs(x[i])));
})"},
    {"sigmoid_loss_grad",
     R"(kernel void run(OUT(out, float), IN(label, float), IN(x, float), IN(g, float), int rows, int columns) {
  ADDRESS(out, float) ADDRESS(label, float) ADDRESS(x, float) ADDRESS(g, float)
  const int i = get_global_id(0);
  if (i < rows) out[i] = g[i] * (sigmoid_of(x[i]) - label[i]);
})"},
    // Philox4x32-10: one item has eight blocks of four elements.
    {"dropout",
     R"(kernel void run(OUT(out, float), IN(x, float), int n, float scale, int threshold, uint key0, uint key1,
    uint position0, uint position1) {
  ADDRESS(out, float) ADDRESS(x, float)
  const int first = get_global_id(0) * 32;
  const ulong8 position = ((ulong)position1 << 32 | position0) + (ulong)get_global_id(0) * 8 + (ulong8)(0, 1, 2, 3, 4, 5, 6, 7);
  uint8 c0 = convert_uint8(position), c1 = convert_uint8(position >> 32), c2 = 0, c3 = 0;
  for (int round = 0; round < 10; ++round) {
    const uint8 high0 = mul_hi(c0, (uint8)0xD2511F53u), low0 = c0 * 0xD2511F53u;
    const uint8 high2 = mul_hi(c2, (uint8)0xCD9E8D57u), low2 = c2 * 0xCD9E8D57u;
    c0 = high2 ^ c1 ^ key0;
    c1 = low2;
    c2 = high0 ^ c3 ^ key1;
    c3 = low0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  uint draws[4][8];
  vstore8(c0 >> 8, 0, draws[0]);
  vstore8(c1 >> 8, 0, draws[1]);
  vstore8(c2 >> 8, 0, draws[2]);
  vstore8(c3 >> 8, 0, draws[3]);
  for (int i = 0; i < 32 && first + i < n; ++i)
    out[first + i] = (int)draws[i % 4][i / 4] < threshold ? x[first + i] * scale : 0.f;
})"},
// Optimizers, in the order of kernels/internal/optimizer_loops.cc; factors are those there.
#define PLIMSOLL_UPDATE(name, body)                                                                                    \
  {                                                                                                                    \
    "update." name,                                                                                                    \
        "kernel void run(OUT(w, float), IN(g, float), OUT(p, float), OUT(q, float), OUT(r, float), int n, float f0,\n" \
        "    float f1, float f2, float f3, float f4) {\n"                                                              \
        "  ADDRESS(w, float) ADDRESS(g, float) ADDRESS(p, float) ADDRESS(q, float) ADDRESS(r, float)\n"                \
        "  const int first = get_global_id(0) * 8;\n"                                                                  \
        "  for (int i = first; i < first + 8 && i < n; ++i) {\n" body "  }\n}\n"                                       \
  }
    PLIMSOLL_UPDATE("sgd", "w[i] += f0 * g[i];\n"),
    PLIMSOLL_UPDATE("momentum", "const float v = f0 * p[i] + f1 * g[i]; p[i] = v; w[i] += f2 * v + f3 * g[i];\n"),
    PLIMSOLL_UPDATE("rmsprop",
                    "const float s = f0 * p[i] + f1 * (g[i] * g[i]); p[i] = s;\n"
                    "w[i] -= f2 * g[i] / sqrt(s + f3);\n"),
    PLIMSOLL_UPDATE("rmsprop_centered",
                    "const float s = f0 * p[i] + f1 * (g[i] * g[i]), a = f0 * q[i] + f1 * g[i];\n"
                    "p[i] = s; q[i] = a; w[i] -= f2 * g[i] / sqrt((s - a * a) + f3);\n"),
    PLIMSOLL_UPDATE("rmsprop_momentum",
                    "const float s = f0 * p[i] + f1 * (g[i] * g[i]); p[i] = s;\n"
                    "const float m = f4 * q[i] + f2 * g[i] / sqrt(s + f3); q[i] = m; w[i] -= m;\n"),
    PLIMSOLL_UPDATE("rmsprop_centered_momentum",
                    "const float s = f0 * p[i] + f1 * (g[i] * g[i]), a = f0 * q[i] + f1 * g[i];\n"
                    "p[i] = s; q[i] = a;\n"
                    "const float m = f4 * r[i] + f2 * g[i] / sqrt((s - a * a) + f3); r[i] = m; w[i] -= m;\n"),
    PLIMSOLL_UPDATE("adagrad", "const float s = p[i] + g[i] * g[i]; p[i] = s; w[i] -= f0 * g[i] / sqrt(s + f1);\n"),
    PLIMSOLL_UPDATE("adadelta",
                    "const float before = p[i], s = f0 * before + f1 * (g[i] * g[i]); p[i] = s;\n"
                    "const float d = sqrt(q[i] + f3) / sqrt((f4 != 0.f ? before : s) + f3) * g[i];\n"
                    "q[i] = f0 * q[i] + f1 * (d * d); w[i] -= f2 * d;\n"),
    PLIMSOLL_UPDATE("adam",
                    "const float m = p[i] + (g[i] - p[i]) * f0, v = q[i] + (g[i] * g[i] - q[i]) * f1;\n"
                    "p[i] = m; q[i] = v; w[i] = w[i] * f4 - f2 * m / (sqrt(v) + f3);\n"),
    PLIMSOLL_UPDATE("adamax",
                    "const float m = p[i] + (g[i] - p[i]) * f0, old = f1 * q[i], fresh = fabs(g[i]);\n"
                    "const float u = old > fresh ? old : fresh;\n"
                    "p[i] = m; q[i] = u; w[i] -= f2 * m / (u + f3);\n"),
#undef PLIMSOLL_UPDATE
    // A bit for each element above zero, and a gradient through it: 512 elements are 16 words, and element e of them is
    // bit e / 16 of word e % 16.
    {"relu_mask", R"(kernel void run(OUT(mask, uint), IN(x, float), int n, int words) {
  ADDRESS(mask, uint) ADDRESS(x, float)
  const int first = get_global_id(0) * 512;
  int16 bits = 0;
  for (int bit = 0; bit < 32 && first + bit * 16 < n; ++bit)
    bits |= (load_some(x + first + bit * 16, n - first - bit * 16) > 0.f) & ((int16)1 << bit);
  int some[16];
  vstore16(bits, 0, some);
  for (int i = 0; i < 16 && get_global_id(0) * 16 + i < words; ++i) mask[get_global_id(0) * 16 + i] = as_uint(some[i]);
})",
     "", "", 16},
    {"mask_slope", R"(kernel void run(OUT(out, float), IN(g, float), IN(mask, uint), int n) {
  ADDRESS(out, float) ADDRESS(g, float) ADDRESS(mask, uint)
  const int first = get_global_id(0) * 16;
  if (first >= n) return;
  const int16 bits = as_int16(vload16(0, mask + first / 512 * 16) >> (uint16)(first % 512 / 16)) & 1;
  store_some(PICK(bits != 0, load_some(g + first, n - first), 0.f), out + first, n - first);
})",
     "", "", 16},
// Which of the indices is the first outside of [0, size); one group looks at all of them. What was found first stays.
#define PLIMSOLL_CHECK_INDICES(suffix, type)                                                                \
  {                                                                                                         \
    "check_indices." suffix,                                                                                \
        "kernel void run(OUT(word, uint), IN(at, " type                                                     \
        "), int n, int size, int check) {\n"                                                                \
        "  ADDRESS(word, uint) ADDRESS(at, " type                                                           \
        ")\n  local int firsts[64];\n"                                                                      \
        "  const int item = get_local_id(0), items = get_local_size(0);\n  int first = n;\n"                \
        "  for (int i = item; i < n; i += items) first = min(first, at[i] >= 0 && at[i] < size ? n : i);\n" \
        "  firsts[item] = first;\n  barrier(CLK_LOCAL_MEM_FENCE);\n  if (item != 0) return;\n"              \
        "  for (int i = 1; i < items; ++i) first = min(first, firsts[i]);\n"                                \
        "  if (first == n || word[0] != 0) return;\n  const ulong index = (ulong)(long)at[first];\n"        \
        "  word[0] = check;\n  word[1] = first;\n  word[2] = (uint)index;\n"                                \
        "  word[3] = (uint)(index >> 32);\n}\n"                                                             \
  }
    PLIMSOLL_CHECK_INDICES("i32", "int"),
    PLIMSOLL_CHECK_INDICES("i64", "long"),
#undef PLIMSOLL_CHECK_INDICES
// Rows by index, and added up at an index; an index that is refused is left out.
#define PLIMSOLL_ROWS(suffix, type)                                                                                  \
  {"gather." suffix,                                                                                                 \
   "kernel void run(OUT(out, int), IN(x, int), IN(at, " type                                                         \
   "), int n, int size, int count, int width) {\n"                                                                   \
   "  ADDRESS(out, int) ADDRESS(x, int) ADDRESS(at, " type                                                           \
   ")\n"                                                                                                             \
   "  const int i = get_global_id(0);\n  if (i >= n) return;\n"                                                      \
   "  const int row = i / width, outer = row / count;\n"                                                             \
   "  const long from = at[row % count];\n"                                                                          \
   "  out[i] = from >= 0 && from < size ? x[((long)outer * size + from) * width + i % width] : 0;\n}\n"},            \
  {                                                                                                                  \
    "scatter_add." suffix,                                                                                           \
        "kernel void run(OUT(out, float), IN(x, float), IN(at, " type                                                \
        "), int rows, int count, int width) {\n"                                                                     \
        "  ADDRESS(out, float) ADDRESS(x, float) ADDRESS(at, " type                                                  \
        ")\n"                                                                                                        \
        "  const int column = get_global_id(0);\n  if (column >= width) return;\n"                                   \
        "  for (int k = 0; k < count; ++k)\n"                                                                        \
        "    if (at[k] >= 0 && at[k] < rows) out[(long)at[k] * width + column] += x[(long)k * width + column];\n}\n" \
  }
    PLIMSOLL_ROWS("i32", "int"),
    PLIMSOLL_ROWS("i64", "long"),
#undef PLIMSOLL_ROWS
    {"clip", R"(kernel void run(OUT(out, float), IN(x, float), int n, float low, float high) {
  ADDRESS(out, float) ADDRESS(x, float)
  const int first = get_global_id(0) * 8;
  for (int i = first; i < first + 8 && i < n; ++i) out[i] = x[i] < low ? low : x[i] > high ? high : x[i];
})"},
    {"is_within", R"(kernel void run(OUT(out, uchar), IN(x, float), int n, float low, float high) {
  ADDRESS(out, uchar) ADDRESS(x, float)
  const int first = get_global_id(0) * 8;
  for (int i = first; i < first + 8 && i < n; ++i) out[i] = x[i] >= low && x[i] <= high;
})"},
// The mean over each row of a loss of e = prediction - target; and its slope, times that of its row or of all.
#define PLIMSOLL_ROW_LOSS(name, loss, slope)                                                                     \
  {"row_loss." name,                                                                                             \
   "kernel void run(OUT(out, float), IN(target, float), IN(x, float), int rows, int columns,\n"                  \
   "    float delta) {\n  ADDRESS(out, float) ADDRESS(target, float) ADDRESS(x, float)\n"                        \
   "  const int row = get_global_id(0);\n  if (row >= rows) return;\n  float sum = 0.f;\n"                       \
   "  for (long i = (long)row * columns; i < ((long)row + 1) * columns; ++i) {\n"                                \
   "    const float e = x[i] - target[i];\n    sum += " loss ";\n  }\n  out[row] = sum / (float)columns;\n}\n"}, \
  {                                                                                                              \
    "row_loss_grad." name,                                                                                       \
        "kernel void run(OUT(out, float), IN(target, float), IN(x, float), IN(g, float), int n, int columns,\n"  \
        "    int by_row, float factor, float delta) {\n"                                                         \
        "  ADDRESS(out, float) ADDRESS(target, float) ADDRESS(x, float) ADDRESS(g, float)\n"                     \
        "  const int i = get_global_id(0);\n  if (i >= n) return;\n  const float e = x[i] - target[i];\n"        \
        "  out[i] = (" slope ") * (g[by_row ? i / columns : 0] * factor);\n}\n"                                  \
  }
    PLIMSOLL_ROW_LOSS("squared", "e * e", "2.f * e"),
    PLIMSOLL_ROW_LOSS("absolute", "fabs(e)", "(float)((e > 0.f) - (e < 0.f))"),
    PLIMSOLL_ROW_LOSS("huber", "fabs(e) <= delta ? 0.5f * e * e : delta * fabs(e) - 0.5f * delta * delta",
                      "e < -delta ? -delta : e > delta ? delta : e"),
    PLIMSOLL_ROW_LOSS("sigmoid", "fmax(x[i], 0.f) - x[i] * target[i] + log1p(exp(-fabs(x[i])))",
                      "sigmoid_of(x[i]) - target[i]"),
#undef PLIMSOLL_ROW_LOSS
    {"select.4",
     R"(kernel void run(OUT(out, int), IN(test, uchar), IN(a, int), IN(b, int), int n, int step_t, int step_a,
    int step_b) {
  ADDRESS(out, int) ADDRESS(test, uchar) ADDRESS(a, int) ADDRESS(b, int)
  const int i = get_global_id(0);
  if (i < n) out[i] = test[i * step_t] ? a[i * step_a] : b[i * step_b];
})"},
};

}  // namespace

std::string_view common_text() noexcept { return kCommon; }

std::span<const KernelText> element_texts() noexcept { return kElementTexts; }

}  // namespace plimsoll::internal
