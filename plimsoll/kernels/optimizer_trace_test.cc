// Ten training steps that TF.js recorded, repeated: a small network on the iris flowers, one file per optimizer.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>

#include "plimsoll/base/json.h"
#include "plimsoll/kernels/kernel_testing.h"
#include "plimsoll/kernels/loss.h"
#include "plimsoll/kernels/optimizer.h"

namespace plimsoll {
namespace {

using Json = nlohmann::json;
constexpr std::int64_t kRows = 16, kIn = 4, kHidden = 6, kOut = 3;

std::string trace_path(const std::string& name) {
  return std::string(SHARED_DATA "/fixtures/tfjs/training-traces/") + name + ".json";
}

Json read_json(const std::string& name) { return parse_json(std::ifstream(trace_path(name))); }

TestTensor tensor_of(const Json& data, const Shape& shape) {
  return TestTensor::from<float>(shape,
                                 [&](std::int64_t i) { return data.at(static_cast<std::size_t>(i)).get<float>(); });
}

// tanh(x W0 + b1) W2 + b3, softmax, cross entropy; returns the mean loss.
double gradients_of(const std::vector<TestTensor>& w, const Json& flowers, int step, std::vector<TestTensor>& g) {
  double x[kRows][kIn], h[kRows][kHidden];
  TestTensor logits(f32, {kRows, kOut}), labels(i32, {kRows}), loss(f32, {kRows});
  for (auto& tensor : g) std::fill_n(tensor.data<float>(), tensor.size(), 0.f);
  for (std::int64_t r = 0; r < kRows; ++r) {
    const Json& flower = flowers.at(static_cast<std::size_t>((step * kRows + r * 37) % 150));
    for (int i = 0; i < kIn; ++i) x[r][i] = flower.at(static_cast<std::size_t>(i)).get<float>();
    labels.data<std::int32_t>()[r] = flower.at(4).get<int>();
    for (int j = 0; j < kHidden; ++j) {
      double sum = w[1].data<float>()[j];
      for (int i = 0; i < kIn; ++i) sum += x[r][i] * w[0].data<float>()[i * kHidden + j];
      h[r][j] = std::tanh(sum);
    }
    for (int j = 0; j < kOut; ++j) {
      double sum = w[3].data<float>()[j];
      for (int i = 0; i < kHidden; ++i) sum += h[r][i] * w[2].data<float>()[i * kOut + j];
      logits.data<float>()[r * kOut + j] = static_cast<float>(sum);
    }
  }
  sparse_softmax_cross_entropy(logits.view(), labels.view(), {loss.view(), logits.view(), {}, 1.0 / kRows});
  double mean = 0;
  for (std::int64_t r = 0; r < kRows; ++r) {
    mean += loss.data<float>()[r] / kRows;
    const float* dz = logits.data<float>() + r * kOut;
    for (int j = 0; j < kHidden; ++j) {
      double dh = 0;
      for (int k = 0; k < kOut; ++k) {
        dh += double(dz[k]) * w[2].data<float>()[j * kOut + k];
        g[2].data<float>()[j * kOut + k] += static_cast<float>(h[r][j] * dz[k]);
      }
      dh *= 1 - h[r][j] * h[r][j];
      g[1].data<float>()[j] += static_cast<float>(dh);
      for (int i = 0; i < kIn; ++i) g[0].data<float>()[i * kHidden + j] += static_cast<float>(x[r][i] * dh);
    }
    for (int k = 0; k < kOut; ++k) g[3].data<float>()[k] += dz[k];
  }
  return mean;
}

// As TF.js has each of them.
void update(const std::string& name, const Json& config, int step, const TestTensor& g, TestTensor& w,
            std::array<TestTensor, 3>& slots) {
  const double rate = config.at("learningRate");
  const TensorView a = slots[0].view(), b = slots[1].view(), c = slots[2].view();
  if (name == "sgd") return update_sgd(rate, g.view(), w.view());
  if (name.starts_with("momentum"))
    return update_momentum({rate, config.at("momentum"), config.at("useNesterov"), true}, g.view(), w.view(), a);
  if (name.starts_with("rmsprop")) {
    const bool centered = config.at("centered");
    const double epsilon = config.at("epsilon");
    return update_rmsprop({rate, config.at("decay"), config.at("momentum"), centered ? -epsilon : epsilon}, g.view(),
                          w.view(), {a, centered ? b : TensorView(), c});
  }
  if (name == "adagrad") return update_adagrad({rate, 1e-7}, g.view(), w.view(), a);
  if (name == "adadelta")
    return update_adadelta({rate, config.at("rho"), config.at("epsilon"), true}, g.view(), w.view(), a, b);
  const double beta_1 = config.at("beta1"), beta_2 = config.at("beta2"), epsilon = config.at("epsilon");
  if (name == "adam") return update_adam({rate, beta_1, beta_2, epsilon, 0, step, true}, g.view(), w.view(), a, b);
  update_adamax({rate, beta_1, beta_2, epsilon, step}, g.view(), w.view(), a, b);
}

// `tolerance` of losses and weights. That of adadelta is wider: its first steps divide by the root of epsilon.
void expect_trace(const std::string& name, double tolerance) {
  const Json flowers = read_json("iris"), trace = read_json(name);
  const Shape shapes[] = {{kIn, kHidden}, {kHidden}, {kHidden, kOut}, {kOut}};
  std::vector<TestTensor> w, g;
  std::vector<std::array<TestTensor, 3>> slots;
  for (std::size_t i = 0; i < 4; ++i) {
    w.push_back(tensor_of(trace.at("initialWeights").at(i).at("data"), shapes[i]));
    g.emplace_back(f32, shapes[i]);
    const float start = trace.at("config").value("initialAccumulatorValue", 0.f);
    slots.push_back({TestTensor::from<float>(shapes[i], [&](std::int64_t) { return start; }), g[i], g[i]});
  }
  for (int step = 0; step < 10; ++step) {
    const double loss = gradients_of(w, flowers, step, g);
    EXPECT_NEAR(loss, trace.at("losses").at(static_cast<std::size_t>(step)).get<double>(), tolerance) << name << step;
    for (std::size_t i = 0; i < 4; ++i) update(name, trace.at("config"), step + 1, g[i], w[i], slots[i]);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    const TestTensor expected = tensor_of(trace.at("finalWeights").at(i).at("data"), shapes[i]);
    for (std::size_t k = 0; k < expected.size(); ++k) EXPECT_NEAR(w[i].at(k), expected.at(k), tolerance) << name << i;
  }
}

TEST(OptimizerTraces, TenStepsEndWhereThoseOfTfjsEnd) {
  if (!std::ifstream(trace_path("iris"))) GTEST_SKIP() << "no " << trace_path("iris");
  for (const char* name : {"sgd", "momentum", "momentum_nesterov", "rmsprop", "rmsprop_centered", "adagrad", "adamax"})
    expect_trace(name, 2e-6);
  expect_trace("adam", 1e-5);
  expect_trace("adadelta", 1e-3);
}

}  // namespace
}  // namespace plimsoll
