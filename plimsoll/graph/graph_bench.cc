// Training steps as functions compared with the same steps run op by op, interleaved in one process: time and peak
// bytes; what tracing costs; and what many runs leave behind.
//
//   build-bench/graph_bench [--rounds N] [--only PART] [--long]    # --long: 10^5 calls and runs, 10^5 nodes
//
// PART: of a model's name, "tracing", "towers" or "runs". Times of steps are CPU times with one thread, so that others
// disturb them little.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "plimsoll/autograd/step_models_testing.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/graph/function.h"
#include "plimsoll/graph/graph.h"
#include "plimsoll/graph/session.h"
#include "plimsoll/graph/train.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/profile.h"

namespace plimsoll {
namespace {

using step_bench::OurModel;

struct Options {
  int rounds = 15;
  std::string only;
  bool is_long = false;
};

struct Case {
  const char* name;
  std::function<std::unique_ptr<OurModel>()> make;
};

template <class Model, class... Arguments>
Case make_case(const char* name, Arguments... arguments) {
  return {name, [=] { return std::make_unique<Model>(arguments...); }};
}

std::vector<Case> all_cases() {
  using Sizes = std::vector<std::int64_t>;
  using namespace step_bench;
  return {
      make_case<OurMlp>("MLP 10-16-1, batch 32", Sizes{10, 16, 1}, 32),
      make_case<OurMlp>("MLP 784-512-512-10, batch 128", Sizes{784, 512, 512, 10}, 128),
      make_case<OurLenet>("LeNet 32x32x3, batch 64", 64),
      make_case<OurResnet>("small ResNet 3-32-32-64, 32x32, batch 64", 64),
      make_case<OurLstm>("LSTM 32-64, 50 steps, batch 32", 32, 64, 50, 32),
      make_case<OurLstm>("LSTM 32-128, 50 steps, batch 32", 32, 128, 50, 32),
      make_case<OurTransformer>("transformer, 2 layers d256 h4 ff1024 seq 128, batch 8", 2, 256, 4, 1024, 128, 8),
  };
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

template <class F>
double time_of(F&& f, int steps) {
  const double start = cpu_us();
  for (int i = 0; i < steps; ++i) f();
  return (cpu_us() - start) / steps;
}

void compare(const Options& options) {
  std::printf(
      "| step | run op by op, us | function, us | ratio | peak op by op | planned | measured | lower bound |\n");
  std::printf("|---|---|---|---|---|---|---|---|\n");
  for (const Case& which : all_cases()) {
    if (std::string(which.name).find(options.only) == std::string::npos) continue;
    const auto eager = which.make(), traced = which.make();
    const auto f = function([&] { return traced->traced_step(); });
    const auto run_eager = [&] { return eager->traced_step().item<float>(); };
    const auto run_traced = [&] { return f().item<float>(); };
    for (int i = 0; i < 3; ++i)
      if (run_eager() != run_traced()) std::printf("DIFFERENT RESULTS in %s\n", which.name);
    const int steps = std::max(1, static_cast<int>(10e3 / std::max(1.0, time_of(run_eager, 2))));
    std::vector<double> a, b, ratios;
    for (int round = 0; round < options.rounds; ++round) {
      a.push_back(time_of(run_eager, steps));
      b.push_back(time_of(run_traced, steps));
      ratios.push_back(b.back() / a.back());
    }
    const std::size_t peak = profile([&] { return eager->traced_step(); }).relative_peak_bytes;
    const std::size_t measured = profile([&] { return f(); }).relative_peak_bytes;
    const MemoryPlan plan = f.memory_plan();
    std::printf("| %s | %.1f | %.1f | %.3f | %zu | %zu | %zu | %zu |\n", which.name, median(a), median(b),
                median(ratios), peak, plan.peak_bytes, measured, plan.lower_bound_bytes);
    std::fflush(stdout);
  }
}

void time_tracing(const Options& options) {
  std::printf("\n| nodes | traced, planned and run once, ms |\n|---|---|\n");
  const Tensor x = zeros({4});
  for (const int nodes : {1000, 10'000, 100'000}) {
    if (nodes > 10'000 && !options.is_long) continue;
    const double start = cpu_us();
    const auto f = function([&](Tensor v) {
      for (int i = 0; i < nodes / 2; ++i) v = tanh(v) + x;
      return v;
    });
    f(x);
    std::printf("| %d | %.1f |\n", nodes, (cpu_us() - start) / 1e3);
  }
}

// Two towers that do not depend on each other: one function with one thread and with two, whose larger operations share
// themselves out; and beside it each tower as a function in a thread of its own, the most that running branches side by
// side could give.
void compare_towers(const Options& options) {
  std::printf(
      "\n| two towers of 4 layers | one thread, us | two threads | each in its thread | the same, x faster |\n");
  std::printf("|---|--:|--:|--:|--:|\n");
  for (const std::int64_t width : {16, 64, 128, 256, 512}) {
    std::vector<Variable> weights;
    for (int i = 0; i < 8; ++i)
      weights.emplace_back(random_normal({width, width}, {.seed = static_cast<std::uint64_t>(i)}) * 0.1f);
    const auto tower = [&](Tensor x, std::size_t first) {
      for (std::size_t i = first; i < first + 4; ++i) x = tanh(matmul(x, weights[i]));
      return x;
    };
    const Tensor x = random_normal({64, width}, {.seed = 9});
    const auto both = function([&](Tensor in) { return tower(in, 0) + tower(in, 4); });
    const auto left = function([&](Tensor in) { return tower(in, 0); });
    const auto right = function([&](Tensor in) { return tower(in, 4); });
    const auto timed = [&](auto&& f, int times) {
      const Stopwatch watch;
      for (int i = 0; i < times; ++i) f(x);
      return static_cast<double>(watch.ns()) / 1e3 / times;
    };
    const int times = std::max(3, static_cast<int>(5e3 / timed(both, 3)));
    double best[3] = {1e18, 1e18, 1e18};
    for (int round = 0; round < 4 * options.rounds; ++round) {
      set_num_threads(1);
      best[0] = std::min(best[0], timed(both, times));
      const Stopwatch watch;
      std::thread other([&] { timed(left, times); });
      timed(right, times);
      other.join();
      best[2] = std::min(best[2], static_cast<double>(watch.ns()) / 1e3 / times);
      set_num_threads(2);
      best[1] = std::min(best[1], timed(both, times));
    }
    std::printf("| width %lld, batch 64 | %.1f | %.1f | %.1f | %.2f |\n", static_cast<long long>(width), best[0],
                best[1], best[2], best[1] / best[2]);
  }
  set_num_threads(1);
}

std::size_t resident_kib() {
  std::ifstream file("/proc/self/statm");
  std::size_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

// What `count` runs leave behind.
template <class F>
void watch_runs(const char* name, int count, F&& f) {
  for (int i = 0; i < count / 10; ++i) f();
  const MemoryInfo before = memory();
  const std::size_t resident = resident_kib();
  const Stopwatch watch;
  for (int i = 0; i < count; ++i) f();
  const MemoryInfo after = memory();
  std::printf("| %s | %d | %.2f | %+lld | %+lld | %+lld |\n", name, count,
              static_cast<double>(watch.ns()) / 1000 / count,
              static_cast<long long>(after.num_tensors) - static_cast<long long>(before.num_tensors),
              static_cast<long long>(after.num_bytes) - static_cast<long long>(before.num_bytes),
              static_cast<long long>(resident_kib()) - static_cast<long long>(resident));
}

void watch_all(const Options& options) {
  const int count = options.is_long ? 100'000 : 2'000;
  std::printf("\n| runs of | number | us each | tensors | bytes | resident KiB |\n|---|---|---|---|---|---|\n");
  const auto model = all_cases()[0].make();
  const auto f = function([&] { return model->traced_step(); });
  watch_runs("a training step as a function", count, [&] { f(); });
  Graph g;
  Tensor x, y, train;
  {
    const GraphScope in(g);
    x = placeholder(f32, {-1, 10}, "x");
    const Variable w(random_normal({10, 1}, {.seed = 1}), {.name = "w"});
    y = square(matmul(x, w)).mean();
    train = train::AdamOptimizer(0.01).minimize(y);
  }
  Session session(g);
  session.initialize_variables();
  const Feeds feeds{{x, random_normal({32, 10}, {.seed = 2})}};
  const std::size_t nodes = g.size();
  watch_runs("a session's training step", count, [&] { session.run({train, y}, feeds); });
  std::printf("\nThe graph has %zu nodes, as before: %s.\n", g.size(), g.size() == nodes ? "yes" : "NO");
}

int run(int argc, char** argv) {
  Options options;
  set_num_threads(1);
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) options.rounds = std::atoi(argv[++i]);
    if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) options.only = argv[++i];
    if (std::strcmp(argv[i], "--long") == 0) options.is_long = true;
  }
  if (options.only != "tracing" && options.only != "runs" && options.only != "towers") compare(options);
  if (options.only.empty() || options.only == "tracing") time_tracing(options);
  if (options.only.empty() || options.only == "towers") compare_towers(options);
  if (options.only.empty() || options.only == "runs") watch_all(options);
  return 0;
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) { return plimsoll::run(argc, argv); }
