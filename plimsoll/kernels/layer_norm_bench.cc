// Layer normalization, forward and gradient, by rows (of 1024 and of 256) and threads; ns per element as a counter.
#include <benchmark/benchmark.h>

#include <vector>

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/layer_norm.h"

namespace plimsoll {
namespace {

struct alignas(64) Line {
  std::byte bytes[64];
};

struct Values {
  explicit Values(std::int64_t size) : lines(static_cast<std::size_t>(size) / 16 + 1), elements(size) {
    for (std::int64_t i = 0; i < size; ++i) data()[i] = static_cast<float>(i * 7919 % 201) * 0.01f;
  }
  float* data() { return reinterpret_cast<float*>(lines.data()); }
  TensorView view() { return {data(), 0, f32, {elements}}; }
  std::vector<Line> lines;
  std::int64_t elements;
};

void run(benchmark::State& state, bool back) {
  const std::int64_t rows = state.range(0), columns = state.range(1);
  Values x(rows * columns), y = x, dx = x, gamma(columns), beta(columns), dgamma(columns), dbeta(columns), mean(rows),
                            rstd(rows);
  std::vector<Line> scratch(layer_norm_gradient_scratch_bytes(rows, columns, f32) / 64 + 1);
  set_num_threads(static_cast<int>(state.range(2)));
  layer_norm(x.view(), columns, gamma.view(), beta.view(), 1e-3, {y.view(), mean.view(), rstd.view()});
  for (auto _ : state) {
    if (back)
      layer_norm_gradient(x.view(), columns, gamma.view(), mean.view(), rstd.view(), y.view(),
                          {dx.view(), dgamma.view(), dbeta.view()}, {scratch.data()->bytes, scratch.size() * 64});
    else
      layer_norm(x.view(), columns, gamma.view(), beta.view(), 1e-3, {y.view(), mean.view(), rstd.view()});
    benchmark::ClobberMemory();
  }
  state.counters["ns_per_element"] = benchmark::Counter(1e-9 * double(rows * columns) * double(state.iterations()),
                                                        benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void BM_LayerNorm(benchmark::State& state) { run(state, false); }
void BM_LayerNormGradient(benchmark::State& state) { run(state, true); }

#define PLIMSOLL_ROWS_AND_THREADS     \
  UseRealTime()                       \
      ->Unit(benchmark::kMicrosecond) \
      ->Args({64, 1024, 1})           \
      ->Args({1024, 1024, 1})         \
      ->Args({1024, 1024, 2})         \
      ->Args({1024, 256, 1})          \
      ->Args({1024, 256, 2})          \
      ->Args({16384, 1024, 1})
BENCHMARK(BM_LayerNorm)->PLIMSOLL_ROWS_AND_THREADS;
BENCHMARK(BM_LayerNormGradient)->PLIMSOLL_ROWS_AND_THREADS;

}  // namespace
}  // namespace plimsoll

BENCHMARK_MAIN();
