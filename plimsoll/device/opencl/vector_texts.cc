// Functions of V, a vector of 8 or 16 floats, or one float: loads and stores of some of them, and exp, tanh, gelu, ...
// by the formulas of kernels/internal/vector_math.h, for those that drivers bring are much slower on processors.
// Nothing in them depends on how many lanes there are, so that an element's result does not either.
#include <fmt/format.h>

#include "plimsoll/device/opencl/kernel_sources.h"

namespace plimsoll::internal {
namespace {

// `count` of them, which may be less than 1 or more than there are lanes; the others are 0.
constexpr std::string_view kOne = R"(#define V float
#define VI int
#define AS_V as_float
#define AS_VI as_int
#define LANES 1
V load_some(global const float* from, int count) { return count > 0 ? from[0] : 0.f; }
void store_some(V value, global float* to, int count) { if (count > 0) to[0] = value; }
V total_of(V v) { return v; }
)";
constexpr std::string_view kMany = R"(#define V float{0}
#define VI int{0}
#define AS_V as_float{0}
#define AS_VI as_int{0}
#define LANES {0}
#define LOAD vload{0}
#define STORE vstore{0}
V load_some(global const float* from, int count) {{
  if (count >= LANES) return LOAD(0, from);
  float some[LANES];
  for (int i = 0; i < LANES; ++i) some[i] = i < count ? from[i] : 0.f;
  return LOAD(0, some);
}}
void store_some(V value, global float* to, int count) {{
  if (count >= LANES) {{
    STORE(value, 0, to);
  }} else {{
    float some[LANES];
    STORE(value, 0, some);
    for (int i = 0; i < count; ++i) to[i] = some[i];
  }}
}}
)";
constexpr std::string_view kTotalOf8 = R"(
float total_of(V v) { const float4 b = v.lo + v.hi; return (b.x + b.z) + (b.y + b.w); }
)";
// And products of rows by rows, four by four or one by four.
constexpr std::string_view kTotalOf16 = R"(
float total_of(V v) { const float8 a = v.lo + v.hi; const float4 b = a.lo + a.hi; return (b.x + b.z) + (b.y + b.w); }
float4 totals_of(V a, V b, V c, V d) {
  const float8 a8 = a.lo + a.hi, b8 = b.lo + b.hi, c8 = c.lo + c.hi, d8 = d.lo + d.hi;
  const float4 x = a8.lo + a8.hi, y = b8.lo + b8.hi, z = c8.lo + c8.hi, w = d8.lo + d8.hi;
  return ((float4)(x.x, y.x, z.x, w.x) + (float4)(x.z, y.z, z.z, w.z)) +
         ((float4)(x.y, y.y, z.y, w.y) + (float4)(x.w, y.w, z.w, w.w));
}
#define FOUR_DOTS(i) V s##i##0 = 0.f, s##i##1 = 0.f, s##i##2 = 0.f, s##i##3 = 0.f;
#define ADD_DOTS(i) s##i##0 += x##i * y0; s##i##1 += x##i * y1; s##i##2 += x##i * y2; s##i##3 += x##i * y3;
#define LOAD_DOTS(i) const V x##i = load_some(a##i + k, n - k);
#define STORE_DOTS(i) vstore4(totals_of(s##i##0, s##i##1, s##i##2, s##i##3), 0, sums[i]);
void dots_of(float (*sums)[4], global const float* a0, global const float* a1, global const float* a2,
    global const float* a3, global const float* b0, global const float* b1, global const float* b2,
    global const float* b3, int n) {
  FOUR_DOTS(0) FOUR_DOTS(1) FOUR_DOTS(2) FOUR_DOTS(3)
  for (int k = 0; k < n; k += 16) {
    const V y0 = load_some(b0 + k, n - k), y1 = load_some(b1 + k, n - k);
    const V y2 = load_some(b2 + k, n - k), y3 = load_some(b3 + k, n - k);
    LOAD_DOTS(0) LOAD_DOTS(1) LOAD_DOTS(2) LOAD_DOTS(3)
    ADD_DOTS(0) ADD_DOTS(1) ADD_DOTS(2) ADD_DOTS(3)
  }
  STORE_DOTS(0) STORE_DOTS(1) STORE_DOTS(2) STORE_DOTS(3)
}
float4 dots_of_one(global const float* a0, global const float* b0, global const float* b1, global const float* b2,
    global const float* b3, int n) {
  FOUR_DOTS(0)
  for (int k = 0; k < n; k += 16) {
    const V y0 = load_some(b0 + k, n - k), y1 = load_some(b1 + k, n - k);
    const V y2 = load_some(b2 + k, n - k), y3 = load_some(b3 + k, n - k);
    LOAD_DOTS(0)
    ADD_DOTS(0)
  }
  return totals_of(s00, s01, s02, s03);
}
)";

