// The kernels of OpenCL devices against the host's: results and gradients of whole operations, for shapes that do not
// fill vectors too. Skipped where there is no OpenCL device. tools/check_opencl runs them in a simulator.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/device_scope.h"
#include "plimsoll/device/opencl/opencl_testing.h"
#include "plimsoll/ops/attention.h"
#include "plimsoll/ops/batch_norm.h"
#include "plimsoll/ops/convolution.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/cross_entropy.h"
#include "plimsoll/ops/dense.h"
#include "plimsoll/ops/dropout.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/layer_norm.h"
#include "plimsoll/ops/loss.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/optimizer.h"
#include "plimsoll/ops/order.h"
#include "plimsoll/ops/pooling.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/recurrent.h"
#include "plimsoll/ops/softmax.h"
#include "plimsoll/tensor/profile.h"

namespace plimsoll {
namespace {

using Tensors = std::vector<Tensor>;
using Operation = std::function<Tensor(const Tensors&)>;

class OpenclGradients : public OpenclFixture {
 protected:
  static Tensor numbers(const Shape& shape, std::uint64_t seed) { return random_normal(shape, {.seed = seed}); }
  static Tensors inputs(std::initializer_list<Shape> shapes) {
    Tensors made;
    for (const Shape& shape : shapes) made.push_back(numbers(shape, made.size() + 1));
    return made;
  }

  // The result, and the gradients of its sum, weighted, by those inputs that are floats.
  static Tensors run(const Operation& operation, const Tensors& in) {
    GradientTape tape;
    Tensors watched;
    for (const Tensor& tensor : in)
      if (tensor.dtype() == f32) watched.push_back(tensor);
    for (const Tensor& tensor : watched) tape.watch(tensor);
    const Tensor y = operation(in);
    const Tensor weights = sin(arange(0, static_cast<int>(y.size())).cast(f32)).reshape(y.shape());
    const Tensor loss = (y * weights.to(y.device())).sum();
    Tensors results = tape.gradient(loss, watched);
    results.insert(results.begin(), y);
    return results;
  }

