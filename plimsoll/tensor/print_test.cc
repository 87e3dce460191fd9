#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "plimsoll/tensor/tensor_testing.h"

namespace plimsoll {
namespace {

std::string values_of(const Tensor& tensor) {
  const std::string text = to_string(tensor);
  const std::size_t begin = text.find("values=") + 7;
  return text.substr(begin, text.size() - begin - 1);
}

template <Element T>
Tensor counting(const Shape& shape) {
  Tensor made = make_tensor({.op = "counting"}, shape, kDTypeOf<T>, current_device());
  const HostWrite to(made);
  const auto elements = to.span<T>();
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<T>(i);
  return made;
}

TEST(PrintTensor, ShowsShapeDtypeDeviceAndNestedValues) {
  const Tensor matrix = tensor_of<float>({2, 2}, {1, 2, 3, 4});
  std::ostringstream out;
  out << matrix;
  EXPECT_EQ(out.str(), "<Tensor: shape=(2, 2), dtype=float32, device=CPU:0, values=[[1, 2], [3, 4]]>");
  EXPECT_EQ(to_string(matrix), out.str());
}

TEST(PrintTensor, LeavesOutANameThatWasSet) {
  const Tensor named = tensor_of<float>({1}, {1});
  set_name(named, "matrix");
  EXPECT_EQ(to_string(named), "<Tensor: shape=(1,), dtype=float32, device=CPU:0, values=[1]>");
}

TEST(PrintTensor, ShowsAScalarPlainly) {
  EXPECT_EQ(to_string(tensor_of<int>(Shape::scalar(), {-7})),
            "<Tensor: shape=(), dtype=int32, device=CPU:0, values=-7>");
}

TEST(PrintTensor, WritesEveryDtypeAsNumbersOrTruthValues) {
  EXPECT_EQ(values_of(tensor_of<bool>({2}, {true, false})), "[true, false]");
  EXPECT_EQ(values_of(tensor_of<std::uint8_t>({2}, {65, 255})), "[65, 255]");
  EXPECT_EQ(values_of(tensor_of<std::int8_t>({2}, {-65, 127})), "[-65, 127]");
  EXPECT_EQ(values_of(tensor_of<std::int64_t>({1}, {std::numeric_limits<std::int64_t>::min()})),
            "[-9223372036854775808]");
  EXPECT_EQ(values_of(tensor_of<float16>({2}, {float16(0.333f), float16(65504.f)})), "[0.333, 6.55e+04]");
  EXPECT_EQ(values_of(tensor_of<bfloat16>({2}, {bfloat16(0.5f), bfloat16(3.14f)})), "[0.5, 3.14]");
  EXPECT_EQ(values_of(tensor_of<double>({2}, {0.1, 1e300})), "[0.1, 1e+300]");
}

TEST(PrintTensor, WritesWhatIsNotANumberOrNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(values_of(tensor_of<float>({4}, {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity, -0.f})),
            "[nan, inf, -inf, -0]");
}

TEST(PrintTensor, SaysWhenATensorIsDisposedOrNone) {
  const Tensor gone = tensor_of<float>({2}, {1, 2});
  gone.dispose();
  EXPECT_EQ(to_string(gone), "<Tensor: shape=(2,), dtype=float32, disposed>");
  EXPECT_EQ(to_string(Tensor()), "<Tensor: none>");
}

TEST(PrintTensor, ShowsNoValuesOfATensorWithoutElements) {
  EXPECT_EQ(to_string(tensor_of<float>({3, 0}, {})), "<Tensor: shape=(3, 0), dtype=float32, device=CPU:0, values=[]>");
}

TEST(PrintTensor, ShowsUpToAThousandElementsWhole) {
  EXPECT_EQ(values_of(counting<int>({1000})).find("..."), std::string::npos);
  EXPECT_EQ(values_of(counting<int>({1001})), "[0, 1, 2, ..., 998, 999, 1000]");
}

TEST(PrintTensor, SummarisesEveryLongAxis) {
  EXPECT_EQ(values_of(counting<int>({3, 500})),
            "[[0, 1, 2, ..., 497, 498, 499], [500, 501, 502, ..., 997, 998, 999], "
            "[1000, 1001, 1002, ..., 1497, 1498, 1499]]");
  EXPECT_EQ(values_of(counting<int>({600, 2})),
            "[[0, 1], [2, 3], [4, 5], ..., [1194, 1195], [1196, 1197], [1198, 1199]]");
}

TEST(PrintTensor, StaysShortWithManyAxes) {
  const std::string text = values_of(counting<std::uint8_t>({4, 4, 4, 4, 4, 4, 4, 4, 4}));
  EXPECT_LT(text.size(), 8000u);
  EXPECT_NE(text.find("..."), std::string::npos);
}

}  // namespace
}  // namespace plimsoll
