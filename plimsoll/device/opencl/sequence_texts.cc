// The kernels of LSTM steps and of attention.
#include "plimsoll/device/opencl/kernel_sources.h"

namespace plimsoll::internal {
namespace {

// Activations by the numbers of RecurrentActivation: linear, relu, tanh, sigmoid, hard_sigmoid; slopes by their value.
constexpr std::string_view kActivations = R"(
V activate(V x, int kind) {
  switch (kind) {
    case 1: return PICK(x < 0.f, 0.f, x);
    case 2: return tanh_of(x);
    case 3: return sigmoid_of(x);
    case 4: return clamp(x * 0.2f + 0.5f, 0.f, 1.f);
    default: return x;
  }
}
V slope_at(V y, int kind) {
  switch (kind) {
    case 1: return PICK(y > 0.f, 1.f, 0.f);
    case 2: return 1.f - y * y;
    case 3: return y * (1.f - y);
    case 4: return PICK(y > 0.f && y < 1.f, 0.2f, 0.f);
    default: return (V)1.f;
  }
}
)";

// Sixteen units of `ROWS` rows of one step: adds the state's products to those of the inputs, which `gates` holds, and
// leaves the gates' values there. Rows are `gate_step`, `c_step`, ... apart; h and h_next are dense. Rows behind the
// last repeat it.
constexpr std::string_view kLstmUnits = R"(
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3)
void lstm_units(global float* gates, global const float* u, global const float* h, global const float* c,
    global float* h_next, global float* c_next, global float* y, int unit, int b, int batch, int units, int gate_step,
    int c_step, int c_next_step, int y_step, int has_h, int has_c, int has_y, int activation, int recurrent_activation) {
  const int width = units - unit, all = 4 * units;
#define ROW(i) \
  const long b##i = min(b + i, batch - 1); \
  V in##i = 0.f, forget##i = 0.f, fresh##i = 0.f, out##i = 0.f; \
  global const float* const h##i = h + b##i * units;
  EACH_ROW(ROW)
#define ADD_STATE(i) { const float e = h##i[k]; in##i += e * ui; forget##i += e * uf; fresh##i += e * un; out##i += e * uo; }
  if (has_h && width >= 16)
    for (int k = 0; k < units; ++k) {
      global const float* const row = u + (long)k * all + unit;
      const V ui = LOAD(0, row), uf = LOAD(0, row + units), un = LOAD(0, row + 2 * units), uo = LOAD(0, row + 3 * units);
      EACH_ROW(ADD_STATE)
    }
  else if (has_h)
    for (int k = 0; k < units; ++k) {
      global const float* const row = u + (long)k * all + unit;
      const V ui = load_some(row, width), uf = load_some(row + units, width), un = load_some(row + 2 * units, width);
      const V uo = load_some(row + 3 * units, width);
      EACH_ROW(ADD_STATE)
    }
#define ACTIVATE(i) if (b + i < batch) { \
    global float* const gate = gates + b##i * gate_step + unit; \
    const V in = activate(load_some(gate, width) + in##i, recurrent_activation); \
    const V forget = activate(load_some(gate + units, width) + forget##i, recurrent_activation); \
    const V fresh = activate(load_some(gate + 2 * units, width) + fresh##i, activation); \
    const V out = activate(load_some(gate + 3 * units, width) + out##i, recurrent_activation); \
    const V before = has_c ? load_some(c + b##i * c_step + unit, width) : (V)0.f; \
    const V cell = forget * before + in * fresh, value = out * activate(cell, activation); \
    store_some(in, gate, width); \
    store_some(forget, gate + units, width); \
    store_some(fresh, gate + 2 * units, width); \
    store_some(out, gate + 3 * units, width); \
    store_some(cell, c_next + b##i * c_next_step + unit, width); \
    store_some(value, h_next + b##i * units + unit, width); \
    if (has_y) store_some(value, y + b##i * y_step + unit, width); \
  }
  EACH_ROW(ACTIVATE)
}
)";

// One step: one item has 16 units of 4 rows.
constexpr std::string_view kLstmStep = R"(
kernel void run(OUT(gates, float), IN(u, float), IN(h, float), IN(c, float), OUT(h_next, float), OUT(c_next, float),
    OUT(y, float), int batch, int units, int gate_step, int c_step, int c_next_step, int y_step, int has_h, int has_c,
    int has_y, int activation, int recurrent_activation) {
  ADDRESS(gates, float) ADDRESS(u, float) ADDRESS(h, float) ADDRESS(c, float) ADDRESS(h_next, float)
  ADDRESS(c_next, float) ADDRESS(y, float)
  lstm_units(gates, u, h, c, h_next, c_next, y, get_global_id(0) * 16, get_global_id(1) * 4, batch, units, gate_step,
             c_step, c_next_step, y_step, has_h, has_c, has_y, activation, recurrent_activation);
})";

// All steps: one item has 4 rows. The cells before each step are kept in `cells` [batch, time, units] when `keeps`;
// else they are [batch, units], and change. `states` has two of [batch, units], taken in turn.
constexpr std::string_view kLstmRows = R"(
kernel void run(OUT(gates, float), IN(u, float), IN(h, float), IN(c, float), OUT(states, float), OUT(cells, float),
    OUT(y, float), OUT(last_h, float), OUT(last_c, float), int batch, int units, int time, int reverse, int keeps,
    int sequences, int in_step_order, int has_h, int has_c, int activation, int recurrent_activation) {
  ADDRESS(gates, float) ADDRESS(u, float) ADDRESS(h, float) ADDRESS(c, float) ADDRESS(states, float)
  ADDRESS(cells, float) ADDRESS(y, float) ADDRESS(last_h, float) ADDRESS(last_c, float)
  const int b = get_global_id(0) * 4, cell_step = keeps ? time * units : units;
  if (b >= batch) return;
  global const float *before_h = h, *before_c = c;
  int c_step = units;
  for (int k = 0; k < time; ++k) {
    const int is_last = k + 1 == time, place = reverse ? time - 1 - k : k, next = reverse ? place - 1 : place + 1;
    global float* const h_next = is_last ? last_h : states + (k % 2 ? (long)batch * units : 0);
    global float* const c_next = is_last ? last_c : keeps ? cells + (long)next * units : cells;
    const int c_next_step = is_last ? units : cell_step, has_y = sequences || is_last;
    global float* const to = sequences ? y + (long)(in_step_order ? k : place) * units : y;
    for (int unit = 0; unit < units; unit += 16)
      lstm_units(gates + (long)place * 4 * units, u, before_h, before_c, h_next, c_next, to, unit, b, batch, units,
                 time * 4 * units, c_step, c_next_step, sequences ? time * units : units, has_h || k > 0, has_c || k > 0,
                 has_y, activation, recurrent_activation);
    before_h = h_next;
    before_c = c_next;
    c_step = c_next_step;
  }
})";

// The gates' slopes of one step for sixteen units of one row, from dh and dc, which become those of the step before (dh
// through a product that follows). `h_before` is the state that the step began with: 0: zeros, 1: `initial`, 2: made
// again from the gates of the step before.
constexpr std::string_view kLstmSlopes = R"(
void lstm_slopes(global float* slopes, global float* dh, global float* dc, global float* h_before,
    global const float* gates, global const float* c, global const float* gates_before, global const float* initial,
    global const float* dy, global const float* d_h, global const float* d_c, int width, int units, int before,
    int has_dy, int is_last, int has_d_h, int has_d_c, int activation, int recurrent_activation) {
  V from_h = is_last ? (has_d_h ? load_some(d_h, width) : (V)0.f) : load_some(dh, width);
  if (has_dy) from_h += load_some(dy, width);
  const V from_c = is_last ? (has_d_c ? load_some(d_c, width) : (V)0.f) : load_some(dc, width);
  const V in = load_some(gates, width), forget = load_some(gates + units, width);
  const V fresh = load_some(gates + 2 * units, width), out = load_some(gates + 3 * units, width);
  const V cell = load_some(c, width), value = activate(forget * cell + in * fresh, activation);
  const V all = from_c + from_h * out * slope_at(value, activation);
  store_some(all * fresh * slope_at(in, recurrent_activation), slopes, width);
  store_some(all * cell * slope_at(forget, recurrent_activation), slopes + units, width);
  store_some(all * in * slope_at(fresh, activation), slopes + 2 * units, width);
  store_some(from_h * value * slope_at(out, recurrent_activation), slopes + 3 * units, width);
  store_some(all * forget, dc, width);
  const V state = before == 2   ? load_some(gates_before + 3 * units, width) * activate(cell, activation)
                  : before == 1 ? load_some(initial, width)
                                : (V)0.f;
  store_some(state, h_before, width);
}
// What both forms of the way back are given. Step k of row b has the slot k - low of the slopes.
#define SIZES int batch, int units, int time, int reverse, int low, int high, int dy_step, int sequences, \
    int in_step_order, int has_initial, int has_dy, int has_d_h, int has_d_c, int activation, int recurrent_activation
#define ARGUMENTS OUT(slopes, float), OUT(dh, float), OUT(dc, float), OUT(h_before, float), IN(gates, float), \
    IN(c, float), IN(initial, float), IN(dy, float), IN(d_h, float), IN(d_c, float), IN(u, float), SIZES
#define ADDRESSES \
  ADDRESS(slopes, float) ADDRESS(dh, float) ADDRESS(dc, float) ADDRESS(h_before, float) ADDRESS(gates, float) \
  ADDRESS(c, float) ADDRESS(initial, float) ADDRESS(dy, float) ADDRESS(d_h, float) ADDRESS(d_c, float) ADDRESS(u, float)
#define GIVEN slopes, dh, dc, h_before, gates, c, initial, dy, d_h, d_c, batch, units, time, reverse, low, high, \
    dy_step, sequences, in_step_order, has_initial, has_dy, has_d_h, has_d_c, activation, recurrent_activation
void lstm_place(int k, int b, int unit, global float* slopes, global float* dh, global float* dc, global float* h_before,
    global const float* gates, global const float* c, global const float* initial, global const float* dy,
    global const float* d_h, global const float* d_c, SIZES) {
  const int place = reverse ? time - 1 - k : k, before = k == 0 ? place : reverse ? place + 1 : place - 1;
  const int is_last = k + 1 == time, out_place = in_step_order ? k : place;
  const long slot = (long)(k - low) * batch + b, state = (long)b * units + unit, row = (long)b * time;
  lstm_slopes(slopes + slot * 4 * units + unit, dh + state, dc + state, h_before + slot * units + unit,
              gates + (row + place) * 4 * units + unit, c + (row + place) * units + unit,
              gates + (row + before) * 4 * units + unit, initial + state,
              dy + (long)b * dy_step + unit + (sequences ? (long)out_place * units : 0), d_h + state, d_c + state,
              units - unit, units, k > 0 ? 2 : has_initial ? 1 : 0, has_dy && (sequences || is_last), is_last, has_d_h,
              has_d_c, activation, recurrent_activation);
}
)";

// One step, `high`: one item has 16 units of one row.
constexpr std::string_view kLstmBack = R"(
kernel void run(ARGUMENTS) {
  ADDRESSES
  lstm_place(high, get_global_id(1), get_global_id(0) * 16, GIVEN);
})";

// Steps `high` down to `low`, with the products that give dh: one item has 4 rows.
constexpr std::string_view kLstmBackRows = R"(
kernel void run(ARGUMENTS, int all_dh) {
  ADDRESSES
  const int b = get_global_id(0) * 4, last = batch - 1, all = 4 * units;
  if (b >= batch) return;
  for (int k = high; k >= low; --k) {
    for (int i = b; i < min(batch, b + 4); ++i)
      for (int unit = 0; unit < units; unit += 16) lstm_place(k, i, unit, GIVEN);
    if (k == 0 && !all_dh) return;
    global const float* const rows = slopes + (long)(k - low) * batch * all;
    for (int unit = 0; unit < units; unit += 4) {
      float sums[4][4];
      dots_of(sums, rows + (long)b * all, rows + (long)min(b + 1, last) * all, rows + (long)min(b + 2, last) * all,
              rows + (long)min(b + 3, last) * all, u + (long)unit * all, u + (long)min(unit + 1, units - 1) * all,
              u + (long)min(unit + 2, units - 1) * all, u + (long)min(unit + 3, units - 1) * all, all);
      for (int i = 0; i < 4 && b + i < batch; ++i)
        for (int j = 0; j < 4 && unit + j < units; ++j) dh[(long)(b + i) * units + unit + j] = sums[i][j];
    }
  }
})";

// Rows of [batch, heads, rows, width], or of [batch, rows, heads, width] when sequences come first; and sums of up to
// 32 of them.
constexpr std::string_view kScores = R"(
#define SOME 32
long row_at(int head, int row, int heads, int rows, int width, int sequence_first) {
  const long batch = (long)(head / heads) * heads * rows * width;
  return sequence_first ? batch + ((long)row * heads + head % heads) * width
                        : batch + ((long)(head % heads) * rows + row) * width;
}
// The products of `a` with `count` rows of `b`, which are `step` apart.
void products(float* out, global const float* a, global const float* b, long step, int count, int n) {
  for (int i = 0; i < count; i += 4) {
    const int last = count - 1 - i;
    vstore4(dots_of_one(a, b + i * step, b + (i + min(1, last)) * step, b + (i + min(2, last)) * step,
                        b + (i + min(3, last)) * step, n), 0, out + i);
  }
}
// The products of `count` rows of dy with v less the same rows of y.
void slopes_of(float* out, global const float* v, global const float* y, global const float* dy, long step, int count, int n) {
  for (int i = 0; i < count; i += 4) {
    const int last = count - 1 - i;
    const long r0 = i * step, r1 = (i + min(1, last)) * step, r2 = (i + min(2, last)) * step, r3 = (i + min(3, last)) * step;
    V s0 = 0.f, s1 = 0.f, s2 = 0.f, s3 = 0.f;
    for (int k = 0; k < n; k += LANES) {
      const V all = load_some(v + k, n - k);
      s0 += load_some(dy + r0 + k, n - k) * (all - load_some(y + r0 + k, n - k));
      s1 += load_some(dy + r1 + k, n - k) * (all - load_some(y + r1 + k, n - k));
      s2 += load_some(dy + r2 + k, n - k) * (all - load_some(y + r2 + k, n - k));
      s3 += load_some(dy + r3 + k, n - k) * (all - load_some(y + r3 + k, n - k));
    }
    vstore4(totals_of(s0, s1, s2, s3), 0, out + i);
  }
}
void score(float* scores, int count, float scale, global const uchar* mask, int kind, long at, long step) {
  for (int i = 0; i < count; ++i) {
    const float value = scores[i] * scale;
    scores[i] = kind == 0   ? value
                : kind == 1 ? (mask[at + i * step] ? value : -INFINITY)
                            : value + ((global const float*)mask)[at + i * step];
  }
  for (int i = count; i < SOME; ++i) scores[i] = -INFINITY;
}
// Adds `count` rows, each times its factor, to `out`.
void add_rows(global float* out, const float* factors, global const float* rows, long step, int count, int n) {
  for (int from = 0; from < n; from += LANES) {
    V even = load_some(out + from, n - from), odd = 0.f;
    int i = 0;
    for (; i + 2 <= count; i += 2) {
      even += factors[i] * load_some(rows + i * step + from, n - from);
      odd += factors[i + 1] * load_some(rows + (i + 1) * step + from, n - from);
    }
    if (i < count) even += factors[i] * load_some(rows + i * step + from, n - from);
    store_some(even + odd, out + from, n - from);
  }
}
void clear(global float* out, int n) { for (int i = 0; i < n; i += LANES) store_some((V)0.f, out + i, n - i); }
)";

