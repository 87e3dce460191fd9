// Training steps (forward, backward, Adam; eager) compared with libtorch's, interleaved in one process: time and peak
// bytes.
//
//   build-bench/step_bench [--rounds N] [--only PART] [--one]      # --one: without the two-thread table
//
// The ratios are medians over rounds of ours to theirs. libtorch runs with the best of its instruction sets and, in the
// two-thread table, the best of its thread configurations (own pool / OpenBLAS: 1/1, 1/2, 2/1, 2/2). Peak bytes: ours
// by the arena's count, kernels' scratch included; theirs by its allocator's, without what OpenBLAS and oneDNN take.
// "two processes": the steps that two processes of one thread each take in all, to those of one alone: what a second
// processor is worth here.
#include <pthread.h>
#include <sys/resource.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/autograd/internal/step_bench_process.h"
#include "plimsoll/autograd/internal/step_bench_torch.h"
#include "plimsoll/autograd/step_models_testing.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/device/device.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/tensor/make_tensor.h"

namespace {
const void *counted_begin = nullptr, *counted_end = nullptr;  // Where the arena's lock lies.
std::size_t counted_locks = 0;
}  // namespace

// Every lock of the process comes through here, so that those of the arena can be counted.
extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static const Lock lock = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  if (mutex >= counted_begin && mutex < counted_end) ++counted_locks;
  return lock(mutex);
}

