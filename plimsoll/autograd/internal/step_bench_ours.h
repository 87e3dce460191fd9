// The models of step_bench in Plimsoll: each takes one training step, forward, backward and Adam, per call.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/ops/attention.h"
#include "plimsoll/ops/batch_norm.h"
#include "plimsoll/ops/convolution.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/dense.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/layer_norm.h"
#include "plimsoll/ops/loss.h"
#include "plimsoll/ops/optimizer.h"
#include "plimsoll/ops/pooling.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/recurrent.h"

namespace plimsoll::step_bench {

class OurModel {
 public:
  virtual ~OurModel() = default;
  virtual Tensor loss() const = 0;
  virtual double step() const { return traced_step().item<float>(); }
  Tensor traced_step() const {  // Also part of a function.
    GradientTape tape;
    const Tensor value = loss();
    adam_.apply(parameters_, tape.gradient(value, parameters_));
    return value;
  }

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

class OurLenet final : public OurModel {
 public:
  explicit OurLenet(std::int64_t batch)
      : x_(random_normal({batch, 32, 32, 3}, {.seed = 1})),
        y_(arange(0, static_cast<int>(batch)) % 10),
        first_(filter(5, 3, 6)),
        second_(filter(5, 6, 16)),
        dense_{layer(400, 120), layer(120, 84), layer(84, 10)} {}
  Tensor loss() const override {
    const Tensor a = max_pool2d(conv2d_bias_activation(x_, first_.w, first_.b, "relu"), 2);
    const Tensor b = max_pool2d(conv2d_bias_activation(a, second_.w, second_.b, "relu"), 2);
    const Tensor c = dense_[1](dense_[0](b.reshape({-1, 400}), Activation::relu), Activation::relu);
    return sparse_categorical_cross_entropy(y_, dense_[2](c), {.from_logits = true});
  }

 private:
  Layer filter(std::int64_t size, std::int64_t in, std::int64_t out) {
    const double scale = 1 / std::sqrt(static_cast<double>(size * size * in));
    return {parameter({size, size, in, out}, scale), parameter({out}, scale)};
  }
  Layer layer(std::int64_t in, std::int64_t out) {
    const double scale = 1 / std::sqrt(static_cast<double>(in));
    return {parameter({in, out}, scale), parameter({out}, scale)};
  }

  Tensor x_, y_;
  Layer first_, second_;
  Layer dense_[3];
};

class OurResnet final : public OurModel {
 public:
  explicit OurResnet(std::int64_t batch)
      : x_(random_normal({batch, 32, 32, 3}, {.seed = 1})),
        y_(arange(0, static_cast<int>(batch)) % 10),
        stem_(unit(3, 3, 32)),
        first_{unit(3, 32, 32), unit(3, 32, 32)},
        second_{unit(3, 32, 64), unit(3, 64, 64)},
        across_(unit(1, 32, 64)),
        head_{parameter({64, 10}, 0.125), parameter({10}, 0.125)} {}
  Tensor loss() const override {
    Tensor h = stem_(x_, "relu");
    h = relu(pair(first_, h) + h);
    Tensor inner = pair(second_, h);
    h = relu(std::move(inner) + across_(h));
    return sparse_categorical_cross_entropy(y_, head_(global_avg_pool(h)), {.from_logits = true});
  }

 private:
  // A convolution and what normalizes it.
  struct Unit {
    Variable filter, gamma, beta, mean, variance;
    Tensor operator()(const Tensor& x, const char* activation = "linear") const {
      return batch_norm(conv2d(x, filter, {.padding = "same"}), gamma, beta, mean, variance,
                        {.training = true, .epsilon = 1e-5, .activation = activation});
    }
  };
  static Tensor pair(const Unit (&units)[2], const Tensor& x) { return units[1](units[0](x, "relu")); }
  Unit unit(std::int64_t size, std::int64_t in, std::int64_t out) {
    return {parameter({size, size, in, out}, 1 / std::sqrt(static_cast<double>(size * size * in))),
            ones_parameter({out}), parameter({out}, 0), Variable(zeros({out}), {.trainable = false}),
            Variable(ones({out}), {.trainable = false})};
  }

  Tensor x_, y_;
  Unit stem_;
  Unit first_[2], second_[2];
  Unit across_;
  Layer head_;
};

// Forward and backward alone.
class OurLayerNorm final : public OurModel {
 public:
  explicit OurLayerNorm(std::int64_t size)
      : x_(random_normal({size, size}, {.seed = 1})), gamma_(ones_parameter({size})), beta_(parameter({size}, 0)) {}
  Tensor loss() const override { return layer_norm(x_, gamma_, beta_, {.epsilon = 1e-5}); }
  double step() const override {
    GradientTape tape;
    tape.watch(x_);
    const std::vector<Tensor> gradients = tape.gradient(loss(), {x_, gamma_, beta_});
    return 0;
  }

 private:
  Tensor x_;
  Variable gamma_, beta_;
};

class OurTransformer final : public OurModel {
 public:
  OurTransformer(std::int64_t layers, std::int64_t width, std::int64_t heads, std::int64_t inner, std::int64_t time,
                 std::int64_t batch)
      : heads_(heads), x_(random_normal({batch, time, width}, {.seed = 1})) {
    y_ = random_normal({batch, time, width}, {.seed = 2});
    for (std::int64_t i = 0; i < layers; ++i)
      blocks_.push_back({layer(width, width),
                         layer(width, width),
                         layer(width, width),
                         layer(width, width),
                         layer(width, inner),
                         layer(inner, width),
                         {ones_parameter({width}), parameter({width}, 0)},
                         {ones_parameter({width}), parameter({width}, 0)}});
  }
  Tensor loss() const override {
    Tensor h = x_;
    for (const Block& block : blocks_) {
      const Tensor mixed = scaled_dot_product_attention(split(block.q(h)), split(block.k(h)), split(block.v(h)),
                                                        {.sequence_first = true});
      h = block.first(h + block.out(mixed.reshape(h.shape())));
      h = block.second(h + block.narrow(block.wide(h, Activation::relu)));
    }
    return mean_squared_error(y_, h);
  }

 private:
  struct Norm {
    Variable gamma, beta;
    Tensor operator()(const Tensor& x) const { return layer_norm(x, gamma, beta, {.epsilon = 1e-5}); }
  };
  struct Block {
    Layer q, k, v, out, wide, narrow;
    Norm first, second;
  };
  Layer layer(std::int64_t in, std::int64_t out) {
    const double scale = 1 / std::sqrt(static_cast<double>(in));
    return {parameter({in, out}, scale), parameter({out}, scale)};
  }
  Tensor split(const Tensor& x) const { return x.reshape({x.shape()[0], x.shape()[1], heads_, x.shape()[2] / heads_}); }

  std::int64_t heads_;
  Tensor x_, y_;
  std::vector<Block> blocks_;
};

}  // namespace plimsoll::step_bench