// One item has one query of one head. Keys are folded in 32 at a time.
constexpr std::string_view kAttention = R"(
kernel void run(OUT(y, float), OUT(sums, float), IN(q, float), IN(k, float), IN(v, float), IN(mask, uchar), int heads,
    int queries, int keys, int depth, int columns, int sequence_first, int causal, int mask_kind, int mask_batch,
    int mask_head, int mask_query, int has_sums, float scale) {
  ADDRESS(y, float) ADDRESS(sums, float) ADDRESS(q, float) ADDRESS(k, float) ADDRESS(v, float) ADDRESS(mask, uchar)
  const int query = get_global_id(0), head = get_global_id(1);
  y += row_at(head, query, heads, queries, columns, sequence_first);
  q += row_at(head, query, heads, queries, depth, sequence_first);
  k += row_at(head, 0, heads, keys, depth, sequence_first);
  v += row_at(head, 0, heads, keys, columns, sequence_first);
  const long apart = sequence_first ? heads : 1;
  const long masked = (long)(head / heads) * mask_batch + (long)(head % heads) * mask_head + (long)query * mask_query;
  clear(y, columns);
  const int seen = causal ? min(keys, query + 1) : keys;
  float most = -INFINITY, sum = 0.f;
  for (int first = 0; first < seen; first += SOME) {
    const int count = min(SOME, seen - first);
    float scores[SOME];
    products(scores, q, k + first * apart * depth, apart * depth, count, depth);
    score(scores, count, scale, mask, mask_kind, masked + first, 1);
    float largest = most;
    for (int i = 0; i < count; ++i) largest = fmax(largest, scores[i]);
    if (largest == -INFINITY) continue;
    if (largest != most) {
      const float factor = exp(most - largest);
      sum *= factor;
      if (first > 0) for (int i = 0; i < columns; ++i) y[i] *= factor;
      most = largest;
    }
    V weights = 0.f;
    for (int i = 0; i < SOME; i += LANES) {
      const V w = exp_of_negative(LOAD(0, scores + i) - most);
      weights += w;
      STORE(w, 0, scores + i);
    }
    sum += total_of(weights);
    add_rows(y, scores, v + first * apart * columns, apart * columns, count, columns);
  }
  if (sum > 0.f) for (int i = 0; i < columns; ++i) y[i] *= 1.f / sum;
  if (has_sums) sums[(long)head * queries + query] = most + log(sum);
})";

