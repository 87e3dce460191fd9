// Inference of six networks as functions; tools/bench_onnx compares it with ONNX Runtime, interleaved.
//
//   inference_bench save FOLDER      # NAME.npz for every network: weights, an input x and our output y
//   inference_bench serve THREADS    # answers each line "NAME BATCH CALLS" with the nanoseconds of one call
//
//   inference_bench                  # only our own times, and those of the same networks run op by op
#include <time.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/io/npz.h"
#include "plimsoll/ops/attention.h"
#include "plimsoll/ops/batch_norm.h"
#include "plimsoll/ops/convolution.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/dense.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/layer_norm.h"
#include "plimsoll/ops/pooling.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/ops/recurrent.h"
#include "plimsoll/ops/variable.h"

namespace plimsoll {
namespace {

// Weights by name, made when they are first asked for.
class Weights {
 public:
  Variable operator()(const std::string& name, const Shape& shape, double low, double high) {
    const auto found = made_.find(name);
    if (found != made_.end()) return found->second;
    const Tensor values = random_uniform(shape, {.seed = made_.size() + 1}) * (high - low) + low;
    return made_.emplace(name, Variable(values, {.name = name})).first->second;
  }
  Variable matrix(const std::string& name, std::int64_t in, std::int64_t out) {
    const double scale = 1 / std::sqrt(static_cast<double>(in));
    return (*this)(name, {in, out}, -scale, scale);
  }
  Variable vector(const std::string& name, std::int64_t size) { return (*this)(name, {size}, -0.1, 0.1); }
  Tensor dense(const std::string& name, const Tensor& x, std::int64_t out, Activation activation = Activation::linear) {
    return plimsoll::dense(x, matrix(name + ".w", x.shape().back(), out), vector(name + ".b", out), activation);
  }
  const std::map<std::string, Variable>& all() const { return made_; }

 private:
  std::map<std::string, Variable> made_;
};

Tensor tiny_mlp(Weights& weights, const Tensor& x) {
  return sigmoid(weights.dense("out", weights.dense("hidden", x, 16, Activation::relu), 1));
}

Tensor mlp(Weights& weights, const Tensor& x) {
  const Tensor h = weights.dense("second", weights.dense("first", x, 512, Activation::relu), 512, Activation::relu);
  return weights.dense("out", h, 10);
}

Tensor lenet(Weights& weights, const Tensor& x) {
  const auto convolve = [&](const std::string& name, const Tensor& in, std::int64_t out) {
    const std::int64_t channels = in.shape().back();
    const double scale = 1 / std::sqrt(25.0 * static_cast<double>(channels));
    return max_pool2d(conv2d_bias_activation(in, weights(name + ".w", {5, 5, channels, out}, -scale, scale),
                                             weights.vector(name + ".b", out), "relu"),
                      2);
  };
  Tensor h = convolve("second", convolve("first", x, 6), 16);
  h = weights.dense("third", h.reshape({-1, 400}), 120, Activation::relu);
  return weights.dense("out", weights.dense("fourth", h, 84, Activation::relu), 10);
}

Tensor resnet(Weights& weights, const Tensor& x) {
  const auto unit = [&](const std::string& name, const Tensor& in, std::int64_t size, std::int64_t out,
                        const char* activation) {
    const std::int64_t channels = in.shape().back();
    const double scale = 1 / std::sqrt(static_cast<double>(size * size * channels));
    const Tensor y = conv2d(in, weights(name + ".w", {size, size, channels, out}, -scale, scale), {.padding = "same"});
    return batch_norm_inference(y, weights(name + ".gamma", {out}, 0.5, 1.5), weights.vector(name + ".beta", out),
                                weights.vector(name + ".mean", out), weights(name + ".variance", {out}, 0.5, 1.5),
                                {.epsilon = 1e-5, .activation = activation});
  };
  const Tensor a = unit("stem", x, 3, 32, "relu");
  const Tensor b = relu(unit("first.1", unit("first.0", a, 3, 32, "relu"), 3, 32, "linear") + a);
  const Tensor c = unit("second.1", unit("second.0", b, 3, 64, "relu"), 3, 64, "linear");
  return weights.dense("out", global_avg_pool(relu(c + unit("across", b, 1, 64, "linear"))), 10);
}

Tensor lstm64(Weights& weights, const Tensor& x) {
  const Sequence s =
      lstm(x, weights.matrix("lstm.w", 32, 256), weights.matrix("lstm.u", 64, 256), weights.vector("lstm.b", 256));
  return weights.dense("out", s.output, 1);
}

Tensor transformer(Weights& weights, const Tensor& x) {
  Tensor h = x;
  const auto norm = [&](const std::string& name, const Tensor& in) {
    return layer_norm(in, weights(name + ".gamma", {256}, 0.5, 1.5), weights.vector(name + ".beta", 256),
                      {.epsilon = 1e-5});
  };
  const auto heads = [](const Tensor& in) { return in.reshape({-1, 128, 4, 64}); };
  for (const std::string block : {"0.", "1."}) {
    const Tensor mixed = scaled_dot_product_attention(
        heads(weights.dense(block + "q", h, 256)), heads(weights.dense(block + "k", h, 256)),
        heads(weights.dense(block + "v", h, 256)), {.sequence_first = true});
    h = norm(block + "first", h + weights.dense(block + "mix", mixed.reshape({-1, 128, 256}), 256));
    const Tensor wide = weights.dense(block + "wide", h, 1024, Activation::relu);
    h = norm(block + "second", h + weights.dense(block + "narrow", wide, 256));
  }
  return h;
}

struct Network {
  Shape input;  // Without the batch.
  Tensor (*forward)(Weights&, const Tensor&);
  Weights weights = {};

