#include "plimsoll/device/opencl/kernel_sources.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

using Row = std::pair<std::string_view, std::string_view>;

// Expressions of x, a V of floats (vector_texts.cc). They follow kernels/unary_ops.inc.
constexpr Row kUnary[] = {
    {"negative", "-x"},
    {"abs", "fabs(x)"},
    {"sign", "PICK(x != x, x, PICK(x > 0.f, 1.f, PICK(x < 0.f, -1.f, 0.f)))"},
    {"square", "x * x"},
    {"relu", "PICK(x < 0.f, 0.f, x)"},
    {"relu6", "PICK(x < 0.f, 0.f, PICK(x > 6.f, 6.f, x))"},
    {"sqrt", "sqrt(x)"},
    {"rsqrt", "1.f / sqrt(x)"},
    {"reciprocal", "1.f / x"},
    {"floor", "floor(x)"},
    {"ceil", "ceil(x)"},
    {"round", "rint(x)"},
    {"softsign", "x / (1.f + fabs(x))"},
    {"hard_sigmoid", "clamp(0.2f * x + 0.5f, 0.f, 1.f)"},
    {"tan", "tan(x)"},
    {"asin", "asin(x)"},
    {"acos", "acos(x)"},
    {"atan", "atan(x)"},
    {"sinh", "sinh(x)"},
    {"cosh", "cosh(x)"},
    {"asinh", "asinh(x)"},
    {"acosh", "acosh(x)"},
    {"atanh", "atanh(x)"},
    {"exp", "exp_of(x)"},
    {"expm1", "expm1(x)"},
    {"log", "log(x)"},
    {"log1p", "log1p(x)"},
    {"sin", "sin(x)"},
    {"cos", "cos(x)"},
    {"tanh", "tanh_of(x)"},
    {"erf", "erf_of(x)"},
    {"sigmoid", "sigmoid_of(x)"},
    {"softplus", "softplus_of(x)"},
    {"elu", "PICK(x < 0.f, expm1(x), x)"},
    {"selu", "SELU_SCALE * PICK(x < 0.f, SELU_ALPHA * expm1(x), x)"},
    {"gelu", "gelu_of(x)"},
    {"gelu_tanh", "gelu_tanh_of(x)"},
    {"swish", "x * sigmoid_of(x)"},
};
constexpr Row kUnaryTests[] = {
    {"is_nan", "x != x"},
    {"is_inf", "isinf(x) != 0"},
    {"is_finite", "isfinite(x) != 0"},
    {"logical_not", "x == 0"},
};
// Of a and b, for all types.
constexpr Row kBinary[] = {
    {"add", "a + b"},
    {"subtract", "a - b"},
    {"multiply", "a * b"},
    {"squared_difference", "(a - b) * (a - b)"},
};
constexpr Row kBinaryTests[] = {
    {"equal", "a == b"},
    {"not_equal", "a != b"},
    {"less", "a < b"},
    {"less_equal", "a <= b"},
    {"greater", "a > b"},
    {"greater_equal", "a >= b"},
    {"logical_and", "(a != 0) & (b != 0)"},
    {"logical_or", "(a != 0) | (b != 0)"},
    {"logical_xor", "(a != 0) != (b != 0)"},
};
// For floats. They follow kernels/binary_ops.inc.
constexpr Row kBinaryFloats[] = {
    {"divide", "a / b"},
    {"floor_divide", "floor(a / b)"},
    {"power", "pow(a, b)"},
    {"minimum", "PICK(a != a, a, PICK(b != b, b, PICK(b < a, b, a)))"},
    {"maximum", "PICK(a != a, a, PICK(b != b, b, PICK(a < b, b, a)))"},
    {"divide_no_nan", "PICK(b == 0.f, 0.f, a / b)"},
    {"xdivy", "PICK(a == 0.f, 0.f, a / b)"},
    {"xlogy", "PICK(a == 0.f, 0.f, a * log(b))"},
    {"atan2", "atan2(a, b)"},
    {"leaky_relu", "PICK(a > 0.f, a, a * b)"},
    {"relu_grad", "PICK(a > 0.f, b, 0.f)"},
    {"relu6_grad", "PICK(a > 0.f && a < 6.f, b, 0.f)"},
    {"tanh_grad", "b * (1.f - a * a)"},
    {"sigmoid_grad", "b * (a * (1.f - a))"},
    {"hard_sigmoid_grad", "PICK(a > 0.f && a < 1.f, 0.2f * b, 0.f)"},
    {"elu_grad", "PICK(a < 0.f, b * (a + 1.f), b)"},
    {"selu_grad", "PICK(a < 0.f, b * (a + SELU_SCALE * SELU_ALPHA), b * SELU_SCALE)"},
    {"softsign_grad", "b / ((1.f + fabs(a)) * (1.f + fabs(a)))"},
    {"softplus_grad", "b * sigmoid_of(a)"},
    {"swish_grad", "b * swish_slope(a)"},
    {"gelu_grad", "b * gelu_slope(a)"},
    {"gelu_tanh_grad", "b * gelu_tanh_slope(a)"},
};