constexpr std::string_view kAttentionBack = R"(
#define ARGUMENTS OUT(dq, float), OUT(dk, float), OUT(dv, float), IN(q, float), IN(k, float), IN(v, float), \
    IN(y, float), IN(sums, float), IN(dy, float), IN(mask, uchar), int heads, int queries, int keys, int depth, \
    int columns, int sequence_first, int causal, int mask_kind, int mask_batch, int mask_head, int mask_query, \
    float scale
#define ADDRESSES \
  ADDRESS(dq, float) ADDRESS(dk, float) ADDRESS(dv, float) ADDRESS(q, float) ADDRESS(k, float) ADDRESS(v, float) \
  ADDRESS(y, float) ADDRESS(sums, float) ADDRESS(dy, float) ADDRESS(mask, uchar) \
  const long apart = sequence_first ? heads : 1;
)";

// One item has one query.
constexpr std::string_view kAttentionQueries = R"(
kernel void run(ARGUMENTS) {
  ADDRESSES
  const int query = get_global_id(0), head = get_global_id(1);
  q += row_at(head, query, heads, queries, depth, sequence_first);
  dq += row_at(head, query, heads, queries, depth, sequence_first);
  y += row_at(head, query, heads, queries, columns, sequence_first);
  dy += row_at(head, query, heads, queries, columns, sequence_first);
  k += row_at(head, 0, heads, keys, depth, sequence_first);
  v += row_at(head, 0, heads, keys, columns, sequence_first);
  const long masked = (long)(head / heads) * mask_batch + (long)(head % heads) * mask_head + (long)query * mask_query;
  const float log_sum = sums[(long)head * queries + query], offset = dots_of_one(dy, y, y, y, y, columns).x;
  clear(dq, depth);
  if (log_sum == -INFINITY) return;
  const int seen = causal ? min(keys, query + 1) : keys;
  for (int first = 0; first < seen; first += SOME) {
    const int count = min(SOME, seen - first);
    float scores[SOME], slopes[SOME];
    products(scores, q, k + first * apart * depth, apart * depth, count, depth);
    score(scores, count, scale, mask, mask_kind, masked + first, 1);
    products(slopes, dy, v + first * apart * columns, apart * columns, count, columns);
    for (int i = count; i < SOME; ++i) slopes[i] = 0.f;
    for (int i = 0; i < SOME; i += LANES)
      STORE(exp_of(LOAD(0, scores + i) - log_sum) * (LOAD(0, slopes + i) - offset) * scale, 0, slopes + i);
    add_rows(dq, slopes, k + first * apart * depth, apart * depth, count, depth);
  }
})";

