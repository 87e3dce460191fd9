// Arithmetic, comparison, logic and mathematics of elements.
#include <cmath>
#include <limits>

#include "plimsoll/model/onnx/onnx_layout.h"
#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/clip.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll::internal {
namespace {

using Unary = Tensor (*)(Tensor);
using Binary = Tensor (*)(const Tensor&, const Tensor&);

template <Unary kFunction>
void unary(OnnxNode& node) {
  const OnnxValue& x = node.value(0);
  if (x.is_sequence()) node.unsupported("a sequence");
  node.give(OnnxValue(kFunction(x.held()), x.order()));
}

// Tests of elements that integers always pass or fail: they have neither NaN nor infinity.
void is_nan_of(OnnxNode& node) {
  const OnnxValue& x = node.value(0);
  node.give(OnnxValue(is_nan(x.held()), x.order()));
}

void is_inf_of(OnnxNode& node) {
  const bool low = node.integer("detect_negative", 1) != 0, high = node.integer("detect_positive", 1) != 0;
  const OnnxValue& x = node.value(0);
  Tensor result = is_inf(x.held());
  if (!low) result = result && x.held() > 0;
  if (!high) result = result && x.held() < 0;
  node.give(OnnxValue(std::move(result), x.order()));
}

template <Binary kFunction>
void binary(OnnxNode& node) {
  const OnnxPair pair = aligned(node);
  node.give(OnnxValue(kFunction(pair.a, pair.b), pair.order));
}

// Towards zero, as ONNX divides integers; ours floors.
Tensor quotient(const Tensor& a, const Tensor& b) {
  if (is_floating(a.dtype()) || a.dtype() == u8) return a / b;
  const Tensor floored = floor_divide(a, b);
  const Tensor too_low = not_equal(floored * b, a) && logical_xor(a < 0, b < 0);
  return floored + too_low.cast(a.dtype());
}

Tensor remainder(const Tensor& a, const Tensor& b) {  // Of the dividend's sign.
  return abs(a) % abs(b) * sign(a);
}

void modulo_of(OnnxNode& node) {
  const OnnxPair pair = aligned(node);
  const bool by_c = node.integer("fmod", 0) != 0;
  if (!by_c && is_floating(pair.a.dtype()) && node.version() < 28) node.invalid("floats need fmod = 1");
  node.give(OnnxValue(by_c && pair.a.dtype() != u8 ? remainder(pair.a, pair.b) : pair.a % pair.b, pair.order));
}

// The base's dtype is the result's; the exponent may have another.
Tensor power_of(const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype()) return power(a, b);
  if (is_floating(a.dtype()) || !is_floating(b.dtype())) return power(a, b.cast(a.dtype()));
  return power(a.cast(f64), b.cast(f64)).cast(a.dtype());
}

template <Binary kFunction, bool kMean = false>
void of_all(OnnxNode& node) {
  Tensor result = node.in(0);
  for (std::size_t i = 1; i < node.num_inputs(); ++i) result = kFunction(result, node.in(i));
  if (kMean) result = result / static_cast<double>(node.num_inputs());
  node.give(std::move(result));
}

void not_of(OnnxNode& node) { node.give(logical_not(node.in(0))); }

void clip_of_attributes(OnnxNode& node) {
  const OnnxValue& x = node.value(0);
  Tensor result = x.held();
  if (node.find("min")) result = maximum(result, node.real("min", 0));
  if (node.find("max")) result = minimum(result, node.real("max", 0));
  node.give(OnnxValue(std::move(result), x.order()));
}

void clip_of_operands(OnnxNode& node) {
  const OnnxValue& x = node.value(0);
  const DType dtype = x.held().dtype();
  if ((dtype == f32 || dtype == f64) && node.is_known(1) && node.is_known(2)) {
    const double low = node.real_in(1), high = node.real_in(2);
    if (low == 0 && high == 6) return node.give(OnnxValue(relu6(x.held()), x.order()));
    if (low <= high) return node.give(OnnxValue(clip_by_value(x.held(), low, high), x.order()));
  }
  Tensor result = x.held();
  if (node.has(1)) result = maximum(result, node.in(1));
  if (node.has(2)) result = minimum(result, node.in(2));
  node.give(OnnxValue(std::move(result), x.order()));
}

void cast_to(OnnxNode& node, DType dtype) {
  const OnnxValue& x = node.value(0);
  node.give(OnnxValue(cast(x.held(), dtype), x.order()));
}

void cast_of(OnnxNode& node) {
  const auto type = static_cast<std::int32_t>(node.integer("to", 0));
  const std::optional<DType> dtype = onnx::dtype_of(type);
  if (!dtype) node.unsupported("the element type " + onnx::element_type_name(type));
  cast_to(node, *dtype);
}

