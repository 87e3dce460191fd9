#include "plimsoll/kernels/internal/casts.h"

#include <array>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace plimsoll::internal {
namespace {

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

template <class To, class Float>
To truncated(Float x) noexcept {
  constexpr Float kLow = static_cast<Float>(std::numeric_limits<To>::min());
  constexpr Float kBeyond = -kLow + (kLow == 0 ? static_cast<Float>(std::numeric_limits<To>::max()) + 1 : Float(0));
  if (!(x > kLow - 1 || x >= kLow)) return x != x ? To(0) : std::numeric_limits<To>::min();
  return x >= kBeyond ? std::numeric_limits<To>::max() : static_cast<To>(x);
}

template <class To, class From>
To converted(From x) noexcept {
  if constexpr (kIsHalf<From>)
    return converted<To>(static_cast<float>(x));
  else if constexpr (std::is_same_v<To, bool>)
    return x != From(0);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    return truncated<To>(x);
  else
    return static_cast<To>(x);
}

template <class From, class To>
void convert(const void* const* in, void* out, std::int64_t n) {
  const auto* x = static_cast<const From*>(in[0]);
  auto* y = static_cast<To*>(out);
  if constexpr (std::is_same_v<From, To>) {
    if (n > 0) std::memmove(y, x, static_cast<std::size_t>(n) * sizeof(To));
  } else {
    for (std::int64_t i = 0; i < n; ++i) y[i] = converted<To>(x[i]);
  }
}

template <std::size_t... Is>
constexpr std::array<Loop, sizeof...(Is)> all_casts(std::index_sequence<Is...>) noexcept {
  return {
      convert<ElementType<static_cast<DType>(Is / kNumDTypes)>, ElementType<static_cast<DType>(Is % kNumDTypes)>>...};
}
constexpr auto kCasts = all_casts(std::make_index_sequence<kNumDTypes * kNumDTypes>{});

}  // namespace

Loop cast_loop(DType from, DType to) noexcept {
  if (from == f16 && to == f32) return loops().f16_to_f32;
  if (from == f32 && to == f16) return loops().f32_to_f16;
  if (from == bf16 && to == f32) return loops().bf16_to_f32;
  if (from == f32 && to == bf16) return loops().f32_to_bf16;
  return kCasts[static_cast<std::size_t>(from) * kNumDTypes + static_cast<std::size_t>(to)];
}

}  // namespace plimsoll::internal