// One item has one key.
constexpr std::string_view kAttentionKeys = R"(
kernel void run(ARGUMENTS) {
  ADDRESSES
  const int key = get_global_id(0), head = get_global_id(1);
  k += row_at(head, key, heads, keys, depth, sequence_first);
  dk += row_at(head, key, heads, keys, depth, sequence_first);
  v += row_at(head, key, heads, keys, columns, sequence_first);
  dv += row_at(head, key, heads, keys, columns, sequence_first);
  q += row_at(head, 0, heads, queries, depth, sequence_first);
  y += row_at(head, 0, heads, queries, columns, sequence_first);
  dy += row_at(head, 0, heads, queries, columns, sequence_first);
  const long masked = (long)(head / heads) * mask_batch + (long)(head % heads) * mask_head + key;
  clear(dk, depth);
  clear(dv, columns);
  for (int first = causal ? key : 0; first < queries; first += SOME) {
    const int count = min(SOME, queries - first);
    float scores[SOME], slopes[SOME];
    products(scores, k, q + first * apart * depth, apart * depth, count, depth);
    score(scores, count, scale, mask, mask_kind, masked + (long)first * mask_query, mask_query);
    slopes_of(slopes, v, y + first * apart * columns, dy + first * apart * columns, apart * columns, count, columns);
    for (int i = 0; i < count; ++i) {
      const float log_sum = sums[(long)head * queries + first + i];
      scores[i] = log_sum == -INFINITY ? -INFINITY : scores[i] - log_sum;
    }
    for (int i = count; i < SOME; ++i) slopes[i] = 0.f;
    for (int i = 0; i < SOME; i += LANES) {
      const V weights = exp_of(LOAD(0, scores + i));
      STORE(weights, 0, scores + i);
      STORE(weights * LOAD(0, slopes + i) * scale, 0, slopes + i);
    }
    add_rows(dv, scores, dy + first * apart * columns, apart * columns, count, columns);
    add_rows(dk, slopes, q + first * apart * depth, apart * depth, count, depth);
  }
})";

}  // namespace

std::span<const KernelText> sequence_texts() noexcept {
  static constexpr KernelText kSequenceTexts[] = {
      {"lstm_step", kLstmStep, kActivations, kLstmUnits, 16},
      {"lstm_rows", kLstmRows, kActivations, kLstmUnits, 16},
      {"lstm_back", kLstmBack, kActivations, kLstmSlopes, 16},
      {"lstm_back_rows", kLstmBackRows, kActivations, kLstmSlopes, 16},
      {"attention", kAttention, kScores, "", 16},
      {"attention_queries", kAttentionQueries, kScores, kAttentionBack, 16},
      {"attention_keys", kAttentionKeys, kScores, kAttentionBack, 16},
  };
  return kSequenceTexts;
}

}  // namespace plimsoll::internal