template <std::size_t kRows>
std::string_view find(const Row (&rows)[kRows], std::string_view name) noexcept {
  for (const Row& row : rows)
    if (row.first == name) return row.second;
  return {};
}

std::string_view type_of(std::string_view dtype) noexcept {
  return dtype == "f32" ? "float" : dtype == "i32" ? "int" : dtype == "i64" ? "long" : dtype == "u8" ? "uchar" : "";
}

// "flat.add.f32": its parts.
struct Parts {
  explicit Parts(std::string_view name) noexcept {
    for (std::size_t i = 0; i < part.size(); ++i) {
      const std::size_t dot = i + 1 < part.size() ? name.find('.') : std::string_view::npos;
      part[i] = name.substr(0, dot);
      if (dot == std::string_view::npos) {
        is_whole = i + 1 == part.size();
        return;
      }
      name = name.substr(dot + 1);
    }
  }
  std::array<std::string_view, 3> part;
  bool is_whole = false;
};

struct Expression {
  std::string_view value;
  bool is_test = false;    // Its result is a boolean.
  bool is_vector = false;  // Of V; else of one element.
};

Expression unary_expression(std::string_view op, std::string_view dtype) noexcept {
  if (dtype == "f32")
    if (const auto value = find(kUnary, op); !value.empty()) return {value, false, true};
  if (dtype == "f32" || (op == "logical_not" && !type_of(dtype).empty()))
    if (const auto value = find(kUnaryTests, op); !value.empty()) return {value, true};
  if ((dtype == "i32" || dtype == "i64") && (op == "negative" || op == "square")) return {find(kUnary, op), false};
  return {};
}

Expression binary_expression(std::string_view op, std::string_view dtype) noexcept {
  if (type_of(dtype).empty()) return {};
  if (const auto value = find(kBinaryTests, op); !value.empty()) return {value, true};
  if (dtype == "u8") return {};
  if (const auto value = find(kBinary, op); !value.empty()) return {value, false, dtype == "f32"};
  if (dtype == "f32") return {find(kBinaryFloats, op), false, true};
  return {};
}

// As casts of the host: to integers by truncation, NaN 0, what is too large the nearest; to booleans by comparing with
// 0.
std::string cast_source(std::string_view from, std::string_view to) {
  const std::string_view type = type_of(to);
  const std::string value = to == "u8"                     ? "x != 0"
                            : from == "f32" && to == "i32" ? "convert_int_sat_rtz(x)"
                            : from == "f32" && to == "i64" ? "convert_long_sat_rtz(x)"
                                                           : fmt::format("({})x", type);
  return fmt::format(R"(kernel void run(OUT(out, {1}), IN(in, {0}), int n) {{
  ADDRESS(out, {1}) ADDRESS(in, {0})
  const int first = get_global_id(0) * 8;
  for (int i = first; i < first + 8 && i < n; ++i) {{ const {0} x = in[i]; out[i] = {2}; }}
}}
)",
                     type_of(from), type, value);
}

std::string unary_source(const Expression& expression, std::string_view type) {
  if (expression.is_vector)
    return fmt::format(R"(kernel void run(OUT(out, float), IN(in, float), int n) {{
  ADDRESS(out, float) ADDRESS(in, float)
  const int first = get_global_id(0) * LANES;
  const V x = load_some(in + first, n - first);
  store_some({}, out + first, n - first);
}}
)",
                       expression.value);
  return fmt::format(R"(kernel void run(OUT(out, {1}), IN(in, {0}), int n) {{
  ADDRESS(out, {1}) ADDRESS(in, {0})
  const int first = get_global_id(0) * 8;
  for (int i = first; i < first + 8 && i < n; ++i) {{ const {0} x = in[i]; out[i] = {2}; }}
}}
)",
                     type, expression.is_test ? "uchar" : type, expression.value);
}

