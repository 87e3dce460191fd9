// The kernels of LSTM steps and of attention.
#include "plimsoll/device/opencl/kernel_sources.h"

namespace plimsoll::internal {
namespace {

// Activations by the numbers of RecurrentActivation: linear, relu, tanh, sigmoid, hard_sigmoid; slopes by their value.
constexpr std::string_view kActivations = R"(
float activate(float x, int kind) {
  switch (kind) {
    case 1: return x < 0.f ? 0.f : x;
    case 2: return tanh(x);
    case 3: return sigmoid_of(x);
    case 4: return clamp(x * 0.2f + 0.5f, 0.f, 1.f);
    default: return x;
  }
}
float slope_at(float y, int kind) {
  switch (kind) {
    case 1: return y > 0.f ? 1.f : 0.f;
    case 2: return 1.f - y * y;
    case 3: return y * (1.f - y);
    case 4: return y > 0.f && y < 1.f ? 0.2f : 0.f;
    default: return 1.f;
  }
}
)";

// One item has 16 units of one row: adds the state's products to those of the inputs, which `gates` holds, and leaves
// the gates' values there. Steps are from row to row; h and h_next are dense.
constexpr std::string_view kLstmStep = R"(
kernel void run(OUT(gates, float), IN(u, float), IN(h, float), IN(c, float), OUT(h_next, float), OUT(c_next, float),
    OUT(y, float), int batch, int units, int gate_step, int c_step, int c_next_step, int y_step, int has_h, int has_c,
    int has_y, int activation, int recurrent_activation) {
  ADDRESS(gates, float) ADDRESS(u, float) ADDRESS(h, float) ADDRESS(c, float) ADDRESS(h_next, float)
  ADDRESS(c_next, float) ADDRESS(y, float)
  const int unit = get_global_id(0) * 16, b = get_global_id(1), width = min(16, units - unit), all = 4 * units;
  gates += (long)b * gate_step;
  h += (long)b * units;
  float sum[4][16];
  for (int g = 0; g < 4; ++g)
    for (int j = 0; j < 16; ++j) sum[g][j] = 0.f;
  if (has_h && width == 16) {
    float16 s0 = 0.f, s1 = 0.f, s2 = 0.f, s3 = 0.f;
    for (int k = 0; k < units; ++k) {
      const float state = h[k];
      global const float* const row = u + (long)k * all + unit;
      s0 += state * vload16(0, row);
      s1 += state * vload16(0, row + units);
      s2 += state * vload16(0, row + 2 * units);
      s3 += state * vload16(0, row + 3 * units);
    }
    vstore16(s0, 0, sum[0]);
    vstore16(s1, 0, sum[1]);
    vstore16(s2, 0, sum[2]);
    vstore16(s3, 0, sum[3]);
  } else if (has_h) {
    for (int k = 0; k < units; ++k) {
      const float state = h[k];
      for (int g = 0; g < 4; ++g)
        for (int j = 0; j < width; ++j) sum[g][j] += state * u[(long)k * all + g * units + unit + j];
    }
  }
  for (int j = 0; j < width; ++j) {
    const int i = unit + j;
    const float in = activate(gates[i] + sum[0][j], recurrent_activation);
    const float forget = activate(gates[units + i] + sum[1][j], recurrent_activation);
    const float fresh = activate(gates[2 * units + i] + sum[2][j], activation);
    const float out = activate(gates[3 * units + i] + sum[3][j], recurrent_activation);
    const float before = has_c ? c[(long)b * c_step + i] : 0.f;
    const float cell = forget * before + in * fresh;
    gates[i] = in;
    gates[units + i] = forget;
    gates[2 * units + i] = fresh;
    gates[3 * units + i] = out;
    c_next[(long)b * c_next_step + i] = cell;
    const float value = out * activate(cell, activation);
    h_next[(long)b * units + i] = value;
    if (has_y) y[(long)b * y_step + i] = value;
  }
})";

