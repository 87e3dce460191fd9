// DType: the element types a tensor can have, and the map between them and C++ types.
//
//   DType d = f32;                       // The constants are plimsoll::boolean, u8, i8, ... f64.
//   size_of(d)                           // 4
//   to_string(d)                         // "float32"; parse_dtype("float32") == f32
//   kDTypeOf<double>                     // f64
//   visit_dtype(d, [&]<class T>(TypeTag<T>) { fill<T>(view); });
//
// Thread safety: values only. Cost: every function but parse_dtype and to_string compiles to a table or less.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>

#include "plimsoll/base/api.h"
#include "plimsoll/base/half.h"

namespace plimsoll {

// The numbers are part of our trace files: never reuse one, add at the end.
enum class DType : std::uint8_t { boolean, u8, i8, i16, i32, i64, f16, bf16, f32, f64 };
using enum DType;
inline constexpr std::size_t kNumDTypes = 10;

// Bytes of one element.
constexpr std::size_t size_of(DType dtype) noexcept {
  constexpr std::uint8_t kSizes[kNumDTypes] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
  return kSizes[static_cast<std::size_t>(dtype)];
}

constexpr bool is_floating(DType dtype) noexcept { return dtype >= f16; }
constexpr bool is_integer(DType dtype) noexcept { return dtype >= u8 && dtype <= i64; }
constexpr bool is_signed(DType dtype) noexcept { return dtype >= i8; }
constexpr bool is_half(DType dtype) noexcept { return dtype == f16 || dtype == bf16; }

// TensorFlow's names: "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64".
// The pointer is to a constant.
PLIMSOLL_API const char* dtype_name(DType dtype) noexcept;
PLIMSOLL_API std::string to_string(DType dtype);
PLIMSOLL_API std::ostream& operator<<(std::ostream& out, DType dtype);

// Reads what to_string() writes, and our short names ("f32", "boolean"). Throws InvalidArgument for anything else.
PLIMSOLL_API DType parse_dtype(std::string_view name);

template <class T>
struct TypeTag {
  using type = T;
};

// Calls `f(TypeTag<T>{})` with the C++ type of `dtype` and returns its result.
template <class F>
constexpr decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case boolean:
      return f(TypeTag<bool>{});
    case u8:
      return f(TypeTag<std::uint8_t>{});
    case i8:
      return f(TypeTag<std::int8_t>{});
    case i16:
      return f(TypeTag<std::int16_t>{});
    case i32:
      return f(TypeTag<std::int32_t>{});
    case i64:
      return f(TypeTag<std::int64_t>{});
    case f16:
      return f(TypeTag<float16>{});
    case bf16:
      return f(TypeTag<bfloat16>{});
    case f32:
      return f(TypeTag<float>{});
    case f64:
      break;
  }
  return f(TypeTag<double>{});
}

namespace dtype_detail {
template <class T>
consteval int index_of() {
  if constexpr (std::same_as<T, bool>) return static_cast<int>(boolean);
  if constexpr (std::same_as<T, float16>) return static_cast<int>(f16);
  if constexpr (std::same_as<T, bfloat16>) return static_cast<int>(bf16);
  if constexpr (std::same_as<T, float>) return static_cast<int>(f32);
  if constexpr (std::same_as<T, double>) return static_cast<int>(f64);
  if constexpr (std::same_as<T, std::uint8_t>) return static_cast<int>(u8);
  if constexpr (std::same_as<T, std::int8_t>) return static_cast<int>(i8);
  if constexpr (std::same_as<T, short>) return static_cast<int>(i16);
  if constexpr (std::same_as<T, int>) return static_cast<int>(i32);
  if constexpr (std::same_as<T, long> || std::same_as<T, long long>) return static_cast<int>(i64);
  return -1;
}

template <DType D>
consteval auto tag_of() {
  if constexpr (D == boolean) return TypeTag<bool>{};
  if constexpr (D == u8) return TypeTag<std::uint8_t>{};
  if constexpr (D == i8) return TypeTag<std::int8_t>{};
  if constexpr (D == i16) return TypeTag<std::int16_t>{};
  if constexpr (D == i32) return TypeTag<std::int32_t>{};
  if constexpr (D == i64) return TypeTag<std::int64_t>{};
  if constexpr (D == f16) return TypeTag<float16>{};
  if constexpr (D == bf16) return TypeTag<bfloat16>{};
  if constexpr (D == f32) return TypeTag<float>{};
  if constexpr (D == f64) return TypeTag<double>{};
}
}  // namespace dtype_detail

// The C++ types that can be elements: bool, std::(u)int8_t, int16_t, int32_t, int64_t (long and long long alike),
// float16, bfloat16, float, double.
template <class T>
concept Element = dtype_detail::index_of<std::remove_cv_t<T>>()
>= 0;

template <Element T>
inline constexpr DType kDTypeOf = static_cast<DType>(dtype_detail::index_of<std::remove_cv_t<T>>());

// The C++ type of a dtype known at compile time: ElementType<f32> is float.
template <DType D>
using ElementType = typename decltype(dtype_detail::tag_of<D>())::type;

}  // namespace plimsoll