// A step of 0 stays at the first element.
std::string flat_source(const Expression& expression, std::string_view type) {
  if (expression.is_vector)
    return fmt::format(R"(kernel void run(OUT(out, float), IN(x, float), IN(y, float), int n, int step_x, int step_y) {{
  ADDRESS(out, float) ADDRESS(x, float) ADDRESS(y, float)
  const int first = get_global_id(0) * LANES, count = n - first;
  const V a = step_x ? load_some(x + first, count) : (V)x[0], b = step_y ? load_some(y + first, count) : (V)y[0];
  store_some({}, out + first, count);
}}
)",
                       expression.value);
  return fmt::format(R"(kernel void run(OUT(out, {1}), IN(x, {0}), IN(y, {0}), int n, int step_x, int step_y) {{
  ADDRESS(out, {1}) ADDRESS(x, {0}) ADDRESS(y, {0})
  const int first = get_global_id(0) * 8;
  if (first + 8 <= n && step_x == 1 && step_y == 1) {{
    for (int i = 0; i < 8; ++i) {{ const {0} a = x[first + i], b = y[first + i]; out[first + i] = {2}; }}
  }} else {{
    for (int i = first; i < first + 8 && i < n; ++i) {{
      const {0} a = x[i * step_x], b = y[i * step_y];
      out[i] = {2};
    }}
  }}
}}
)",
                     type, expression.is_test ? "uchar" : type, expression.value);
}

std::string broad_source(const Expression& expression, std::string_view type) {
  return fmt::format(R"(kernel void run(OUT(out, {1}), IN(x, {0}), IN(y, {0}), int n, int d1, int d2, int d3, int d4,
    int x0, int x1, int x2, int x3, int x4, int y0, int y1, int y2, int y3, int y4) {{
  ADDRESS(out, {1}) ADDRESS(x, {0}) ADDRESS(y, {0})
  const int first = get_global_id(0) * 8;
  int i4 = first % d4, left = first / d4;
  int i3 = left % d3; left /= d3;
  int i2 = left % d2; left /= d2;
  int i1 = left % d1; left /= d1;
  for (int i = first; i < first + 8 && i < n; ++i) {{
    const {0} a = x[left * x0 + i1 * x1 + i2 * x2 + i3 * x3 + i4 * x4];
    const {0} b = y[left * y0 + i1 * y1 + i2 * y2 + i3 * y3 + i4 * y4];
    out[i] = {2};
    if (++i4 == d4) {{
      i4 = 0;
      if (++i3 == d3) {{
        i3 = 0;
        if (++i2 == d2) {{ i2 = 0; if (++i1 == d1) {{ i1 = 0; ++left; }} }}
      }}
    }}
  }}
}}
)",
                     type, expression.is_test ? "uchar" : type, expression.value);
}

std::string number_source(const Expression& expression, std::string_view type) {
  if (expression.is_vector)
    return fmt::format(R"(kernel void run(OUT(out, float), IN(x, float), int n, float number, int number_first) {{
  ADDRESS(out, float) ADDRESS(x, float)
  const int first = get_global_id(0) * LANES, count = n - first;
  const V element = load_some(x + first, count);
  const V a = number_first ? (V)number : element, b = number_first ? element : (V)number;
  store_some({}, out + first, count);
}}
)",
                       expression.value);
  return fmt::format(R"(kernel void run(OUT(out, {1}), IN(x, {0}), int n, float number, int number_first) {{
  ADDRESS(out, {1}) ADDRESS(x, {0})
  const int first = get_global_id(0) * 8;
  for (int i = first; i < first + 8 && i < n; ++i) {{
    const {0} element = x[i];
    const {0} a = number_first ? ({0})number : element, b = number_first ? element : ({0})number;
    out[i] = {2};
  }}
}}
)",
                     type, expression.is_test ? "uchar" : type, expression.value);
}

