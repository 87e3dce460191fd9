// The models of step_bench in Plimsoll: each takes one training step, forward, backward and Adam, per call.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/ops/attention.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/dense.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/loss.h"
#include "plimsoll/ops/optimizer.h"
#include "plimsoll/ops/recurrent.h"

namespace plimsoll::step_bench {

class OurModel {
 public:
  virtual ~OurModel() = default;
  virtual Tensor loss() const = 0;
  double step() const {
    GradientTape tape;
    const Tensor value = loss();
    adam_.apply(parameters_, tape.gradient(value, parameters_));
    return value.item<float>();
  }
  std::size_t num_parameters() const { return parameters_.size(); }

 protected:
  Variable parameter(const Shape& shape, double scale) {
    return parameters_.emplace_back(
        scale == 0 ? zeros(shape) : random_uniform(shape, {.seed = parameters_.size()}) * (2 * scale) - scale);
  }
  Variable ones_parameter(const Shape& shape) { return parameters_.emplace_back(ones(shape)); }

 private:
  std::vector<Variable> parameters_;
  Optimizer adam_{AdamOptions{.epsilon = 1e-8}};
};

// A linear layer.
struct Layer {
  Variable w, b;
  Tensor operator()(const Tensor& x, Activation activation = Activation::linear) const {
    return dense(x, w, b, activation);
  }
};

class OurMlp final : public OurModel {
 public:
  // With one output, a binary classifier; with more, classes.
  OurMlp(const std::vector<std::int64_t>& sizes, std::int64_t batch)
      : x_(random_normal({batch, sizes.front()}, {.seed = 1})),
        binary_(sizes.back() == 1),
        y_(binary_ ? (random_uniform({batch, 1}, {.seed = 2}) > 0.5f).cast(f32)
                   : arange(0, static_cast<int>(batch)) % static_cast<int>(sizes.back())) {
    for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
      const double scale = 1 / std::sqrt(static_cast<double>(sizes[i]));
      layers_.push_back({parameter({sizes[i], sizes[i + 1]}, scale), parameter({sizes[i + 1]}, scale)});
    }
  }
  Tensor loss() const override {
    Tensor h = x_;
    for (std::size_t i = 0; i + 1 < layers_.size(); ++i) h = layers_[i](h, Activation::relu);
    h = layers_.back()(h);
    return binary_ ? binary_cross_entropy(y_, h, {.from_logits = true})
                   : sparse_categorical_cross_entropy(y_, h, {.from_logits = true});
  }

 private:
  Tensor x_;
  bool binary_;
  Tensor y_;
  std::vector<Layer> layers_;
};

class OurLstm final : public OurModel {
 public:
  OurLstm(std::int64_t inputs, std::int64_t units, std::int64_t time, std::int64_t batch)
      : x_(random_normal({batch, time, inputs}, {.seed = 1})),
        y_(random_normal({batch, 1}, {.seed = 2})),
        kernel_(parameter({inputs, 4 * units}, scale_of(units))),
        recurrent_(parameter({units, 4 * units}, scale_of(units))),
        bias_(parameter({4 * units}, scale_of(units))),
        head_{parameter({units, 1}, scale_of(units)), parameter({1}, scale_of(units))} {}
  Tensor loss() const override { return mean_squared_error(y_, head_(lstm(x_, kernel_, recurrent_, bias_).output)); }

 private:
  static double scale_of(std::int64_t units) { return 1 / std::sqrt(static_cast<double>(units)); }

  Tensor x_, y_;
  Variable kernel_, recurrent_, bias_;
  Layer head_;
};

}  // namespace plimsoll::step_bench
