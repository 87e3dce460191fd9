#include "plimsoll/base/dtype.h"

#include <fmt/format.h>

#include <array>
#include <ostream>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

struct Names {
  const char* full;
  const char* brief;
};
constexpr std::array<Names, kNumDTypes> kNames = {{{"bool", "boolean"},
                                                   {"uint8", "u8"},
                                                   {"int8", "i8"},
                                                   {"int16", "i16"},
                                                   {"int32", "i32"},
                                                   {"int64", "i64"},
                                                   {"float16", "f16"},
                                                   {"bfloat16", "bf16"},
                                                   {"float32", "f32"},
                                                   {"float64", "f64"}}};

}  // namespace

const char* dtype_name(DType dtype) noexcept { return kNames[static_cast<std::size_t>(dtype)].full; }
std::string to_string(DType dtype) { return dtype_name(dtype); }
std::ostream& operator<<(std::ostream& out, DType dtype) { return out << dtype_name(dtype); }

DType parse_dtype(std::string_view name) {
  for (std::size_t i = 0; i < kNumDTypes; ++i)
    if (name == kNames[i].full || name == kNames[i].brief) return static_cast<DType>(i);
  throw InvalidArgument(fmt::format(
      "dtype \"{}\": unknown; use bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32 or float64",
      name));
}

}  // namespace plimsoll
