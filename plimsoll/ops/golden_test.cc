// Every case of testdata/golden/ops.json, which tools/golden writes with NumPy.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "plimsoll/base/json.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/order.h"
#include "plimsoll/ops/reduce.h"
#include "plimsoll/ops/softmax.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

using Json = nlohmann::json;
using Tensors = std::vector<Tensor>;
using Case = std::function<Tensor(const Tensors&, const Json&)>;

double number_of(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (!value.is_string()) return value.get<double>();
  return value == "nan" ? std::nan("") : value == "inf" ? HUGE_VAL : -HUGE_VAL;
}

Tensor tensor_of(const Json& json) {
  std::vector<double> values;
  for (const Json& value : json["data"]) values.push_back(number_of(value));
  const Shape shape(json["shape"].get<std::vector<std::int64_t>>());
  return from_vector(values, shape).cast(parse_dtype(json["dtype"].get<std::string>()));
}

// What a rounding more or less may change, relative to the result.
double tolerance_of(DType dtype, const std::string& op) {
  const bool sums = op == "matmul" || op == "cumsum" || op == "sum" || op == "mean" || op == "prod";
  switch (dtype) {
    case f16:
      return 1e-3;
    case bf16:
      return 8e-3;
    case f32:
      return sums ? 2e-6 : 1e-6;
    case f64:
      return 1e-13;
    default:
      return 0;
  }
}

std::vector<std::int64_t> list(const Json& json) { return json.get<std::vector<std::int64_t>>(); }

using Pair = Tensor (*)(const Tensor&, const Tensor&);
using Single = Tensor (*)(Tensor);
using Reduction = Tensor (Tensor::*)(const Axes&, ReduceOptions) const;

std::map<std::string, Case> all_cases() {
  std::map<std::string, Case> cases;
  const auto pair = [&](const char* name, Pair f) {
    cases[name] = [f](const Tensors& x, const Json&) { return f(x[0], x[1]); };
  };
  const auto single = [&](const char* name, Single f) {
    cases[name] = [f](const Tensors& x, const Json&) { return f(x[0]); };
  };
  const auto reduction = [&](const char* name, Reduction f) {
    cases[name] = [f](const Tensors& x, const Json& a) {
      return (x[0].*f)(Axes(list(a["axes"])), {a["keep_dims"].get<bool>()});
    };
  };
#define PLIMSOLL_UNARY_OP(name, reads, gradient) single(#name, name);
#define PLIMSOLL_BINARY_OP(name, reads_for_a, gradient_of_a, reads_for_b, gradient_of_b) pair(#name, name);
#include "plimsoll/ops/elementwise_ops.inc"
  reduction("sum", &Tensor::sum), reduction("mean", &Tensor::mean), reduction("prod", &Tensor::prod);
  reduction("max", &Tensor::max), reduction("min", &Tensor::min);
  reduction("any", &Tensor::any), reduction("all", &Tensor::all);
  return cases;
}