  void compare(const char* what, const Tensors& in, const Operation& operation, double tolerance = 2e-5) {
    SCOPED_TRACE(what);
    const Tensors here = run(operation, in);
    Tensors moved;
    for (const Tensor& tensor : in) moved.push_back(tensor.to(name()));
    backend().reset_counters();
    const Tensors there = run(operation, moved);
    EXPECT_THAT(backend().fallbacks(), testing::IsEmpty());
    ASSERT_EQ(here.size(), there.size());
    for (std::size_t i = 0; i < here.size(); ++i) {
      ASSERT_EQ(here[i].is_empty_handle(), there[i].is_empty_handle()) << i;
      if (here[i].is_empty_handle()) continue;
      ASSERT_EQ(here[i].shape(), there[i].shape());
      const std::vector<float> a = here[i].to_vector<float>(), b = there[i].to_vector<float>();
      for (std::size_t k = 0; k < a.size(); ++k)
        ASSERT_NEAR(a[k], b[k], tolerance * (1 + std::fabs(a[k])))
            << (i == 0 ? "result" : "gradient ") << i << " " << k;
    }
  }
};

TEST_F(OpenclGradients, Convolutions) {
  const auto convolution = [&](const Shape& x, const Shape& filter, const ConvOptions& options) {
    compare(
        "convolution", inputs({x, filter}), [&](const Tensors& in) { return conv2d(in[0], in[1], options); }, 1e-4);
  };
  convolution({2, 7, 6, 3}, {3, 3, 3, 5}, {});
  convolution({2, 7, 6, 3}, {3, 3, 3, 16}, {.padding = "same"});
  convolution({1, 9, 8, 4}, {3, 2, 4, 18}, {.strides = {2, 3}, .padding = "same"});
  convolution({1, 9, 9, 5}, {2, 3, 5, 3}, {.dilations = {2, 3}});
  convolution({2, 5, 5, 1}, {1, 1, 1, 33}, {.strides = 2});
  for (const char* activation : {"linear", "relu", "tanh", "sigmoid"})
    compare(
        activation, inputs({{2, 6, 6, 2}, {3, 3, 2, 7}, {7}}),
        [&](const Tensors& in) { return conv2d_bias_activation(in[0], in[1], in[2], activation); }, 1e-4);
  compare(
      "of one axis", inputs({{2, 10, 3}, {4, 3, 5}}),
      [](const Tensors& in) { return conv1d(in[0], in[1], {.padding = "causal"}); }, 1e-4);
  compare(
      "transposed", inputs({{2, 4, 4, 3}, {3, 3, 2, 3}}),
      [](const Tensors& in) { return conv2d_transpose(in[0], in[1], {.strides = 2, .padding = "same"}); }, 1e-4);
}

TEST_F(OpenclGradients, Poolings) {
  for (const char* padding : {"valid", "same"})
    for (const std::int64_t size : {1, 2, 3, 5, 17})  // Positions of 1, 2, 4, 8 and 32 bits.
      for (const std::int64_t stride : {1, 2}) {
        const Tensors x = inputs({{2, 18, 19, 3}});
        const PoolOptions options = {.strides = stride, .padding = padding};
        compare("maximum", x, [&](const Tensors& in) { return max_pool2d(in[0], size, options); });
        if (size < 5) compare("average", x, [&](const Tensors& in) { return avg_pool2d(in[0], size, options); });
      }
}

TEST_F(OpenclGradients, Normalizations) {
  for (const Shape& x : {Shape{3, 5, 4, 6}, Shape{200, 16}, Shape{40, 35}})
    for (const char* activation : {"linear", "relu"}) {
      const Shape row = {x.back()};
      compare(
          "batch", inputs({x, row, row}),
          [&](const Tensors& in) { return batch_norm_training(in[0], in[1], in[2], {.activation = activation}).y; },
          2e-4);
      compare(
          "batch, without factors", inputs({x}),
          [&](const Tensors& in) { return batch_norm_training(in[0], {}, {}, {.activation = activation}).y; }, 2e-4);
      compare(
          "layer", inputs({x, row, row}), [&](const Tensors& in) { return layer_norm(in[0], in[1], in[2]); }, 2e-4);
      compare(
          "layer, without factors", inputs({x}), [&](const Tensors& in) { return layer_norm(in[0], {}, {}); }, 2e-4);
    }
  compare(
      "several axes", inputs({{6, 4, 5}, {4, 5}, {4, 5}}),
      [](const Tensors& in) { return layer_norm(in[0], in[1], in[2], {.axis = 1}); }, 2e-4);
}

TEST_F(OpenclGradients, Sequences) {
  for (const std::int64_t units : {5, 16, 20})
    for (const bool backwards : {false, true})
      for (const bool sequences : {false, true}) {
        const Tensors in = inputs({{3, 7, 4}, {4, 4 * units}, {units, 4 * units}, {4 * units}, {3, units}, {3, units}});
        compare(
            "LSTM", in,
            [&](const Tensors& t) {
              return lstm(t[0], t[1] * 0.3, t[2] * 0.3, t[3],
                          {.return_sequences = sequences, .go_backwards = backwards})
                  .output;
            },
            1e-4);
        compare(
            "LSTM with states", in,
            [&](const Tensors& t) {
              const Sequence all = lstm(t[0], t[1] * 0.3, t[2] * 0.3, t[3],
                                        {.return_sequences = sequences,
                                         .go_backwards = backwards,
                                         .recurrent_activation = Activation::hard_sigmoid,
                                         .initial_h = t[4],
                                         .initial_c = t[5]});
              return concat({all.output.flatten(), all.h.flatten(), all.c.flatten()});
            },
            1e-4);
      }
  const Tensors large = inputs({{40, 9, 3}, {3, 12}, {3, 12}});  // Several chunks going back.
  compare(
      "several chunks", large,
      [](const Tensors& t) { return lstm(t[0], t[1], t[2], {}, {.return_sequences = true}).output; }, 1e-4);
}

TEST_F(OpenclGradients, Attention) {
  for (const std::int64_t depth : {3, 16, 20})
    for (const bool causal : {false, true})
      for (const bool first : {false, true}) {
        const std::int64_t queries = 6, keys = 37, heads = 2;
        const Shape q = first ? Shape{2, queries, heads, depth} : Shape{2, heads, queries, depth};
        const Shape k = first ? Shape{2, keys, heads, depth} : Shape{2, heads, keys, depth};
        const AttentionOptions options = {.causal = causal, .sequence_first = first};
        compare(
            "attention", inputs({q, k, k}),
            [&](const Tensors& in) { return scaled_dot_product_attention(in[0], in[1], in[2], options); }, 1e-4);
        Tensors masked = inputs({q, k, k});
        masked.push_back(random_uniform({2, 1, queries, keys}, {.seed = 9}) > 0.4f);
        compare(
            "with a mask", masked,
            [&](const Tensors& in) {
              AttentionOptions given = options;
              given.mask = in[3];
              return scaled_dot_product_attention(in[0], in[1], in[2], given);
            },
            1e-4);
      }
}

TEST_F(OpenclGradients, Movements) {
  const Tensors x = inputs({{3, 4, 5}, {3, 2, 5}});
  compare("transpose", x, [](const Tensors& in) { return in[0].transpose({2, 0, 1}); });
  compare("slice", x, [](const Tensors& in) { return in[0].slice({1, 2, 1}, {2, 2, 3}); });
  compare("strided slice", x, [](const Tensors& in) {
    return strided_slice(in[0], {0, 3, 4}, {3, 0, 0}, {2, -1, -2});
  });
  compare("reverse", x, [](const Tensors& in) { return reverse(in[0], {0, 2}); });
  compare("concat", x, [](const Tensors& in) { return concat({in[0], in[1]}, 1); });
  compare("stack", x, [](const Tensors& in) { return stack({in[0], in[0] * 2}, 1); });
  compare("pad", x, [](const Tensors& in) { return pad(in[0], {{1, 0}, {0, 2}, {3, 1}}, 2.5); });
  const Tensor indices = constant({2, 0, 2, 1});
  for (const DType dtype : {i32, i64})
    for (const std::int64_t axis : {0, 1})
      compare("gather", {x[0], indices.cast(dtype)}, [&](const Tensors& in) { return gather(in[0], in[1], axis); });
  compare("embedding", {x[0].reshape({12, 5}), constant({7, 1, 7, 11}).cast(i32)},
          [](const Tensors& in) { return embedding_lookup(in[0], in[1]); });
}

TEST_F(OpenclGradients, Losses) {
  const Tensors in = inputs({{6, 5}, {6, 5}});
  for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
    const LossOptions options = {.reduction = reduction, .from_logits = true, .delta = 0.7};
    compare("squared", in, [&](const Tensors& t) { return mean_squared_error(t[0], t[1], options); });
    compare("absolute", in, [&](const Tensors& t) { return mean_absolute_error(t[0], t[1], options); });
    compare("huber", in, [&](const Tensors& t) { return huber(t[0], t[1], options); });
    compare("binary", in, [&](const Tensors& t) { return binary_cross_entropy(t[0], t[1], options); });
    compare("classes", {in[0], constant({0, 4, 2, 1, 3, 3}).cast(i32)},
            [&](const Tensors& t) { return sparse_categorical_cross_entropy(t[1], t[0], options); });
  }
  compare("clip", in, [](const Tensors& t) { return clip(t[0], -0.5, 0.25); });
}

// What has no kernel runs on the host, and a profile says so.
// Kernels leave refused indices out: they read and write nothing outside of their operands.
TEST_F(OpenclGradients, RefusedIndicesAreLeftOut) {
  const Tensor x = numbers({3, 4}, 1).to(name()), rows = numbers({3, 4}, 2).to(name());
  for (const DType dtype : {i32, i64}) {
    const Tensor wrong = constant({2, -7, 1 << 20}).cast(dtype).to(name());
    const Tensors results = {gather(x, wrong), scatter(wrong, rows, {3, 4}), scatter_add(x, wrong, rows),
                             sparse_softmax_cross_entropy_with_logits(wrong, x)};
    GradientTape tape;
    tape.watch(x);
    const Tensor gradient = tape.gradient(sparse_softmax_cross_entropy_with_logits(wrong, x), x);
    EXPECT_THROW(static_cast<void>(gradient.to_vector<float>()), InvalidArgument);
    EXPECT_EQ(gradient.to_vector<float>().size(), 12u);
    const std::vector<float> gathered = results[0].to_vector<float>(), chosen = x.to_vector<float>();
    for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(gathered[i], i < 4 ? chosen[8 + i] : 0.f);
    const std::vector<float> scattered = results[1].to_vector<float>(), updates = rows.to_vector<float>();
    for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(scattered[i], i < 8 ? 0.f : updates[i - 8]);
    for (std::size_t i = 2; i < results.size(); ++i) EXPECT_FALSE(results[i].to_vector<float>().empty());
  }
}

TEST_F(OpenclGradients, FallbacksAreProfiled) {
  const Tensor x = numbers({4, 5}, 1).to(name());
  const ProfileInfo info = profile([&] {
    static_cast<void>(cumsum(x, 1));
    static_cast<void>(relu(x));
    static_cast<void>(cumsum(x, 0));
  });
  EXPECT_THAT(info.fallbacks(), testing::ElementsAre(testing::Pair("cumsum", 2u)));
  EXPECT_EQ(backend().fallbacks().at("cumsum"), 2u);
}

TEST_F(OpenclGradients, Products) {
  for (const Shape& sizes : {Shape{1, 1, 1}, Shape{5, 7, 3}, Shape{33, 40, 65}, Shape{64, 64, 64}}) {
    const std::int64_t m = sizes[0], inner = sizes[1], n = sizes[2];
    compare(
        "product", inputs({{m, inner}, {inner, n}}), [](const Tensors& t) { return matmul(t[0], t[1]); }, 1e-4);
    compare(
        "both transposed", inputs({{inner, m}, {n, inner}}),
        [](const Tensors& t) { return matmul(t[0], t[1], {.transpose_a = true, .transpose_b = true}); }, 1e-4);
    compare(
        "batches", inputs({{2, m, inner}, {2, inner, n}}), [](const Tensors& t) { return matmul(t[0], t[1]); }, 1e-4);
    compare(
        "dense", inputs({{m, inner}, {inner, n}, {n}}),
        [](const Tensors& t) { return dense(t[0], t[1], t[2], Activation::relu); }, 1e-4);
  }
  compare("softmax", inputs({{7, 33}}), [](const Tensors& t) { return softmax(t[0]); });
}

// Those with formulas of their own, for numbers of all sizes; and the others by the way.
TEST_F(OpenclGradients, Elementwise) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {0.f, -0.f, kInfinity, -kInfinity, std::nanf(""), 1e-30f, -1e-30f, 90.f, -90.f, 1e30f};
  for (int i = 0; i < 90; ++i) values.push_back(static_cast<float>(i - 45) * 0.37f);
  const Tensor x = from_vector(values), y = from_vector(std::vector<float>(values.rbegin(), values.rend()));
  struct Row {
    const char* name;
    Tensor (*function)(Tensor);
  };
  const Row unary[] = {{"exp", exp},     {"tanh", tanh},   {"erf", erf},      {"sigmoid", sigmoid},
                       {"gelu", gelu},   {"sign", sign},   {"relu", relu},    {"softplus", softplus},
                       {"relu6", relu6}, {"elu", elu},     {"swish", swish},  {"gelu_tanh", gelu_tanh},
                       {"sqrt", sqrt},   {"floor", floor}, {"square", square}};
  const auto compare_all = [&](const char* name, const Tensor& here, const Tensor& there) {
    const std::vector<float> a = here.to_vector<float>(), b = there.to_vector<float>();
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (std::isfinite(a[i]) && std::fabs(a[i]) < 1e30f)
        EXPECT_NEAR(a[i], b[i], 4e-6 * (0.1 + std::fabs(a[i]))) << name << " of " << values[i];
      else
        EXPECT_TRUE(a[i] == b[i] || (a[i] != a[i] && b[i] != b[i]) || std::fabs(b[i]) > 0.99e30f)
            << name << " of " << values[i] << ": " << a[i] << " and " << b[i];
    }
  };
  backend().reset_counters();
  for (const Row& row : unary) compare_all(row.name, row.function(x), row.function(x.to(name())));
  const Tensor far_x = x.to(name()), far_y = y.to(name());
  compare_all("minimum", minimum(x, y), minimum(far_x, far_y));
  compare_all("maximum", maximum(x, y), maximum(far_x, far_y));
  compare_all("divide_no_nan", divide_no_nan(x, y), divide_no_nan(far_x, far_y));
  compare_all("leaky_relu", leaky_relu(x), leaky_relu(far_x));
  EXPECT_THAT(backend().fallbacks(), testing::IsEmpty());
  for (const Row& row : {Row{"gelu", gelu}, Row{"gelu_tanh", gelu_tanh}, Row{"tanh", tanh}, Row{"swish", swish},
                         Row{"softplus", softplus}, Row{"elu", elu}})
    compare(row.name, inputs({{3, 37}}), [&](const Tensors& in) { return row.function(in[0]); });
  compare("broadcast", inputs({{2, 1, 1, 3}, {4, 5, 3}}), [](const Tensors& in) { return in[0] * in[1]; });
}

