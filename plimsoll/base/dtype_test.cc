#include "plimsoll/base/dtype.h"

#include <gtest/gtest.h>

#include <sstream>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

static_assert(kDTypeOf<float> == f32 && kDTypeOf<const double> == f64 && kDTypeOf<bool> == boolean);
static_assert(kDTypeOf<long> == i64 && kDTypeOf<long long> == i64 && kDTypeOf<unsigned char> == u8);
static_assert(std::same_as<ElementType<bf16>, bfloat16> && std::same_as<ElementType<i16>, std::int16_t>);
static_assert(Element<float16> && !Element<unsigned> && !Element<char> && !Element<const char*>);
static_assert(plimsoll::f32 == DType::f32);

TEST(DType, ReadsBackTheNamesItPrints) {
  for (std::size_t i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(to_string(dtype)), dtype);
    std::ostringstream out;
    out << dtype;
    EXPECT_EQ(out.str(), dtype_name(dtype));
  }
  EXPECT_EQ(to_string(boolean), "bool");
  EXPECT_EQ(to_string(bf16), "bfloat16");
  EXPECT_EQ(parse_dtype("f32"), f32);
  EXPECT_EQ(parse_dtype("boolean"), boolean);
}

TEST(DType, RefusesUnknownNames) {
  for (const char* name : {"", "float", "Float32", "int4", "float32 "})
    EXPECT_THROW(parse_dtype(name), InvalidArgument);
}

TEST(DType, VisitsTheTypeWhoseSizeAndDTypeItHas) {
  for (std::size_t i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
      EXPECT_EQ(sizeof(T), size_of(dtype));
      EXPECT_EQ(kDTypeOf<T>, dtype);
    });
  }
}

TEST(DType, KnowsFloatingIntegerAndSignedKinds) {
  int floating = 0, integer = 0, with_sign = 0, half = 0;
  for (std::size_t i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    floating += is_floating(dtype);
    integer += is_integer(dtype);
    with_sign += is_signed(dtype);
    half += is_half(dtype);
    EXPECT_EQ(visit_dtype(dtype, []<class T>(TypeTag<T>) { return std::is_integral_v<T> && !std::same_as<T, bool>; }),
              is_integer(dtype));
  }
  EXPECT_EQ(floating, 4);
  EXPECT_EQ(integer, 5);
  EXPECT_EQ(with_sign, 8);
  EXPECT_EQ(half, 2);
}

}  // namespace
}  // namespace plimsoll
