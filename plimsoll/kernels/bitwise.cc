#include "plimsoll/kernels/bitwise.h"

#include <algorithm>
#include <type_traits>

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/internal/broadcast.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kGrain = 1 << 15;

template <class T>
T shifted(T value, T by, bool left) noexcept {
  constexpr int kBits = sizeof(T) * 8;
  using Unsigned = std::make_unsigned_t<T>;
  const bool all = by < 0 || static_cast<std::uint64_t>(by) >= kBits;
  if (left) return all ? T(0) : static_cast<T>(static_cast<Unsigned>(value) << by);
  return all ? (std::is_signed_v<T> && value < 0 ? T(-1) : T(0)) : static_cast<T>(value >> by);
}

template <class T, class F>
void run_rows(const ConstTensorView& a, const ConstTensorView& b, const TensorView& out, F f) noexcept {
  const Sizes shapes[] = {a.shape().sizes(), b.shape().sizes()};
  const Broadcast plan = plan_broadcast(shapes, 2, out.shape().sizes());
  const std::int64_t step_a = plan.inner_stride(0), step_b = plan.inner_stride(1);
  parallel_for(static_cast<std::int64_t>(out.size()), kGrain, [&](std::int64_t begin, std::int64_t end) {
    BroadcastCursor cursor(plan, 2, begin);
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t n = std::min(cursor.left_in_row(), end - at);
      const T *x = a.data<T>() + cursor.offset(0), *y = b.data<T>() + cursor.offset(1);
      T* to = out.data<T>() + at;
      for (std::int64_t i = 0; i < n; ++i) to[i] = f(x[i * step_a], y[i * step_b]);
      cursor.advance(n);
      at += n;
    }
  });
}

template <class T>
void run(BitwiseOp op, const ConstTensorView& a, const ConstTensorView& b, const TensorView& out) noexcept {
  switch (op) {
    case BitwiseOp::bit_and:
      return run_rows<T>(a, b, out, [](T x, T y) { return static_cast<T>(x & y); });
    case BitwiseOp::bit_or:
      return run_rows<T>(a, b, out, [](T x, T y) { return static_cast<T>(x | y); });
    case BitwiseOp::bit_xor:
      return run_rows<T>(a, b, out, [](T x, T y) { return static_cast<T>(x ^ y); });
    case BitwiseOp::shift_left:
      return run_rows<T>(a, b, out, [](T x, T y) { return shifted(x, y, true); });
    case BitwiseOp::shift_right:
      return run_rows<T>(a, b, out, [](T x, T y) { return shifted(x, y, false); });
  }
}

}  // namespace

void bitwise(BitwiseOp op, const ConstTensorView& a, const ConstTensorView& b, const TensorView& out) noexcept {
  if (out.size() == 0) return;
  switch (size_of(out.dtype())) {
    case 1:
      return out.dtype() == i8 ? run<std::int8_t>(op, a, b, out) : run<std::uint8_t>(op, a, b, out);
    case 2:
      return run<std::int16_t>(op, a, b, out);
    case 4:
      return run<std::int32_t>(op, a, b, out);
    default:
      return run<std::int64_t>(op, a, b, out);
  }
}

}  // namespace plimsoll::internal