// What models use besides, so that all of it runs in the simulator too.
TEST_F(OpenclGradients, OperationsOfModels) {
  compare("broadcast sum", inputs({{2, 1, 3}, {4, 3}}), [](const Tensors& in) { return in[0] + in[1]; });
  compare("broadcast difference", inputs({{2, 1, 3}, {4, 3}}), [](const Tensors& in) { return in[0] - in[1]; });
  compare("broadcast quotient", inputs({{2, 1, 3}, {4, 3}}),
          [](const Tensors& in) { return in[0] / (in[1] * in[1] + 1); });
  compare("quotient", inputs({{37}, {37}}), [](const Tensors& in) { return in[0] / (in[1] * in[1] + 1); });
  compare("logarithm", inputs({{37}}), [](const Tensors& in) { return log(in[0] * in[0] + 1); });
  compare("dropout", inputs({{9, 37}}), [](const Tensors& in) { return dropout(in[0], 0.3, {.seed = 5}); });
  compare(
      "convolution of many channels", inputs({{1, 6, 5, 16}, {3, 3, 16, 4}}),
      [](const Tensors& in) { return conv2d(in[0], in[1]); }, 1e-4);
  const Tensor x = numbers({5, 37}, 1), there = x.to(name());
  EXPECT_EQ(there.argmax(-1).to_vector<std::int64_t>(), x.argmax(-1).to_vector<std::int64_t>());
  const Tensor whole = arange(0, 37).cast(i32), far_whole = whole.to(name());
  EXPECT_EQ((far_whole + 3).to_vector<std::int32_t>(), (whole + 3).to_vector<std::int32_t>());
  const Tensor wide = far_whole.cast(i64);
  EXPECT_EQ(wide.to_vector<std::int64_t>(), whole.cast(i64).to_vector<std::int64_t>());
  EXPECT_EQ((wide == wide).cast(f32).sum().item<float>(), 37);
  EXPECT_EQ(whole.cast(u8).to(name()).cast(f32).to_vector<float>(), whole.cast(f32).to_vector<float>());
}

