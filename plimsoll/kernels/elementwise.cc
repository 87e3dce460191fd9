#include "plimsoll/kernels/elementwise.h"

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/internal/casts.h"
#include "plimsoll/kernels/internal/loops.h"
#include "plimsoll/kernels/internal/tiles.h"

namespace plimsoll {
namespace {

struct Facts {
  const char* name;
  bool gives_bool, is_heavy;
};

constexpr bool gives_bool(const char* result) noexcept { return result[0] == 'B'; }

constexpr Facts kBinaryFacts[] = {
#define PLIMSOLL_BINARY(name, types, result, value) {#name, gives_bool(#result), false},
#include "plimsoll/kernels/binary_ops.inc"
#undef PLIMSOLL_BINARY
};
constexpr Facts kUnaryFacts[] = {
#define PLIMSOLL_UNARY(name, types, result, value) {#name, gives_bool(#result), false},
#define PLIMSOLL_MATH(name, vector_value, double_value) {#name, false, true},
#include "plimsoll/kernels/unary_ops.inc"
#undef PLIMSOLL_UNARY
#undef PLIMSOLL_MATH
};

const Facts& facts(BinaryOp op) noexcept { return kBinaryFacts[static_cast<std::size_t>(op)]; }
const Facts& facts(UnaryOp op) noexcept { return kUnaryFacts[static_cast<std::size_t>(op)]; }
Loop loop_of(BinaryOp op, DType dtype) noexcept {
  return loops().binary[static_cast<std::size_t>(op)][native_type(dtype)];
}
Loop loop_of(UnaryOp op, DType dtype) noexcept {
  return loops().unary[static_cast<std::size_t>(op)][native_type(dtype)];
}

template <class Op>
void run(Op op, const TileOperand* operands, int count, const TensorView& out) noexcept {
  const DType dtype = operands[0].view->dtype();
  const Loop loop = loop_of(op, dtype);
  PLIMSOLL_CHECK(loop != nullptr);
  run_tiles(loop, operands, count, out, facts(op).gives_bool ? boolean : native_dtype(dtype),
            facts(op).is_heavy ? kHeavyGrain : kLightGrain);
}

}  // namespace

const char* op_name(BinaryOp op) noexcept { return facts(op).name; }
const char* op_name(UnaryOp op) noexcept { return facts(op).name; }
bool is_supported(BinaryOp op, DType dtype) noexcept { return loop_of(op, dtype) != nullptr; }
bool is_supported(UnaryOp op, DType dtype) noexcept { return loop_of(op, dtype) != nullptr; }
DType result_dtype(BinaryOp op, DType dtype) noexcept { return facts(op).gives_bool ? boolean : dtype; }
DType result_dtype(UnaryOp op, DType dtype) noexcept { return facts(op).gives_bool ? boolean : dtype; }

void binary(BinaryOp op, const ConstTensorView& a, const ConstTensorView& b, const TensorView& out) noexcept {
  const DType native = native_dtype(a.dtype());
  const TileOperand operands[] = {{&a, native}, {&b, native}};
  run(op, operands, 2, out);
}

void unary(UnaryOp op, const ConstTensorView& x, const TensorView& out) noexcept {
  const TileOperand operand = {&x, native_dtype(x.dtype())};
  run(op, &operand, 1, out);
}

void select(const ConstTensorView& condition, const ConstTensorView& a, const ConstTensorView& b,
            const TensorView& out) noexcept {
  const DType dtype = out.dtype();
  const std::size_t bytes = size_of(dtype);
  const TileOperand operands[] = {{&condition, boolean}, {&a, dtype}, {&b, dtype}};
  run_tiles(loops().select[bytes == 8 ? 3 : bytes / 2], operands, 3, out, dtype, kLightGrain);
}

void copy(const ConstTensorView& x, const TensorView& out) noexcept {
  const TileOperand operand = {&x, x.dtype()};
  run_tiles(cast_loop(x.dtype(), out.dtype()), &operand, 1, out, out.dtype(), kLightGrain);
}

}  // namespace plimsoll