// PICK is `test ? yes : no`, which oclgrind computes wrongly for vectors (it inverts unordered comparisons).
constexpr std::string_view kMath = R"(
#define PICK(test, yes, no) select((V)(no), (V)(yes), test)
#define EXP_SHIFT (12582912.f + 127.f)
V exp_tail(V r) {
  V p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return p * (r * r) + r;
}
V exp_rest(V x, V n) { return (x - n * 0.693359375f) - n * -2.12194440e-4f; }
V power_of(V shifted) { return AS_V(AS_VI(shifted) << 23); }
V exp_of(V x) {
  const V high = PICK(x > 89.f, 89.f, x), c = PICK(high < -104.f, -104.f, high);
  const V n = (c * 1.44269504088896341f + EXP_SHIFT) - EXP_SHIFT, half_n = (n * 0.5f + 12582912.f) - 12582912.f;
  return (exp_tail(exp_rest(c, n)) + 1.f) * power_of(half_n + EXP_SHIFT) * power_of((n - half_n) + EXP_SHIFT);
}
V exp_of_negative(V x) {
  const V c = PICK(x < -87.f, -87.f, x), shifted = c * 1.44269504088896341f + EXP_SHIFT;
  const V y = (exp_tail(exp_rest(c, shifted - EXP_SHIFT)) + 1.f) * power_of(shifted);
  return PICK(x < -87.f, 0.f, y);
}
V tanh_of(V x) {
  const V high = PICK(x > 7.99881172180175781f, 7.99881172180175781f, x);
  const V c = PICK(high < -7.99881172180175781f, -7.99881172180175781f, high), s = c * c;
  V p = s * -2.76076847742355e-16f + 2.00018790482477e-13f;
  p = p * s + -8.60467152213735e-11f;
  p = p * s + 5.12229709037114e-08f;
  p = p * s + 1.48572235717979e-05f;
  p = p * s + 6.37261928875436e-04f;
  p = p * s + 4.89352455891786e-03f;
  V q = s * 1.19825839466702e-06f + 1.18534705686654e-04f;
  q = q * s + 2.26843463243900e-03f;
  q = q * s + 4.89352518554385e-03f;
  const V y = p / q * c;
  return PICK(x >= 7.99881172180175781f, 1.f, PICK(x <= -7.99881172180175781f, -1.f, y));
}
V erf_of(V x) {
  const V high = PICK(x > 4.f, 4.f, x), c = PICK(high < -4.f, -4.f, high), s = c * c;
  V p = s * -2.72614225801306e-10f + 2.77068142495902e-08f;
  p = p * s + -2.10102402082508e-06f;
  p = p * s + -5.69250639462346e-05f;
  p = p * s + -7.34990630326855e-04f;
  p = p * s + -2.95459980854025e-03f;
  p = p * s + -1.60960333262415e-02f;
  V q = s * -1.45660718464996e-05f + -2.13374055278905e-04f;
  q = q * s + -1.68282697438203e-03f;
  q = q * s + -7.37332916720468e-03f;
  q = q * s + -1.42647390514189e-02f;
  const V y = p / q * c;
  return PICK(x >= 4.f, 1.f, PICK(x <= -4.f, -1.f, y));
}
V sigmoid_of(V x) {
  const V e = exp_of_negative(-fabs(x));
  return PICK(x < 0.f, e, 1.f) / (1.f + e);
}
V softplus_of(V x) { return PICK(x > 0.f, x, 0.f) + log1p(exp_of(-fabs(x))); }
V swish_slope(V x) {
  const V s = sigmoid_of(x);
  return s * (1.f + x * (1.f - s));
}
V normal_tail(V x, V* end, V* density) {
  const V size = fabs(x), z = PICK(size > 14.5f, 14.5f, size), high = AS_V(AS_VI(z) & (VI)0xfffff000);
  const V square = high * high * -0.5f, rest = (z - high) * (z + high) * -0.5f;
  const V shifted = PICK(square < -87.f, -87.f, square) * 1.44269504088896341f + EXP_SHIFT;
  const V rise = (exp_tail(exp_rest(square, shifted - EXP_SHIFT) + rest) + 1.f) * power_of(shifted);
  *end = z;
  *density = PICK(square < -87.f, 0.f, rise);
  const V t = 1.f / (z * 0.275f + 1.f);
  V p = t * 2.64057117e-2f - 1.06795319e-1f;
  p = p * t + 1.21816305e-1f;
  p = p * t - 2.52548392e-2f;
  p = p * t + 8.09540753e-2f;
  p = p * t + 8.20116441e-2f;
  p = p * t + 1.01391251e-1f;
  p = p * t + 1.09767095e-1f;
  p = p * t + 1.09704096e-1f;
  return p * t * *density;
}
V gelu_of(V x) {
  V z, density;
  const V beyond = normal_tail(x, &z, &density);
  return PICK(x < 0.f, -z * beyond, x * (1.f - beyond));
}
V gelu_slope(V x) {
  V z, density;
  const V beyond = normal_tail(x, &z, &density), rise = z * density * 0.39894228040143268f;
  return PICK(x < 0.f, beyond - rise, (1.f - beyond) + rise);
}
#define GELU_C 0.79788456080286535588f
V gelu_tanh_of(V x) { return 0.5f * x * (1.f + tanh_of(GELU_C * (x + 0.044715f * x * x * x))); }
V gelu_tanh_slope(V x) {
  const V t = tanh_of(GELU_C * (x + 0.044715f * x * x * x));
  return 0.5f * (1.f + t) + 0.5f * x * (1.f - t * t) * GELU_C * (1.f + 3.f * 0.044715f * x * x);
}
)";

}  // namespace

std::string vector_text(int lanes) {
  std::string text = lanes == 1 ? std::string(kOne) : fmt::format(fmt::runtime(kMany), lanes);
  if (lanes > 1) text += lanes == 8 ? kTotalOf8 : kTotalOf16;
  return text.append(kMath);
}

}  // namespace plimsoll::internal