// Every rule, with each of its options: parameters and slots after 20 steps.
TEST_F(OpenclGradients, Optimizers) {
  const OptimizerOptions rules[] = {
      SGDOptions{},
      SGDOptions{.momentum = 0.9},
      SGDOptions{.momentum = 0.9, .nesterov = true},
      SGDOptions{.momentum = 0.9, .tfjs = true},
      RMSpropOptions{},
      RMSpropOptions{.centered = true},
      RMSpropOptions{.momentum = 0.9},
      RMSpropOptions{.momentum = 0.9, .centered = true},
      AdagradOptions{},
      AdadeltaOptions{},
      AdadeltaOptions{.tfjs = true},
      AdamOptions{},
      AdamOptions{.weight_decay = 0.004},
      AdamOptions{.tfjs = true},
      AdamaxOptions{},
  };
  // Vectors of parameters on a device, and what is kept for them.
  const auto trained = [](const OptimizerOptions& rule, const std::string& device) {
    const DeviceScope on(device);
    const Variable w(numbers({5, 7}, 1)), b(numbers({300}, 2));
    const Optimizer optimizer(rule);
    for (std::uint64_t step = 0; step < 20; ++step)
      optimizer.apply({w, b}, {numbers({5, 7}, 10 + step), numbers({300}, 40 + step)});
    std::vector<float> all = w.value().to_vector<float>();
    const auto add = [&](const Tensor& tensor) {
      for (const float value : tensor.to_vector<float>()) all.push_back(value);
    };
    add(b.value());
    for (const Variable& variable : {w, b})
      for (const Optimizer::Slot& slot : optimizer.slots(variable)) add(slot.value);
    return all;
  };
  std::size_t number = 0;
  for (const OptimizerOptions& rule : rules) {
    SCOPED_TRACE(number++);
    const std::vector<float> here = trained(rule, "CPU:0");
    backend().reset_counters();
    const std::vector<float> there = trained(rule, name());
    for (const auto& [op, count] : backend().fallbacks()) EXPECT_THAT(op, testing::HasSubstr("random")) << count;
    ASSERT_EQ(here.size(), there.size());
    for (std::size_t i = 0; i < here.size(); ++i) ASSERT_NEAR(here[i], there[i], 1e-5 * (1 + std::fabs(here[i]))) << i;
  }
}

}  // namespace
}  // namespace plimsoll
