#include <gtest/gtest.h>

#include <fstream>

#include "plimsoll/autograd/gradient_check_testing.h"
#include "plimsoll/base/json.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/reduce.h"

namespace plimsoll {
namespace {

// Every row of ops/elementwise_ops.inc, at the operands of its golden cases: those of f64 that are not empty. They lie
// where the operation is defined, and not at its kinks.
struct Row {
  std::string name;
  TensorFunction function;
};

std::vector<Row> all_rows() {
  std::vector<Row> rows;
#define PLIMSOLL_UNARY_OP(name, reads, gradient) rows.push_back({#name, [](const Tensors& x) { return name(x[0]); }});
#define PLIMSOLL_BINARY_OP(name, reads_for_a, gradient_of_a, reads_for_b, gradient_of_b) \
  rows.push_back({#name, [](const Tensors& x) { return name(x[0], x[1]); }});
#include "plimsoll/ops/elementwise_ops.inc"
  return rows;
}

std::vector<Tensors> golden_operands(const std::string& op) {
  std::ifstream file(TEST_DATA "/golden/ops.json");
  std::vector<Tensors> cases;
  for (std::string line; std::getline(file, line);) {  // A case is a line.
    if (line.find("\"op\":\"" + op + "\"") == std::string::npos) continue;
    if (line.back() == ',') line.pop_back();
    const nlohmann::json one = parse_json(line);
    Tensors operands;
    for (const auto& input : one["inputs"]) {
      const Shape shape(input["shape"].get<std::vector<std::int64_t>>());
      if (input["dtype"] != "float64" || shape.size() == 0) break;
      operands.push_back(from_vector(input["data"].get<std::vector<double>>(), shape));
    }
    if (!operands.empty() && operands.size() == one["inputs"].size()) cases.push_back(operands);
  }
  return cases;
}

class ElementwiseGradient : public testing::TestWithParam<Row> {};

TEST_P(ElementwiseGradient, AgreesWithDifferences) {
  const auto& [name, function] = GetParam();
  const Tensor one = from_vector(std::vector<double>{0.5}, {1});
  if (name.starts_with("logical") || function({one, one}).dtype() == boolean) return;  // There is none.
  const std::vector<Tensors> cases = golden_operands(name);
  EXPECT_FALSE(cases.empty()) << name << " has no f64 row in tools/golden";
  for (const Tensors& operands : cases) expect_gradients(function, operands);
}

INSTANTIATE_TEST_SUITE_P(All, ElementwiseGradient, testing::ValuesIn(all_rows()),
                         [](const auto& info) { return info.param.name; });

TEST(NumberGradient, AgreesWithDifferences) {
  const Tensor x = varied({2, 3}, 0.5, 2);
  expect_gradients([](const Tensors& t) { return (t[0] + 3) * 2 - 1; }, {x});
  expect_gradients([](const Tensors& t) { return 5 - t[0] / 3; }, {x});
  expect_gradients([](const Tensors& t) { return 5 / t[0]; }, {x});
  expect_gradients([](const Tensors& t) { return power(t[0], 3) + power(2, t[0]); }, {x});
  expect_gradients([](const Tensors& t) { return maximum(t[0], 1.1) + minimum(0.9, t[0]); }, {x});
  expect_gradients([](const Tensors& t) { return t[0] % 0.7; }, {x}, false);
}

TEST(SelectionGradient, AgreesWithDifferences) {
  const Tensor mask = constant({true, false, true});
  expect_gradients([&](const Tensors& x) { return where(mask, x[0], x[1] * x[1]); },
                   {varied({2, 3}), varied({2, 1}, -1, 1, 0.5)});
  expect_gradients([](const Tensors& x) { return clip(x[0] * x[0], 0.2, 0.6); }, {varied({7})});
  expect_gradients([](const Tensors& x) { return leaky_relu(x[0], 0.3f); }, {varied({7}, 0.2, 1)});
  expect_gradients([](const Tensors& x) { return leaky_relu(x[0], 0.25f); }, {varied({7}, -1, -0.2)});
  expect_gradients([](const Tensors& x) { return broadcast_to(x[0] * x[0], {4, 2, 3}); }, {varied({2, 1})});
  expect_gradients([](const Tensors& x) { return (x[0] * x[0]).cast(f64).reshape({3, 2}); }, {varied({2, 3})});
}

TEST(ReductionGradient, AgreesWithDifferences) {
  const Tensor x = varied({2, 3, 4}, 0.5, 2);
  for (const bool keep : {false, true}) {
    const ReduceOptions options{keep};
    expect_gradients([=](const Tensors& t) { return square(t[0]).sum({1}, options); }, {x});
    expect_gradients([=](const Tensors& t) { return square(t[0]).mean({0, 2}, options); }, {x});
    expect_gradients([=](const Tensors& t) { return square(t[0]).mean({}, options); }, {x});
    expect_gradients([=](const Tensors& t) { return t[0].prod({-1}, options); }, {x});
    expect_gradients([=](const Tensors& t) { return square(t[0]).max({1}, options); }, {x});
    expect_gradients([=](const Tensors& t) { return square(t[0]).min({0}, options); }, {x});
  }
}

TEST(ReductionGradient, OfAProductWithZerosIsExact) {
  const Tensor one_zero = constant({{2.0, 0.0, 3.0}}), two_zeros = constant({{0.0, 0.0, 3.0}});
  const auto df = grad([](const Tensor& x) { return x.prod({1}); });
  EXPECT_EQ(df(one_zero).to_vector<double>(), (std::vector<double>{0, 6, 0}));
  EXPECT_EQ(df(two_zeros).to_vector<double>(), (std::vector<double>{0, 0, 0}));
}

TEST(ReductionGradient, OfEqualLargestElementsIsShared) {
  const auto df = grad([](const Tensor& x) { return x.max(); });
  EXPECT_EQ(df(constant({1.0, 3.0, 3.0})).to_vector<double>(), (std::vector<double>{0, 0.5, 0.5}));
}

}  // namespace
}  // namespace plimsoll
