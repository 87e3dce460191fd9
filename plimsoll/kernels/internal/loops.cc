// Compiled once per instruction set: see instruction_sets.h.
#include "plimsoll/kernels/internal/loops.h"
#include "plimsoll/kernels/internal/loop_bodies.h"
#include "plimsoll/kernels/internal/power_loops.h"
#include "plimsoll/kernels/internal/scalar_math.h"
#include "plimsoll/kernels/internal/vector_math.h"
#include "plimsoll/kernels/internal/vector_math_f64.h"

namespace plimsoll::internal {
namespace {

struct Numbers {
  template <class T>
  static constexpr bool kHas = !std::is_same_v<T, Bool>;
};
struct Floats {
  template <class T>
  static constexpr bool kHas = std::is_floating_point_v<T>;
};
struct All {
  template <class T>
  static constexpr bool kHas = true;
};

#define PLIMSOLL_UNARY(name, types, result, expression) \
  struct Unary_##name {                                 \
    static constexpr bool kIsMath = false;              \
    using Types = types;                                \
    template <class T>                                  \
    using Result = result;                              \
    template <class T>                                  \
    static Result<T> value(T x) noexcept {              \
      return static_cast<Result<T>>(expression);        \
    }                                                   \
  };
#define PLIMSOLL_MATH(name, vector_value, double_value)                         \
  struct Unary_##name {                                                         \
    static constexpr bool kIsMath = true;                                       \
    using Types = Floats;                                                       \
    template <class T>                                                          \
    using Result = T;                                                           \
    static F32 value(F32 x) noexcept { return vector_value; }                   \
    template <class T>                                                          \
    static auto value(T x) noexcept -> decltype(static_cast<T>(double_value)) { \
      return double_value;                                                      \
    }                                                                           \
  };
#include "plimsoll/kernels/unary_ops.inc"

#define PLIMSOLL_BINARY(name, types, result, expression) \
  struct Binary_##name {                                 \
    static constexpr bool kIsMath = false;               \
    using Types = types;                                 \
    template <class T>                                   \
    using Result = result;                               \
    template <class T>                                   \
    static Result<T> value(T a, T b) noexcept {          \
      return static_cast<Result<T>>(expression);         \
    }                                                    \
  };
#define PLIMSOLL_BINARY_MATH(name, expression)                                     \
  struct Binary_##name {                                                           \
    static constexpr bool kIsMath = true;                                          \
    using Types = Floats;                                                          \
    template <class T>                                                             \
    using Result = T;                                                              \
    template <class T>                                                             \
    static auto value(T a, T b) noexcept -> decltype(static_cast<T>(expression)) { \
      return expression;                                                           \
    }                                                                              \
  };
#include "plimsoll/kernels/binary_ops.inc"

#define PLIMSOLL_TERNARY(name, types, result, expression) \
  struct Ternary_##name {                                 \
    using Types = types;                                  \
    template <class T>                                    \
    using Result = result;                                \
    template <class T>                                    \
    static Result<T> value(T a, T b, T c) noexcept {      \
      return static_cast<Result<T>>(expression);          \
    }                                                     \
  };
#include "plimsoll/kernels/ternary_ops.inc"

template <class T>
void power_by_number_loop(const void* const* in, void* out, std::int64_t n) {
  if (short_power_loop<T>(in, out, n)) return;
  if constexpr (std::is_same_v<T, float>)
    binary_math_loop<PowerOfVectors, float, 2>(in, out, n);
  else
    binary_loop<Binary_power, T, 2>(in, out, n);
}

// An operation on elements, or one on vectors: always of floats, of doubles where it can be.
template <class Op, class T>
inline constexpr bool kTakesVector = requires {
  Op::value(Vector<T>{});
};
template <class Op, class T>
inline constexpr bool kTakesVectors = requires {
  Op::value(Vector<T>{}, Vector<T>{});
};

template <class Op, class T>
constexpr Loop unary_of() noexcept {
  if constexpr (!Op::Types::template kHas<T>)
    return nullptr;
  else if constexpr (Op::kIsMath && kTakesVector<Op, T>)
    return unary_math_loop<Op, T>;
  else
    return unary_loop<Op, T>;
}

template <class Op, class T, unsigned kRepeated>
constexpr Loop binary_of() noexcept {
  if constexpr (!Op::Types::template kHas<T>)
    return nullptr;
  else if constexpr (std::is_same_v<Op, Binary_power> && std::is_floating_point_v<T> && kRepeated == 2)
    return power_by_number_loop<T>;
  else if constexpr (std::is_same_v<Op, Binary_power> && std::is_same_v<T, float>)
    return binary_math_loop<PowerOfVectors, float, kRepeated>;
  else if constexpr (Op::kIsMath && kTakesVectors<Op, T>)
    return binary_math_loop<Op, T, kRepeated>;
  else
    return binary_loop<Op, T, kRepeated>;
}

template <class Op, class T, unsigned kRepeated>
constexpr Loop ternary_of() noexcept {
  if constexpr (Op::Types::template kHas<T>)
    return ternary_loop<Op, T, kRepeated>;
  else
    return nullptr;
}

#define PLIMSOLL_UNARY_SET(op, T) \
  { unary_of<op, T>() }
#define PLIMSOLL_BINARY_SET(op, T) \
  { binary_of<op, T, 0>(), binary_of<op, T, 1>(), binary_of<op, T, 2>() }
#define PLIMSOLL_TERNARY_SET(op, T) \
  { ternary_of<op, T, 0>(), nullptr, nullptr, nullptr, ternary_of<op, T, 4>(), nullptr, ternary_of<op, T, 6>() }
#define PLIMSOLL_SELECT_SET(T) \
  { select_loop<T, 0>, nullptr, select_loop<T, 2>, nullptr, select_loop<T, 4>, nullptr, select_loop<T, 6> }
#define PLIMSOLL_STRING_OF(name) #name
#define PLIMSOLL_NAME_OF(set) PLIMSOLL_STRING_OF(set)
// In the order of NativeType.
#define PLIMSOLL_ROW(set, op) \
  { set(op, float), set(op, double), set(op, std::int32_t), set(op, std::int64_t), set(op, Bool) }

}  // namespace

constinit const Loops PLIMSOLL_INSTRUCTION_SET::loops = {
    PLIMSOLL_NAME_OF(PLIMSOLL_INSTRUCTION_SET),
    {
#define PLIMSOLL_UNARY(name, types, result, value) PLIMSOLL_ROW(PLIMSOLL_UNARY_SET, Unary_##name),
#include "plimsoll/kernels/unary_ops.inc"
    },
    {
#define PLIMSOLL_BINARY(name, types, result, value) PLIMSOLL_ROW(PLIMSOLL_BINARY_SET, Binary_##name),
#include "plimsoll/kernels/binary_ops.inc"
    },
    {
#define PLIMSOLL_TERNARY(name, types, result, value) PLIMSOLL_ROW(PLIMSOLL_TERNARY_SET, Ternary_##name),
#include "plimsoll/kernels/ternary_ops.inc"
    },
    {PLIMSOLL_SELECT_SET(std::uint8_t), PLIMSOLL_SELECT_SET(std::uint16_t), PLIMSOLL_SELECT_SET(std::uint32_t),
     PLIMSOLL_SELECT_SET(std::uint64_t)},
    {fill_loop<std::uint8_t>, fill_loop<std::uint16_t>, fill_loop<std::uint32_t>, fill_loop<std::uint64_t>},
    half_loop<float16, float>,
    half_loop<float, float16>,
    half_loop<bfloat16, float>,
    half_loop<float, bfloat16>};

}  // namespace plimsoll::internal