// The gates' slopes of one step, from dh and dc, which become those of the step before (dh through a product that
// follows). `h_before` is the state that the step began with: 0: zeros, 1: `initial`, 2: made again from the gates of
// the step before.
constexpr std::string_view kLstmBack = R"(
kernel void run(OUT(slopes, float), OUT(dh, float), OUT(dc, float), OUT(h_before, float), IN(gates, float),
    IN(c, float), IN(gates_before, float), IN(initial, float), IN(dy, float), IN(d_h, float), IN(d_c, float), int batch,
    int units, int gate_step, int c_step, int dy_step, int has_c, int before, int has_dy, int is_last, int has_d_h,
    int has_d_c, int activation, int recurrent_activation) {
  ADDRESS(slopes, float) ADDRESS(dh, float) ADDRESS(dc, float) ADDRESS(h_before, float) ADDRESS(gates, float)
  ADDRESS(c, float) ADDRESS(gates_before, float) ADDRESS(initial, float) ADDRESS(dy, float) ADDRESS(d_h, float)
  ADDRESS(d_c, float)
  const int i = get_global_id(0), b = get_global_id(1);
  if (i >= units) return;
  const long state = (long)b * units + i, gate = (long)b * gate_step + i, slope = (long)b * 4 * units + i;
  float from_h = is_last ? (has_d_h ? d_h[state] : 0.f) : dh[state];
  if (has_dy) from_h += dy[(long)b * dy_step + i];
  const float from_c = is_last ? (has_d_c ? d_c[state] : 0.f) : dc[state];
  const float in = gates[gate], forget = gates[gate + units], fresh = gates[gate + 2 * units];
  const float out = gates[gate + 3 * units], cell = has_c ? c[(long)b * c_step + i] : 0.f;
  const float value = activate(forget * cell + in * fresh, activation);
  const float all = from_c + from_h * out * slope_at(value, activation);
  slopes[slope] = all * fresh * slope_at(in, recurrent_activation);
  slopes[slope + units] = all * cell * slope_at(forget, recurrent_activation);
  slopes[slope + 2 * units] = all * in * slope_at(fresh, activation);
  slopes[slope + 3 * units] = from_h * value * slope_at(out, recurrent_activation);
  dc[state] = all * forget;
  h_before[state] = before == 0   ? 0.f
                    : before == 1 ? initial[state]
                                  : gates_before[gate + 3 * units] * activate(cell, activation);
})";

// Rows of [batch, heads, rows, width], or of [batch, rows, heads, width] when sequences come first; and one score.
constexpr std::string_view kScores = R"(
long row_at(int head, int row, int heads, int rows, int width, int sequence_first) {
  const long batch = (long)(head / heads) * heads * rows * width;
  return sequence_first ? batch + ((long)row * heads + head % heads) * width
                        : batch + ((long)(head % heads) * rows + row) * width;
}
float dot_of(global const float* a, global const float* b, int n) {
  float16 sum = 0.f;
  int i = 0;
  for (; i + 16 <= n; i += 16) sum += vload16(0, a + i) * vload16(0, b + i);
  const float8 s8 = sum.lo + sum.hi;
  const float4 s4 = s8.lo + s8.hi;
  float total = (s4.x + s4.z) + (s4.y + s4.w);
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}
void add_scaled(global float* to, float by, global const float* from, int n) {
  int i = 0;
  for (; i + 16 <= n; i += 16) vstore16(vload16(0, to + i) + by * vload16(0, from + i), 0, to + i);
  for (; i < n; ++i) to[i] += by * from[i];
}
float score_of(global const float* q, global const float* k, int depth, float scale, global const uchar* mask, int kind,
               long at) {
  const float score = dot_of(q, k, depth) * scale;
  if (kind == 1) return mask[at] ? score : -INFINITY;
  return kind == 2 ? score + ((global const float*)mask)[at] : score;
}
)";

// One item has one query of one head. Keys are taken 32 at a time, and folded in at once.
constexpr std::string_view kAttention = R"(
#define KEYS 32
kernel void run(OUT(y, float), OUT(sums, float), IN(q, float), IN(k, float), IN(v, float), IN(mask, uchar), int heads,
    int queries, int keys, int depth, int columns, int sequence_first, int causal, int mask_kind, int mask_batch,
    int mask_head, int mask_query, int has_sums, float scale) {
  ADDRESS(y, float) ADDRESS(sums, float) ADDRESS(q, float) ADDRESS(k, float) ADDRESS(v, float) ADDRESS(mask, uchar)
  const int query = get_global_id(0), head = get_global_id(1);
  y += row_at(head, query, heads, queries, columns, sequence_first);
  q += row_at(head, query, heads, queries, depth, sequence_first);
  const long masked = (long)(head / heads) * mask_batch + (long)(head % heads) * mask_head + (long)query * mask_query;
  for (int i = 0; i < columns; ++i) y[i] = 0.f;
  const int seen = causal ? min(keys, query + 1) : keys;
  float most = -INFINITY, sum = 0.f;
  for (int first = 0; first < seen; first += KEYS) {
    const int count = min(KEYS, seen - first);
    float scores[KEYS];
    float largest = most;
    for (int i = 0; i < count; ++i) {
      global const float* const key = k + row_at(head, first + i, heads, keys, depth, sequence_first);
      scores[i] = score_of(q, key, depth, scale, mask, mask_kind, masked + first + i);
      largest = fmax(largest, scores[i]);
    }
    if (largest == -INFINITY) continue;
    if (largest != most) {
      const float factor = exp(most - largest);
      sum *= factor;
      for (int i = 0; i < columns; ++i) y[i] *= factor;
      most = largest;
    }
    for (int i = 0; i < count; ++i) {
      const float weight = exp(scores[i] - most);
      sum += weight;
      add_scaled(y, weight, v + row_at(head, first + i, heads, keys, columns, sequence_first), columns);
    }
  }
  if (sum > 0.f) for (int i = 0; i < columns; ++i) y[i] *= 1.f / sum;
  if (has_sums) sums[(long)head * queries + query] = most + log(sum);
})";