// The sums of a tile of 4 x 16 where b's rows lie in order: a column of a times a row of b at a time. Columns behind
// the last one belong to the next row, and are not stored; only where none follows are they not read.
constexpr std::string_view kTileByRows = R"(  const long most = (long)inner * n - 16 - column;
  const int whole = width >= 16 ? inner : most < 0 ? 0 : (int)min((long)inner, most / n + 1);
  int k = 0;
  for (; k < whole; ++k) {
    const V right = LOAD(0, &B_AT(k, column));
    s0 += A_AT(row, k) * right;
    s1 += A_AT(r1, k) * right;
    s2 += A_AT(r2, k) * right;
    s3 += A_AT(r3, k) * right;
  }
  for (; k < inner; ++k) {
    const V right = load_some(&B_AT(k, column), width);
    s0 += A_AT(row, k) * right;
    s1 += A_AT(r1, k) * right;
    s2 += A_AT(r2, k) * right;
    s3 += A_AT(r3, k) * right;
  }
)";
// The same where rows of a and columns of b lie in order along the inner axis: sixteen partial sums of each result.
constexpr std::string_view kTileByInner = R"(  float sum[4][16];
  for (int part = 0; part < min(width, 16); part += 4) {
    const int c0 = column + part, c1 = min(c0 + 1, n - 1), c2 = min(c0 + 2, n - 1), c3 = min(c0 + 3, n - 1);
    float four[4][4];
    dots_of(four, &A_AT(row, 0), &A_AT(r1, 0), &A_AT(r2, 0), &A_AT(r3, 0), &B_AT(0, c0), &B_AT(0, c1), &B_AT(0, c2),
            &B_AT(0, c3), inner);
    for (int i = 0; i < 4; ++i) for (int j = 0; j < 4; ++j) sum[i][part + j] = four[i][j];
  }
  s0 = LOAD(0, sum[0]);
  s1 = LOAD(0, sum[1]);
  s2 = LOAD(0, sum[2]);
  s3 = LOAD(0, sum[3]);
)";
constexpr std::string_view kTileOneByOne = R"(  float sum[4][16];
  for (int i = 0; i < 4; ++i) for (int j = 0; j < 16; ++j) sum[i][j] = 0.f;
  const int rows = min(4, m - row), columns = min(16, width);
  for (int k = 0; k < inner; ++k)
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) sum[i][j] += A_AT(row + i, k) * B_AT(k, column + j);
  s0 = LOAD(0, sum[0]);
  s1 = LOAD(0, sum[1]);
  s2 = LOAD(0, sum[2]);
  s3 = LOAD(0, sum[3]);
)";

// One item has 4 x 16 results in registers. Batches are the third axis. Rows behind the last one repeat it, and are not
// stored.
std::string matmul_source(std::string_view layout, std::string_view activation) {
  const std::string_view tile = layout[1] == 'n' ? kTileByRows : layout[0] == 'n' ? kTileByInner : kTileOneByOne;
  return fmt::format(R"(#define A_AT(i, k) a[{0}]
#define B_AT(k, j) b[{1}]
V finished(V x, global const float* out, global const float* bias, int width, int accumulate, int has_bias) {{
  if (accumulate) x += load_some(out, width);
  if (has_bias) x += load_some(bias, width);
  return {2};
}}
kernel void run(OUT(out, float), IN(a, float), IN(b, float), IN(bias, float), int m, int n, int inner, int has_bias,
    int step_a, int step_b, int accumulate) {{
  ADDRESS(out, float) ADDRESS(a, float) ADDRESS(b, float) ADDRESS(bias, float)
  const int row = get_global_id(1) * 4, column = get_global_id(0) * 16, width = n - column;
  if (row >= m || width <= 0) return;
  const int r1 = min(row + 1, m - 1), r2 = min(row + 2, m - 1), r3 = min(row + 3, m - 1);
  const long batch = get_global_id(2);
  out += batch * m * n + column;
  a += batch * step_a;
  b += batch * step_b;
  bias += has_bias ? column : 0;
  V s0 = 0.f, s1 = 0.f, s2 = 0.f, s3 = 0.f;
{3}  global float* const o0 = out + (long)row * n;
  store_some(finished(s0, o0, bias, width, accumulate, has_bias), o0, width);
  if (row + 1 < m) store_some(finished(s1, o0 + n, bias, width, accumulate, has_bias), o0 + n, width);
  if (row + 2 < m) store_some(finished(s2, o0 + 2 * (long)n, bias, width, accumulate, has_bias), o0 + 2 * (long)n, width);
  if (row + 3 < m) store_some(finished(s3, o0 + 3 * (long)n, bias, width, accumulate, has_bias), o0 + 3 * (long)n, width);
}}
)",
                     layout[0] == 't' ? "(long)(k) * m + (i)" : "(long)(i) * inner + (k)",
                     layout[1] == 't' ? "(long)(j) * inner + (k)" : "(long)(k) * n + (j)", activation, tile);
}