  Tensor example(std::int64_t batch) const {
    std::vector<std::int64_t> sizes(input.begin(), input.end());
    sizes.insert(sizes.begin(), batch);
    return random_normal(Shape(sizes), {.seed = 7});
  }
};

std::map<std::string, Network> networks() {
  return {{"tiny_mlp", {{10}, tiny_mlp}},    {"mlp", {{784}, mlp}},        {"lenet", {{32, 32, 3}, lenet}},
          {"resnet", {{32, 32, 3}, resnet}}, {"lstm", {{50, 32}, lstm64}}, {"transformer", {{128, 256}, transformer}}};
}

void save(const std::string& folder) {
  for (auto& [name, network] : networks()) {
    const Tensor x = network.example(2);
    TensorTree tree;
    const Tensor y = network.forward(network.weights, x);
    for (const auto& [weight, variable] : network.weights.all()) tree.insert(weight, variable.value());
    tree.insert("x", x);
    tree.insert("y", y);
    save_npz(folder + "/" + name + ".npz", tree);
  }
}

// Nanoseconds of a call, of any network at any batch.
class Runs {
 public:
  double operator()(const std::string& name, std::int64_t batch, int calls) {
    auto& run = ready_[name + " " + std::to_string(batch)];
    if (!run) {
      Network& network = all_.at(name);
      const Tensor x = network.example(batch);
      network.forward(network.weights, x);  // Makes the weights, before anything is traced.
      const auto f = function([&network](Tensor in) { return network.forward(network.weights, in); });
      f(x);
      run = [f, x](int times) {
        const Stopwatch watch;
        for (int i = 0; i < times; ++i) f(x);
        return static_cast<double>(watch.ns()) / times;
      };
    }
    return run(calls);
  }

 private:
  std::map<std::string, Network> all_ = networks();
  std::map<std::string, std::function<double(int)>> ready_;  // By name and batch.
};

void serve() {
  Runs run;
  std::string name;
  std::int64_t batch;
  int calls;
  while (std::cin >> name >> batch >> calls) std::cout << run(name, batch, calls) << std::endl;
}

double cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

template <class F>
double time_of(F&& f, int calls) {
  const double start = cpu_us();
  for (int i = 0; i < calls; ++i) f();
  return (cpu_us() - start) / calls;
}

// By turns with the same run op by op; CPU times, the best of several rounds.
void show() {
  constexpr int kRounds = 15;
  constexpr double kRoundUs = 20e3;
  Passes inexact;
  inexact.fuse_attention = inexact.fold_norm = true;
  std::cout << "| | batch | op by op, us | function, us | with inexact passes, us |\n|---|--:|--:|--:|--:|\n";
  for (auto& [name, network] : networks())
    for (const std::int64_t batch : {1, name == "mlp" ? 128 : 32}) {
      const Tensor x = network.example(batch);
      Network& used = network;
      const auto forward = [&used](Tensor in) { return used.forward(used.weights, in); };
      forward(x);
      const auto f = function(forward), g = function(forward, {.passes = inexact});
      const int calls = 1 + static_cast<int>(kRoundUs / std::max(1.0, time_of([&] { f(x); }, 3)));
      double best[3] = {1e18, 1e18, 1e18};
      for (int round = 0; round < kRounds; ++round) {
        best[0] = std::min(best[0], time_of([&] { forward(x); }, calls));
        best[1] = std::min(best[1], time_of([&] { f(x); }, calls));
        best[2] = std::min(best[2], time_of([&] { g(x); }, calls));
      }
      std::cout << "| " << name << " | " << batch << " | " << best[0] << " | " << best[1] << " | " << best[2] << " |\n";
    }
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  plimsoll::set_num_threads(what == "serve" ? std::stoi(argv[2]) : 1);
  if (what == "save")
    plimsoll::save(argv[2]);
  else if (what == "serve")
    plimsoll::serve();
  else
    plimsoll::show();
}
