// Bits of elements; optional values.
#include <fmt/format.h>

#include "plimsoll/model/onnx/onnx_layout.h"
#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/bitwise.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {
namespace {

template <BitwiseOp kOp>
void bits(OnnxNode& node) {
  const OnnxPair pair = aligned(node);
  node.give(OnnxValue(bitwise(kOp, pair.a, pair.b), pair.order));
}

void bits_inverted(OnnxNode& node) {
  const OnnxValue& x = node.value(0);
  const DType dtype = x.held().dtype();
  Tensor all;
  {
    const TraceWith nobody(nullptr);
    all = full(Shape::scalar(), dtype == u8 ? 255 : -1, dtype);
  }
  node.give(OnnxValue(bitwise(BitwiseOp::bit_xor, x.held(), all), x.order()));
}

void bits_shifted(OnnxNode& node) {
  const std::string direction = node.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") node.invalid(fmt::format("the direction \"{}\"", direction));
  if (node.dtype(0) != u8 && node.version() < 28) node.unsupported("elements that have a sign");
  node.give(bitwise(direction == "LEFT" ? BitwiseOp::shift_left : BitwiseOp::shift_right, node.in(0), node.in(1)));
}

void bits_cast(OnnxNode& node) {
  const auto type = static_cast<std::int32_t>(node.integer("to", 0));
  const std::optional<DType> dtype = onnx::dtype_of(type);
  if (!dtype) node.unsupported("the element type " + onnx::element_type_name(type));
  const OnnxValue& x = node.value(0);
  if ((x.held().dtype() == boolean) != (*dtype == boolean)) node.unsupported("bits of booleans");
  node.give(OnnxValue(bit_cast_to(x.held(), *dtype), x.order()));
}

// Inside of a graph, a value that is there is the value itself.
void optional_of(OnnxNode& node) {
  if (!node.has(0)) node.unsupported("an optional value without an element");
  node.give(node.value(0));
}

void optional_has(OnnxNode& node) {
  const TraceWith nobody(nullptr);
  node.give(constant(node.has(0)));
}

constexpr OnnxOperator kBitsRows[] = {
    {"BitCast", 26, kNewest, bits_cast},
    {"BitShift", 11, kNewest, bits_shifted},
    {"BitwiseAnd", 18, kNewest, bits<BitwiseOp::bit_and>},
    {"BitwiseNot", 18, kNewest, bits_inverted},
    {"BitwiseOr", 18, kNewest, bits<BitwiseOp::bit_or>},
    {"BitwiseXor", 18, kNewest, bits<BitwiseOp::bit_xor>},
    {"Optional", 15, kNewest, optional_of},
    {"OptionalGetElement", 15, kNewest, optional_of},
    {"OptionalHasElement", 15, kNewest, optional_has, 0, kGivesShape},
};

}  // namespace

OnnxOperators onnx_bits_operators() { return kBitsRows; }

}  // namespace plimsoll::internal
