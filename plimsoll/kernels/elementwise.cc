#include "plimsoll/kernels/elementwise.h"

#include <tuple>

#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/casts.h"
#include "plimsoll/kernels/internal/loops.h"
#include "plimsoll/kernels/internal/tiles.h"

namespace plimsoll::internal {
namespace {

struct Facts {
  const char* name;
  bool gives_bool, is_heavy;
};

constexpr bool gives_bool(const char* result) noexcept { return result[0] == 'B'; }

constexpr Facts kUnaryFacts[] = {
#define PLIMSOLL_UNARY(name, types, result, value) {#name, gives_bool(#result), false},
#define PLIMSOLL_MATH(name, vector_value, double_value) {#name, false, true},
#include "plimsoll/kernels/unary_ops.inc"
};
constexpr Facts kBinaryFacts[] = {
#define PLIMSOLL_BINARY(name, types, result, value) {#name, gives_bool(#result), false},
#define PLIMSOLL_BINARY_MATH(name, value) {#name, false, true},
#include "plimsoll/kernels/binary_ops.inc"
};
constexpr Facts kTernaryFacts[] = {
#define PLIMSOLL_TERNARY(name, types, result, value) {#name, gives_bool(#result), false},
#include "plimsoll/kernels/ternary_ops.inc"
};

const Facts& facts(UnaryOp op) noexcept { return kUnaryFacts[static_cast<std::size_t>(op)]; }
const Facts& facts(BinaryOp op) noexcept { return kBinaryFacts[static_cast<std::size_t>(op)]; }
const Facts& facts(TernaryOp op) noexcept { return kTernaryFacts[static_cast<std::size_t>(op)]; }
const Loop* loops_of(UnaryOp op, DType dtype) noexcept {
  return loops().unary[static_cast<std::size_t>(op)][native_type(dtype)];
}
const Loop* loops_of(BinaryOp op, DType dtype) noexcept {
  return loops().binary[static_cast<std::size_t>(op)][native_type(dtype)];
}
const Loop* loops_of(TernaryOp op, DType dtype) noexcept {
  return loops().ternary[static_cast<std::size_t>(op)][native_type(dtype)];
}

// For few elements, none to convert, gather or repeat: one call of a loop. False when that is not enough.
template <class... Views>
inline bool run_small(const Loop* loops, const TensorView& out, const Views&... operands) noexcept {
  const std::size_t n = out.size();
  if (n > kSmall) return false;
  const void* in[] = {operands.bytes()...};
  Loop loop = loops[0];
  if (((operands.size() != n) || ...)) {
    unsigned repeated = 0, bit = 1;
    if (((operands.size() != n && operands.size() != 1) || ...)) return false;
    ((repeated |= operands.size() != n ? bit : 0, bit *= 2), ...);
    loop = loops[repeated];
  }
  if (loop == nullptr) return false;
  loop(in, out.bytes(), static_cast<std::int64_t>(n));
  return true;
}

template <class Op, class... Views>
[[gnu::noinline]] void run_large(Op op, const Loop* loops, const TensorView& out, const Views&... operands) noexcept {
  PLIMSOLL_CHECK(loops[0] != nullptr);
  const DType native = native_dtype(std::get<0>(std::tie(operands...)).dtype());
  const TileOperand sources[] = {{&operands, native}...};
  run_tiles(loops, sources, sizeof...(operands), out, facts(op).gives_bool ? boolean : native,
            facts(op).is_heavy ? kHeavyGrain : kLightGrain);
}

template <class Op, class... Views>
inline void run(Op op, const TensorView& out, const ConstTensorView& first, const Views&... others) noexcept {
  const DType dtype = first.dtype();
  const Loop* const loops = loops_of(op, dtype);
  if (native_dtype(dtype) != dtype || !run_small(loops, out, first, others...))
    run_large(op, loops, out, first, others...);
}

}  // namespace

const char* op_name(UnaryOp op) noexcept { return facts(op).name; }
const char* op_name(BinaryOp op) noexcept { return facts(op).name; }
const char* op_name(TernaryOp op) noexcept { return facts(op).name; }
bool is_supported(UnaryOp op, DType dtype) noexcept { return loops_of(op, dtype)[0] != nullptr; }
bool is_supported(BinaryOp op, DType dtype) noexcept { return loops_of(op, dtype)[0] != nullptr; }
bool is_supported(TernaryOp op, DType dtype) noexcept { return loops_of(op, dtype)[0] != nullptr; }
DType result_dtype(UnaryOp op, DType dtype) noexcept { return facts(op).gives_bool ? boolean : dtype; }
DType result_dtype(BinaryOp op, DType dtype) noexcept { return facts(op).gives_bool ? boolean : dtype; }
DType result_dtype(TernaryOp op, DType dtype) noexcept { return facts(op).gives_bool ? boolean : dtype; }

void unary(UnaryOp op, const ConstTensorView& x, const TensorView& out) noexcept { run(op, out, x); }

void binary(BinaryOp op, const ConstTensorView& a, const ConstTensorView& b, const TensorView& out) noexcept {
  run(op, out, a, b);
}

void unary(UnaryOp op, DType dtype, const void* x, void* out, std::size_t size) noexcept {
  const Loop loop = loops_of(op, dtype)[0];
  if (size <= kSmall && native_dtype(dtype) == dtype) [[likely]]
    return loop(&x, out, static_cast<std::int64_t>(size));
  const Shape shape({size});
  unary(op, ConstTensorView(x, 0, dtype, shape), TensorView(out, 0, result_dtype(op, dtype), shape));
}

void binary(BinaryOp op, DType dtype, FlatOperand a, FlatOperand b, void* out, std::size_t size) noexcept {
  const unsigned repeated = (a.repeated ? 1u : 0u) + (b.repeated ? 2u : 0u);
  const Loop loop = loops_of(op, dtype)[repeated];
  if (size <= kSmall && native_dtype(dtype) == dtype && loop) [[likely]] {
    const void* const in[] = {a.data, b.data};
    return loop(in, out, static_cast<std::int64_t>(size));
  }
  const Shape all({size}), one = Shape::scalar();
  binary(op, ConstTensorView(a.data, 0, dtype, a.repeated ? one : all),
         ConstTensorView(b.data, 0, dtype, b.repeated ? one : all), TensorView(out, 0, result_dtype(op, dtype), all));
}

void ternary(TernaryOp op, const ConstTensorView& a, const ConstTensorView& b, const ConstTensorView& c,
             const TensorView& out) noexcept {
  run(op, out, a, b, c);
}

void select(const ConstTensorView& condition, const ConstTensorView& a, const ConstTensorView& b,
            const TensorView& out) noexcept {
  const DType dtype = out.dtype();
  const Loop* const set = loops().select[size_index(dtype)];
  if (run_small(set, out, condition, a, b)) return;
  const TileOperand operands[] = {{&condition, boolean}, {&a, dtype}, {&b, dtype}};
  run_tiles(set, operands, 3, out, dtype, kLightGrain);
}

void copy(const ConstTensorView& x, const TensorView& out) noexcept {
  const Loop loops[] = {cast_loop(x.dtype(), out.dtype()), nullptr};
  if (x.size() == 1 && out.size() != 1) {
    alignas(8) std::byte element[8];
    const void* in = x.bytes();
    loops[0](&in, element, 1);
    const std::size_t size = size_of(out.dtype());
    const Loop fill = plimsoll::loops().fill[size_index(out.dtype())];
    in = element;
    return parallel_for(static_cast<std::int64_t>(out.size()), kLightGrain, [&](std::int64_t begin, std::int64_t end) {
      fill(&in, out.bytes() + static_cast<std::size_t>(begin) * size, end - begin);
    });
  }
  if (run_small(loops, out, x)) return;
  const TileOperand operand = {&x, x.dtype()};
  run_tiles(loops, &operand, 1, out, out.dtype(), kLightGrain);
}

}  // namespace plimsoll::internal
