// Tensors out of nothing: constants, ranges, windows.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {
namespace {

void constant_of(OnnxNode& node) {
  const TraceWith nobody(nullptr);
  const auto list = [](const auto& values) { return from_vector(values, {static_cast<std::int64_t>(values.size())}); };
  OnnxValue result;
  if (node.find("value") || node.find("sparse_value")) {
    result = OnnxValue(node.tensor(node.find("value") ? "value" : "sparse_value"));
  } else if (const auto* real = node.find("value_float")) {
    result = OnnxValue(constant(real->real));
  } else if (const auto* reals = node.find("value_floats")) {
    result = OnnxValue(list(reals->reals));
  } else if (const auto* integer = node.find("value_int")) {
    result = OnnxValue(constant(integer->integer));
  } else if (const auto* integers = node.find("value_ints")) {
    result = OnnxValue(list(integers->integers));
  } else {
    node.unsupported("a value of text");
  }
  result.set_constant();
  node.give(std::move(result));
}

Number element_of(const Tensor& tensor) {
  return is_floating(tensor.dtype()) ? Number(tensor.item<double>()) : Number(tensor.item<std::int64_t>());
}

void constant_of_shape(OnnxNode& node) {
  const std::vector<std::int64_t> sizes = node.integers(std::size_t{0});
  const Shape shape = sizes.empty() ? Shape::scalar() : Shape(sizes);
  if (!node.find("value")) return node.give(zeros(shape));
  const Tensor value = node.tensor("value");
  if (value.size() != 1) node.invalid(fmt::format("the value has {} elements", value.size()));
  node.give(full(shape, element_of(value), value.dtype()));
}

void range(OnnxNode& node) {
  const DType dtype = node.dtype(0);
  const double begin = node.real_in(0), end = node.real_in(1), step = node.real_in(2);
  if (step == 0) node.invalid("the step is 0");
  const double count = std::max(0.0, std::ceil((end - begin) / step));
  if (!(count < 1e9)) node.invalid(fmt::format("it has {} elements", count));
  const Tensor numbers = arange(static_cast<std::int64_t>(count)).cast(is_floating(dtype) ? f64 : i64);
  node.give(
      (is_floating(dtype) ? numbers * step + begin : numbers * node.integer_in(2) + node.integer_in(0)).cast(dtype));
}

// a - b cos(2 pi i / n) + c cos(4 pi i / n).
void window(OnnxNode& node, double a, double b, double c) {
  const std::int64_t size = node.integer_in(0);
  if (size < 0 || size > 1 << 30) node.invalid(fmt::format("a window of {}", size));
  const auto type = static_cast<std::int32_t>(node.integer("output_datatype", onnx::kFloat));
  const std::optional<DType> dtype = onnx::dtype_of(type);
  if (!dtype) node.unsupported("the element type " + onnx::element_type_name(type));
  const bool periodic = node.integer("periodic", 1) != 0;
  const double period = static_cast<double>(periodic ? size : size - 1);
  const Tensor turn = arange(size).cast(f64) * (2 * std::numbers::pi / period);
  Tensor result = a - b * cos(turn);
  if (c != 0) result = result + c * cos(turn * 2);
  node.give(result.cast(*dtype));
}
void hann_window(OnnxNode& node) { window(node, 0.5, 0.5, 0); }
void hamming_window(OnnxNode& node) { window(node, 25.0 / 46, 1 - 25.0 / 46, 0); }
void blackman_window(OnnxNode& node) { window(node, 0.42, 0.5, 0.08); }

constexpr OnnxOperator kConstantRows[] = {
    {"BlackmanWindow", 17, kNewest, blackman_window, kOperand0},
    {"Constant", 1, kNewest, constant_of},
    {"ConstantOfShape", 9, kNewest, constant_of_shape, kOperand0},
    {"HammingWindow", 17, kNewest, hamming_window, kOperand0},
    {"HannWindow", 17, kNewest, hann_window, kOperand0},
    {"Range", 11, kNewest, range, kOperand0 | kOperand1 | kOperand2},
};

}  // namespace

OnnxOperators onnx_constant_operators() { return kConstantRows; }

}  // namespace plimsoll::internal