#define PLIMSOLL_ATTENTION_BACK                                                                                 \
  "kernel void run(OUT(dq, float), OUT(dk, float), OUT(dv, float), IN(q, float), IN(k, float), IN(v, float), "  \
  "IN(y, float),\n    IN(sums, float), IN(dy, float), IN(mask, uchar), int heads, int queries, int keys, int "  \
  "depth, int columns,\n    int sequence_first, int causal, int mask_kind, int mask_batch, int mask_head, int " \
  "mask_query, float scale) {\n  ADDRESS(dq, float) ADDRESS(dk, float) ADDRESS(dv, float) ADDRESS(q, float) "   \
  "ADDRESS(k, float)\n  ADDRESS(v, float) ADDRESS(y, float) ADDRESS(sums, float) ADDRESS(dy, float) "           \
  "ADDRESS(mask, uchar)\n"

// One item has one query.
constexpr std::string_view kAttentionQueries = PLIMSOLL_ATTENTION_BACK R"(
  const int query = get_global_id(0), head = get_global_id(1);
  const long of_q = row_at(head, query, heads, queries, depth, sequence_first);
  const long of_y = row_at(head, query, heads, queries, columns, sequence_first);
  const long masked = (long)(head / heads) * mask_batch + (long)(head % heads) * mask_head + (long)query * mask_query;
  const float log_sum = sums[(long)head * queries + query], offset = dot_of(dy + of_y, y + of_y, columns);
  dq += of_q;
  for (int i = 0; i < depth; ++i) dq[i] = 0.f;
  if (log_sum == -INFINITY) return;
  const int seen = causal ? min(keys, query + 1) : keys;
  for (int key = 0; key < seen; ++key) {
    global const float* const at = k + row_at(head, key, heads, keys, depth, sequence_first);
    const float weight = exp(score_of(q + of_q, at, depth, scale, mask, mask_kind, masked + key) - log_sum);
    const float slope = dot_of(dy + of_y, v + row_at(head, key, heads, keys, columns, sequence_first), columns);
    add_scaled(dq, weight * (slope - offset) * scale, at, depth);
  }
})";

// One item has one key.
constexpr std::string_view kAttentionKeys = PLIMSOLL_ATTENTION_BACK R"(
  const int key = get_global_id(0), head = get_global_id(1);
  const long of_k = row_at(head, key, heads, keys, depth, sequence_first);
  const long of_v = row_at(head, key, heads, keys, columns, sequence_first);
  dk += of_k;
  dv += of_v;
  for (int i = 0; i < depth; ++i) dk[i] = 0.f;
  for (int i = 0; i < columns; ++i) dv[i] = 0.f;
  for (int query = causal ? key : 0; query < queries; ++query) {
    const float log_sum = sums[(long)head * queries + query];
    if (log_sum == -INFINITY) continue;
    const long of_q = row_at(head, query, heads, queries, depth, sequence_first);
    const long of_y = row_at(head, query, heads, queries, columns, sequence_first);
    const long masked = (long)(head / heads) * mask_batch + (long)(head % heads) * mask_head + (long)query * mask_query;
    const float weight = exp(score_of(q + of_q, k + of_k, depth, scale, mask, mask_kind, masked + key) - log_sum);
    const float offset = dot_of(dy + of_y, y + of_y, columns), slope = dot_of(dy + of_y, v + of_v, columns);
    add_scaled(dv, weight, dy + of_y, columns);
    add_scaled(dk, weight * (slope - offset) * scale, q + of_q, depth);
  }
})";
#undef PLIMSOLL_ATTENTION_BACK

}  // namespace

std::span<const KernelText> sequence_texts() noexcept {
  static constexpr KernelText kTexts[] = {
      {"lstm_step", kLstmStep, kActivations},      {"lstm_back", kLstmBack, kActivations},
      {"attention", kAttention, kScores},          {"attention_queries", kAttentionQueries, kScores},
      {"attention_keys", kAttentionKeys, kScores},
  };
  return kTexts;
}

}  // namespace plimsoll::internal