void add_movement(std::map<std::string, Case>& cases) {
  cases["argmax"] = [](const Tensors& x, const Json& a) { return x[0].argmax(a["axis"]); };
  cases["argmin"] = [](const Tensors& x, const Json& a) { return x[0].argmin(a["axis"]); };
  cases["cumsum"] = [](const Tensors& x, const Json& a) { return cumsum(x[0], a["axis"].get<std::int64_t>()); };
  cases["softmax"] = [](const Tensors& x, const Json&) { return softmax(x[0]); };
  cases["log_softmax"] = [](const Tensors& x, const Json&) { return log_softmax(x[0]); };
  cases["transpose"] = [](const Tensors& x, const Json& a) { return x[0].transpose(list(a["permutation"])); };
  cases["slice"] = [](const Tensors& x, const Json& a) { return x[0].slice(list(a["begin"]), list(a["size"])); };
  cases["strided_slice"] = [](const Tensors& x, const Json& a) {
    return strided_slice(x[0], list(a["begin"]), list(a["end"]), list(a["strides"]));
  };
  cases["pad"] = [](const Tensors& x, const Json& a) {
    return pad(x[0], a["paddings"].get<std::vector<std::pair<std::int64_t, std::int64_t>>>());
  };
  cases["tile"] = [](const Tensors& x, const Json& a) { return tile(x[0], list(a["repeats"])); };
  cases["reverse"] = [](const Tensors& x, const Json& a) { return reverse(x[0], Axes(list(a["axes"]))); };
  cases["concat"] = [](const Tensors& x, const Json& a) { return concat(x, a["axis"].get<std::int64_t>()); };
  cases["stack"] = [](const Tensors& x, const Json& a) { return stack(x, a["axis"].get<std::int64_t>()); };
  cases["gather"] = [](const Tensors& x, const Json& a) { return gather(x[0], x[1], a["axis"].get<std::int64_t>()); };
  cases["boolean_mask"] = [](const Tensors& x, const Json&) { return boolean_mask(x[0], x[1]); };
  cases["where"] = [](const Tensors& x, const Json&) { return where(x[0], x[1], x[2]); };
  cases["one_hot"] = [](const Tensors& x, const Json& a) { return one_hot(x[0], a["depth"].get<std::int64_t>()); };
  cases["matmul"] = [](const Tensors& x, const Json& a) {
    return matmul(x[0], x[1], {a["transpose_a"].get<bool>(), a["transpose_b"].get<bool>()});
  };
  cases["cast"] = [](const Tensors& x, const Json& a) { return x[0].cast(parse_dtype(a["to"].get<std::string>())); };
}

void expect_like(const Tensor& result, const Tensor& expected, const std::string& op, const std::string& what) {
  ASSERT_EQ(result.shape(), expected.shape()) << what;
  ASSERT_EQ(result.dtype(), expected.dtype()) << what;
  const double tolerance = tolerance_of(result.dtype(), op);
  const auto got = result.cast(f64).to_vector<double>(), want = expected.cast(f64).to_vector<double>();
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) {
      ASSERT_TRUE(std::isnan(got[i])) << what << " element " << i << " is " << got[i];
    } else if (got[i] != want[i]) {
      ASSERT_NEAR(got[i], want[i], tolerance * std::max(1.0, std::abs(want[i]))) << what << " element " << i;
    }
  }
}

TEST(Golden, HasCasesOfEveryElementwiseOperation) {
  std::ifstream file(TEST_DATA "/golden/ops.json");
  std::set<std::string> known;
  for (const Json& one : parse_json(file)) known.insert(one["op"].get<std::string>());
#define PLIMSOLL_UNARY_OP(name, reads, gradient) EXPECT_TRUE(known.count(#name)) << #name " has no row in tools/golden";
#define PLIMSOLL_BINARY_OP(name, reads_for_a, gradient_of_a, reads_for_b, gradient_of_b) \
  EXPECT_TRUE(known.count(#name)) << #name " has no row in tools/golden";
#include "plimsoll/ops/elementwise_ops.inc"
}

TEST(Golden, EveryOperationGivesWhatNumPyGives) {
  std::ifstream file(TEST_DATA "/golden/ops.json");
  const Json all = parse_json(file);
  std::map<std::string, Case> cases = all_cases();
  add_movement(cases);
  const MemoryInfo before = memory();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Json& one = all[i];
    const auto op = one["op"].get<std::string>();
    const std::string what = "case " + std::to_string(i) + " " + op + " " + json_text(one["attributes"]) + " of " +
                             json_text(one["inputs"][0]["dtype"]) + json_text(one["inputs"][0]["shape"]);
    ASSERT_TRUE(cases.count(op)) << op;
    Tensors inputs;
    for (const Json& input : one["inputs"]) inputs.push_back(tensor_of(input));
    expect_like(cases[op](inputs, one["attributes"]), tensor_of(one["expected"]), op, what);
  }
  EXPECT_GT(all.size(), 900u);
  EXPECT_EQ(memory().num_tensors, before.num_tensors);
  EXPECT_EQ(memory().num_bytes, before.num_bytes);
}

}  // namespace
}  // namespace plimsoll