// The same with 16 x 16 results for a group, whose items share tiles in local memory.
std::string local_matmul_source(std::string_view layout, std::string_view activation) {
  return fmt::format(R"(#define A_AT(i, k) a[{0}]
#define B_AT(k, j) b[{1}]
kernel __attribute__((reqd_work_group_size(16, 16, 1))) void run(OUT(out, float), IN(a, float), IN(b, float),
    IN(bias, float), int m, int n, int inner, int has_bias, int step_a, int step_b, int accumulate) {{
  ADDRESS(out, float) ADDRESS(a, float) ADDRESS(b, float) ADDRESS(bias, float)
  const int row = get_global_id(1), column = get_global_id(0), y = get_local_id(1), x_ = get_local_id(0);
  const long batch = get_global_id(2);
  out += batch * m * n;
  a += batch * step_a;
  b += batch * step_b;
  local float left[16][17], right[16][17];
  float sum = 0.f;
  for (int from = 0; from < inner; from += 16) {{
    left[y][x_] = row < m && from + x_ < inner ? A_AT(row, from + x_) : 0.f;
    right[y][x_] = column < n && from + y < inner ? B_AT(from + y, column) : 0.f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < 16; ++k) sum += left[y][k] * right[k][x_];
    barrier(CLK_LOCAL_MEM_FENCE);
  }}
  if (row >= m || column >= n) return;
  const long at = (long)row * n + column;
  float x = sum;
  if (accumulate) x += out[at];
  if (has_bias) x += bias[column];
  out[at] = {2};
}}
)",
                     layout[0] == 't' ? "(long)(k) * m + (i)" : "(long)(i) * inner + (k)",
                     layout[1] == 't' ? "(long)(j) * inner + (k)" : "(long)(k) * n + (j)", activation);
}

bool is_product(std::string_view family) noexcept {
  return family == "matmul" || family == "matmul_registers" || family == "matmul_local";
}

bool is_layout(std::string_view layout) noexcept {
  return layout == "nn" || layout == "nt" || layout == "tn" || layout == "tt";
}

}  // namespace

const KernelText* kernel_text(std::string_view name) noexcept {
  for (const auto& texts : {element_texts(), image_texts(), normalization_texts(), sequence_texts()})
    for (const KernelText& text : texts)
      if (text.name == name) return &text;
  return nullptr;
}

bool has_kernel_source(std::string_view name) noexcept {
  if (kernel_text(name)) return true;
  const Parts parts(name);
  if (!parts.is_whole) return false;
  const auto [family, op, dtype] = parts.part;
  if (family == "unary") return !unary_expression(op, dtype).value.empty();
  if (family == "cast") return !type_of(op).empty() && !type_of(dtype).empty();
  if (family == "flat" || family == "broad" || family == "number") return !binary_expression(op, dtype).value.empty();
  return is_product(family) && is_layout(op) && (dtype == "linear" || !find(kUnary, dtype).empty());
}

std::string guarded_source(std::string source) {
  constexpr std::string_view kBegin = "void run(";
  source.insert(source.find('{', source.find(kBegin)) + 1, "\n  ADDRESS(guard, uint)\n  if (*guard != 0) return;");
  return source.insert(source.find(kBegin) + kBegin.size(), "IN(guard, uint), ");
}

std::string kernel_source(std::string_view name) {
  if (name.ends_with(kGuarded)) return guarded_source(kernel_source(name.substr(0, name.size() - 1)));
  std::string source(common_text());
  if (const KernelText* const text = kernel_text(name))
    return source.append(vector_text(text->lanes)).append(text->before).append(text->then).append(text->text);
  const auto [family, op, dtype] = Parts(name).part;
  PLIMSOLL_CHECK(has_kernel_source(name));
  if (is_product(family)) {
    const std::string_view activation = dtype == "linear" ? "x" : find(kUnary, dtype);
    return family == "matmul_local" ? source + vector_text(1) + local_matmul_source(op, activation)
                                    : source + vector_text(16) + matmul_source(op, activation);
  }
  if (family == "cast") return source + cast_source(op, dtype);
  const std::string_view type = type_of(dtype);
  if (family == "broad") return source + vector_text(1) + broad_source(binary_expression(op, dtype), type);
  source += vector_text(8);
  if (family == "unary") return source + unary_source(unary_expression(op, dtype), type);
  return source + (family == "flat" ? flat_source(binary_expression(op, dtype), type)
                                    : number_source(binary_expression(op, dtype), type));
}

}  // namespace plimsoll::internal