void cast_of_text(OnnxNode& node) {  // Version 1 names the type.
  static const std::pair<const char*, DType> kNames[] = {
      {"FLOAT", f32}, {"UINT8", u8},     {"INT8", i8},     {"INT16", i16},  {"INT32", i32},
      {"INT64", i64}, {"BOOL", boolean}, {"FLOAT16", f16}, {"DOUBLE", f64},
  };
  const std::string name = node.text("to", "");
  for (const auto& [known, dtype] : kNames)
    if (name == known) return cast_to(node, dtype);
  node.unsupported("the element type " + name);
}

void cast_like(OnnxNode& node) { cast_to(node, node.dtype(1)); }

void where_of(OnnxNode& node) { node.give(where(node.in(0), node.in(1), node.in(2))); }
void identity(OnnxNode& node) { node.give(node.value(0)); }

Tensor add_of(const Tensor& a, const Tensor& b) { return a + b; }
Tensor subtract_of(const Tensor& a, const Tensor& b) { return a - b; }
Tensor multiply_of(const Tensor& a, const Tensor& b) { return a * b; }
Tensor maximum_of(const Tensor& a, const Tensor& b) { return maximum(a, b); }
Tensor minimum_of(const Tensor& a, const Tensor& b) { return minimum(a, b); }
Tensor equal_of(const Tensor& a, const Tensor& b) { return equal(a, b); }
Tensor less_of(const Tensor& a, const Tensor& b) { return less(a, b); }
Tensor less_equal_of(const Tensor& a, const Tensor& b) { return less_equal(a, b); }
Tensor greater_of(const Tensor& a, const Tensor& b) { return greater(a, b); }
Tensor greater_equal_of(const Tensor& a, const Tensor& b) { return greater_equal(a, b); }
Tensor and_of(const Tensor& a, const Tensor& b) { return logical_and(a, b); }
Tensor or_of(const Tensor& a, const Tensor& b) { return logical_or(a, b); }
Tensor xor_of(const Tensor& a, const Tensor& b) { return logical_xor(a, b); }

constexpr OnnxOperator kElementwiseRows[] = {
    {"Abs", 1, kNewest, unary<abs>},
    {"Acos", 7, kNewest, unary<acos>},
    {"Acosh", 9, kNewest, unary<acosh>},
    {"Add", 1, kNewest, binary<add_of>},
    {"And", 1, kNewest, binary<and_of>},
    {"Asin", 7, kNewest, unary<asin>},
    {"Asinh", 9, kNewest, unary<asinh>},
    {"Atan", 7, kNewest, unary<atan>},
    {"Atanh", 9, kNewest, unary<atanh>},
    {"Cast", 1, 5, cast_of_text},
    {"Cast", 6, kNewest, cast_of},
    {"CastLike", 15, kNewest, cast_like},
    {"Ceil", 1, kNewest, unary<ceil>},
    {"Clip", 1, 10, clip_of_attributes},
    {"Clip", 11, kNewest, clip_of_operands},
    {"Cos", 7, kNewest, unary<cos>},
    {"Cosh", 9, kNewest, unary<cosh>},
    {"Div", 1, kNewest, binary<quotient>},
    {"Equal", 1, kNewest, binary<equal_of>},
    {"Erf", 9, kNewest, unary<erf>},
    {"Exp", 1, kNewest, unary<exp>},
    {"Floor", 1, kNewest, unary<floor>},
    {"Greater", 1, kNewest, binary<greater_of>},
    {"GreaterOrEqual", 12, kNewest, binary<greater_equal_of>},
    {"Identity", 1, kNewest, identity},
    {"IsInf", 10, kNewest, is_inf_of},
    {"IsNaN", 9, kNewest, is_nan_of},
    {"Less", 1, kNewest, binary<less_of>},
    {"LessOrEqual", 12, kNewest, binary<less_equal_of>},
    {"Log", 1, kNewest, unary<log>},
    {"Max", 1, kNewest, of_all<maximum_of>},
    {"Mean", 1, kNewest, of_all<add_of, true>},
    {"Min", 1, kNewest, of_all<minimum_of>},
    {"Mod", 10, kNewest, modulo_of},
    {"Mul", 1, kNewest, binary<multiply_of>},
    {"Neg", 1, kNewest, unary<negative>},
    {"Not", 1, kNewest, not_of},
    {"Or", 1, kNewest, binary<or_of>},
    {"Pow", 1, kNewest, binary<power_of>},
    {"Reciprocal", 1, kNewest, unary<reciprocal>},
    {"Round", 11, kNewest, unary<round>},
    {"Sign", 9, kNewest, unary<sign>},
    {"Sin", 7, kNewest, unary<sin>},
    {"Sinh", 9, kNewest, unary<sinh>},
    {"Sqrt", 1, kNewest, unary<sqrt>},
    {"Sub", 1, kNewest, binary<subtract_of>},
    {"Sum", 1, kNewest, of_all<add_of>},
    {"Tan", 7, kNewest, unary<tan>},
    {"Where", 9, kNewest, where_of},
    {"Xor", 1, kNewest, binary<xor_of>},
};

}  // namespace

OnnxOperators onnx_elementwise_operators() { return kElementwiseRows; }

}  // namespace plimsoll::internal
