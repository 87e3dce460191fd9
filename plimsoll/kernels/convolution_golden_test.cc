// Compares with NumPy: testdata/golden/network.txt, written by tools/golden_network.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "plimsoll/kernels/batch_norm.h"
#include "plimsoll/kernels/convolution.h"
#include "plimsoll/kernels/convolution_testing.h"
#include "plimsoll/kernels/group_norm.h"
#include "plimsoll/kernels/layer_norm.h"
#include "plimsoll/kernels/pooling.h"

namespace plimsoll {
namespace {

struct GoldenCase {
  std::string kind;
  std::vector<std::int64_t> numbers;
  std::map<std::string, std::vector<double>> results;
};

std::vector<GoldenCase> golden_cases(const std::string& kind) {
  std::ifstream file(TEST_DATA "/golden/network.txt");
  std::vector<GoldenCase> cases;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "case") {
      cases.emplace_back();
      words >> cases.back().kind;
      for (std::int64_t number; words >> number;) cases.back().numbers.push_back(number);
    } else {
      for (double value; words >> value;) cases.back().results[name].push_back(value);
    }
  }
  std::erase_if(cases, [&](const GoldenCase& c) { return c.kind != kind; });
  return cases;
}

TestTensor number(const Shape& shape, std::int64_t which) {
  return TestTensor::from<double>(
      shape, [&](std::int64_t i) { return static_cast<double>((i * 7919 + which * 104729) % 2003 - 1001) / 1001.0; });
}

void expect_golden(const GoldenCase& c, const std::string& name, const TestTensor& result) {
  const std::vector<double>& values = c.results.at(name);
  ASSERT_EQ(values.size(), result.size()) << name;
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(result.at(i), values[i], 1e-12) << name << " at " << i;
}

TEST(GoldenNetwork, ConvolutionsAreThoseOfNumPy) {
  const std::vector<GoldenCase> cases = golden_cases("convolution");
  ASSERT_EQ(cases.size(), 3u);
  for (const GoldenCase& c : cases) {
    const auto& n = c.numbers;
    ASSERT_EQ(n.size(), 16u);
    const Convolution how = {{n[7], n[8], n[9], n[10], n[11], n[12], n[13], n[14]}, n[15]};
    const Shape xs = {n[0], n[1], n[2], n[3]}, fs = {n[4], n[5], n[3] / n[15], n[6]};
    const Shape ys = {n[0], how.window.positions_down(n[1], n[4]), how.window.positions_across(n[2], n[5]), n[6]};
    const TestTensor x = number(xs, 1), filter = number(fs, 2), dy = number(ys, 3);
    TestTensor y(f64, ys), dx(f64, xs), dfilter(f64, fs);
    const auto scratch = [&](ConvolutionPass pass) {
      return TestScratch(convolution_scratch_bytes(pass, xs, fs, ys, how, f64));
    };
    TestScratch forward = scratch(ConvolutionPass::forward), back = scratch(ConvolutionPass::input_gradient);
    TestScratch filters = scratch(ConvolutionPass::filter_gradient);
    convolution(x.view(), filter.view(), y.view(), how, {}, forward);
    convolution_input_gradient(dy.view(), filter.view(), dx.view(), how, {}, back);
    convolution_filter_gradient(x.view(), dy.view(), dfilter.view(), how, filters);
    expect_golden(c, "y", y);
    expect_golden(c, "dx", dx);
    expect_golden(c, "dfilter", dfilter);
  }
}

TEST(GoldenNetwork, PoolingsAreThoseOfNumPy) {
  const std::vector<GoldenCase> cases = golden_cases("pooling");
  ASSERT_EQ(cases.size(), 2u);
  for (const GoldenCase& c : cases) {
    const auto& n = c.numbers;
    ASSERT_EQ(n.size(), 12u);
    const Pooling how = {n[4], n[5], {n[6], n[7], 1, 1, n[8], n[9], n[10], n[11]}};
    const Shape xs = {n[0], n[1], n[2], n[3]};
    const Shape ys = {n[0], how.window.positions_down(n[1], n[4]), how.window.positions_across(n[2], n[5]), n[3]};
    const TestTensor x = number(xs, 1), dy = number(ys, 3);
    TestTensor y(f64, ys), dx(f64, xs);
    TestScratch positions(max_pool_positions_bytes(ys, how));
    max_pool(x.view(), y.view(), how, std::span<std::byte>(positions).data());
    max_pool_gradient(dy.view(), std::span<std::byte>(positions).data(), dx.view(), how);
    expect_golden(c, "max", y);
    expect_golden(c, "dmax", dx);
    average_pool(x.view(), y.view(), how);
    average_pool_gradient(dy.view(), dx.view(), how);
    expect_golden(c, "average", y);
    expect_golden(c, "daverage", dx);
  }
}