namespace plimsoll::step_bench {
namespace {

struct Options {
  int rounds = 15;
  std::string only;
  bool two_threads = true;
};

struct Case {
  const char* name;
  double time_aim, bytes_aim;
  std::function<std::unique_ptr<OurModel>()> ours;
  std::function<std::unique_ptr<TorchModel>()> theirs;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Microseconds of a step.
template <class Model>
double time_of(Model& model, int steps) {
  const Stopwatch watch;
  for (int i = 0; i < steps; ++i) model.step();
  return static_cast<double>(watch.ns()) / steps / 1000;
}

template <class Model>
int steps_for(Model& model) {
  time_of(model, 3);
  return std::max(1, static_cast<int>(15e3 / std::max(1.0, time_of(model, 2))));
}

struct Ratio {
  double ours, theirs, ratio;
};

Ratio compare(OurModel& ours, TorchModel& theirs, int rounds) {
  const int our_steps = steps_for(ours), their_steps = steps_for(theirs);
  std::vector<double> our_times, their_times, ratios;
  for (int round = 0; round < rounds; ++round) {
    our_times.push_back(time_of(ours, our_steps));
    their_times.push_back(time_of(theirs, their_steps));
    ratios.push_back(our_times.back() / their_times.back());
  }
  return {median(our_times), median(their_times), median(ratios)};
}

std::size_t our_peak(const Case& which) {
  const std::size_t before = memory_stats().bytes_in_use;
  const auto model = which.ours();
  for (int i = 0; i < 3; ++i) model->step();
  reset_memory_stats();
  for (int i = 0; i < 3; ++i) model->step();
  return memory_stats().peak_bytes_in_use - before;
}

std::size_t torch_peak(const Case& which) {
  const CountTorch counting;
  const auto model = which.theirs();
  for (int i = 0; i < 3; ++i) model->step();
  CountingAllocator::peak = CountingAllocator::used.load();
  for (int i = 0; i < 3; ++i) model->step();
  return CountingAllocator::peak;
}

struct Steady {
  double allocations, locks, faults;
  std::size_t grown;
};

// What a step does once the caches are warm.
Steady steady(OurModel& model) {
  constexpr int kSteps = 20;
  // After it had to move pages (for the model before) the arena does not cache large blocks for up to 4096 requests.
  constexpr std::size_t kSettled = 6000;
  for (const std::size_t start = memory_stats().num_allocs; memory_stats().num_allocs < start + kSettled;) model.step();
  const Arena& arena = current_device().arena();
  const MemoryStats before = memory_stats();
  rusage usage_before, usage_after;
  getrusage(RUSAGE_SELF, &usage_before);
  counted_begin = &arena, counted_end = &arena + 1;
  counted_locks = 0;
  for (int i = 0; i < kSteps; ++i) model.step();
  counted_begin = counted_end = nullptr;
  getrusage(RUSAGE_SELF, &usage_after);
  const MemoryStats after = memory_stats();
  return {double(after.num_allocs - before.num_allocs) / kSteps, double(counted_locks) / kSteps,
          double(usage_after.ru_minflt - usage_before.ru_minflt) / kSteps,
          after.bytes_reserved - before.bytes_reserved};
}

const char* verdict(double value, double aim) {
  return value <= aim ? "" : value <= aim * 1.1 ? "within 10 %" : "MISSED";
}

void run_one_thread(const std::vector<Case>& cases, const Options& options) {
  set_num_threads(1);
  set_torch_threads(1, 1);
  std::printf(
      "One thread\n\n| step | ours us | libtorch us | ratio | aim | | ours KiB | libtorch KiB | ratio | aim | |\n");
  std::printf("|---|--:|--:|--:|--:|---|--:|--:|--:|--:|---|\n");
  for (const Case& which : cases) {
    const auto ours = static_cast<double>(our_peak(which)), theirs = static_cast<double>(torch_peak(which));
    const auto model = which.ours();
    const auto peer = which.theirs();
    const Ratio time = compare(*model, *peer, options.rounds);
    std::printf("| %s | %.1f | %.1f | %.3f | %.2f | %s | %.0f | %.0f | %.2f | %.2f | %s |\n", which.name, time.ours,
                time.theirs, time.ratio, which.time_aim, verdict(time.ratio, which.time_aim), ours / 1024,
                theirs / 1024, ours / theirs, which.bytes_aim, verdict(ours / theirs, which.bytes_aim));
    std::fflush(stdout);
  }
  std::printf(
      "\n| steady step | allocations | reach the arena's lock | share | page faults | bytes newly reserved |\n");
  std::printf("|---|--:|--:|--:|--:|--:|\n");
  for (const Case& which : cases) {
    const auto model = which.ours();
    const Steady s = steady(*model);
    std::printf("| %s | %.1f | %.2f | %.1f %% | %.2f | %zu |\n", which.name, s.allocations, s.locks,
                100 * s.locks / s.allocations, s.faults, s.grown);
  }
}

// The best of libtorch's thread configurations, in microseconds a step.
double best_of_torch(TorchModel& peer, int rounds, std::string& which) {
  double best = 0;
  for (const auto& [own, blas] : {std::pair(1, 1), {1, 2}, {2, 1}, {2, 2}}) {
    set_torch_threads(own, blas);
    std::vector<double> times;
    const int steps = steps_for(peer);
    for (int round = 0; round < rounds; ++round) times.push_back(time_of(peer, steps));
    if (best == 0 || median(times) < best) {
      best = median(times);
      which = std::to_string(own) + "/" + std::to_string(blas);
    }
  }
  return best;
}

void run_two_threads(const std::vector<Case>& cases, const Options& options) {
  std::printf(
      "\nTwo threads\n\n| step | ours us, 1 | ours us, 2 | times faster | two processes | libtorch us | its threads | "
      "ratio |\n");
  std::printf("|---|--:|--:|--:|--:|--:|---|--:|\n");
  for (const Case& which : cases) {
    OtherProcess other([&] { return which.ours(); });
    const auto model = which.ours();
    const auto peer = which.theirs();
    std::string threads;
    const double theirs = best_of_torch(*peer, std::max(3, options.rounds / 3), threads);
    set_torch_threads(1, 1);
    std::vector<double> one, two, gains, of_processes;
    const int steps = steps_for(*model);
    double in_company = 0;
    for (int round = 0; round < options.rounds; ++round) {
      const auto with_threads = [&](int threads) {
        set_num_threads(threads);
        model->step();  // The thread starts.
        return time_of(*model, steps);
      };
      one.push_back(with_threads(1));
      two.push_back(with_threads(2));
      gains.push_back(one.back() / two.back());
      set_num_threads(1);
      const double beside = other.steps_per_us_while([&] { in_company = time_of(*model, steps); });
      of_processes.push_back(one.back() * (1 / in_company + beside));
    }
    std::printf("| %s | %.1f | %.1f | %.2f | %.2f | %.1f | %s | %.3f |\n", which.name, median(one), median(two),
                median(gains), median(of_processes), theirs, threads.c_str(), median(two) / theirs);
    std::fflush(stdout);
  }
}

template <class Ours, class Theirs, class... Arguments>
Case make_case(const char* name, double time_aim, double bytes_aim, Arguments... arguments) {
  return {name, time_aim, bytes_aim, [=] { return std::make_unique<Ours>(arguments...); },
          [=] { return std::make_unique<Theirs>(arguments...); }};
}

std::vector<Case> all_cases() {
  using Sizes = std::vector<std::int64_t>;
  return {
      make_case<OurMlp, TorchMlp>("MLP 10-16-1, batch 32", 0.08, 1.0, Sizes{10, 16, 1}, 32),
      make_case<OurMlp, TorchMlp>("MLP 784-512-512-10, batch 128", 0.56, 0.9, Sizes{784, 512, 512, 10}, 128),
      make_case<OurLenet, TorchLenet>("LeNet 32x32x3, batch 64", 0.6, 0.8, 64),
      make_case<OurResnet, TorchResnet>("small ResNet 3-32-32-64, 32x32, batch 64", 0.52, 0.7, 64),
      make_case<OurLstm, TorchLstm>("LSTM 32-64, 50 steps, batch 32", 0.31, 0.6, 32, 64, 50, 32),
      make_case<OurLstm, TorchLstm>("LSTM 32-128, 50 steps, batch 32", 0.45, 0.6, 32, 128, 50, 32),
      make_case<OurLayerNorm, TorchLayerNorm>("layer norm alone, 4 MiB", 0.5, 1.0, 1024),
      make_case<OurTransformer, TorchTransformer>("transformer, 2 layers d256 h4 ff1024 seq 128, batch 8", 0.75, 0.7, 2,
                                                  256, 4, 1024, 128, 8),
  };
}

int run(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) options.rounds = std::atoi(argv[++i]);
    if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) options.only = argv[++i];
    if (std::strcmp(argv[i], "--one") == 0) options.two_threads = false;
  }
  std::vector<Case> cases;
  for (const Case& which : all_cases())
    if (std::string(which.name).find(options.only) != std::string::npos) cases.push_back(which);
  run_one_thread(cases, options);
  if (options.two_threads) run_two_threads(cases, options);
  return 0;
}

}  // namespace
}  // namespace plimsoll::step_bench

int main(int argc, char** argv) {
  if (__builtin_cpu_supports("avx512f")) setenv("ATEN_CPU_CAPABILITY", "avx512", 0);
  return plimsoll::step_bench::run(argc, argv);
}