TEST(GoldenNetwork, BatchNormsAreThoseOfNumPy) {
  const std::vector<GoldenCase> cases = golden_cases("batch_norm");
  ASSERT_EQ(cases.size(), 2u);
  for (const GoldenCase& c : cases) {
    ASSERT_EQ(c.numbers.size(), 3u);
    const Shape shape = {c.numbers[0], c.numbers[1]}, row = {c.numbers[1]};
    const TestTensor x = number(shape, 1), gamma = number(row, 2), beta = number(row, 3), dy = number(shape, 4);
    TestTensor y(f64, shape), dx(f64, shape), mean(f64, row), variance(f64, row), rstd(f64, row), dgamma(f64, row);
    TestTensor dbeta(f64, row);
    TestScratch scratch(batch_norm_scratch_bytes(shape, f64));
    const ConstTensorView scale = gamma.view(), shift = beta.view();
    batch_norm_training(x.view(), {&scale, &shift}, y.view(), {mean.view(), variance.view(), rstd.view()},
                        {.epsilon = static_cast<double>(c.numbers[2]) / 1000}, scratch);
    batch_norm_gradient(x.view(), dy.view(), mean.view(), rstd.view(), {&scale}, false,
                        {dx.view(), dgamma.view(), dbeta.view()}, scratch);
    expect_golden(c, "y", y);
    expect_golden(c, "mean", mean);
    expect_golden(c, "variance", variance);
    expect_golden(c, "dgamma", dgamma);
    expect_golden(c, "dbeta", dbeta);
    expect_golden(c, "dx", dx);
  }
}

TEST(GoldenNetwork, LayerNormsAreThoseOfNumPy) {
  const std::vector<GoldenCase> cases = golden_cases("layer_norm");
  ASSERT_EQ(cases.size(), 2u);
  for (const GoldenCase& c : cases) {
    ASSERT_EQ(c.numbers.size(), 3u);
    const std::int64_t columns = c.numbers[1];
    const Shape shape = {c.numbers[0], columns}, row = {columns}, items = {c.numbers[0]};
    const TestTensor x = number(shape, 1), gamma = number(row, 2), beta = number(row, 3), dy = number(shape, 4);
    TestTensor y(f64, shape), dx(f64, shape), mean(f64, items), rstd(f64, items), dgamma(f64, row), dbeta(f64, row);
    TestScratch scratch(layer_norm_gradient_scratch_bytes(c.numbers[0], columns, f64));
    layer_norm(x.view(), columns, gamma.view(), beta.view(), static_cast<double>(c.numbers[2]) / 1000,
               {y.view(), mean.view(), rstd.view()});
    layer_norm_gradient(x.view(), columns, gamma.view(), mean.view(), rstd.view(), dy.view(),
                        {dx.view(), dgamma.view(), dbeta.view()}, scratch);
    const std::pair<const char*, const TestTensor*> results[] = {{"y", &y},   {"mean", &mean},     {"rstd", &rstd},
                                                                 {"dx", &dx}, {"dgamma", &dgamma}, {"dbeta", &dbeta}};
    for (const auto& [name, result] : results) expect_golden(c, name, *result);
  }
}

TEST(GoldenNetwork, GroupNormsAreThoseOfNumPy) {
  const std::vector<GoldenCase> cases = golden_cases("group_norm");
  ASSERT_EQ(cases.size(), 3u);
  for (const GoldenCase& c : cases) {
    ASSERT_EQ(c.numbers.size(), 5u);
    const std::int64_t batch = c.numbers[0], channels = c.numbers[2], groups = c.numbers[3];
    const Shape shape = {batch, c.numbers[1], channels}, row = {channels}, items = {batch, groups};
    const TestTensor x = number(shape, 1), gamma = number(row, 2), beta = number(row, 3), dy = number(shape, 4);
    TestTensor y(f64, shape), dx(f64, shape), mean(f64, items), rstd(f64, items), dgamma(f64, row), dbeta(f64, row);
    TestScratch scratch(group_norm_scratch_bytes(shape, f64));
    group_norm(x.view(), groups, gamma.view(), beta.view(), static_cast<double>(c.numbers[4]) / 1000,
               {y.view(), mean.view(), rstd.view()}, scratch);
    group_norm_gradient(x.view(), groups, gamma.view(), mean.view(), rstd.view(), dy.view(),
                        {dx.view(), dgamma.view(), dbeta.view()}, scratch);
    const std::pair<const char*, const TestTensor*> results[] = {{"y", &y},   {"mean", &mean},     {"rstd", &rstd},
                                                                 {"dx", &dx}, {"dgamma", &dgamma}, {"dbeta", &dbeta}};
    for (const auto& [name, result] : results) expect_golden(c, name, *result);
  }
}

}  // namespace
}  // namespace plimsoll
