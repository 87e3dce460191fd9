// What the small things cost: a parallel loop by number of elements (y = y * a + b over floats), a name, random words.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "plimsoll/base/names.h"
#include "plimsoll/base/philox.h"
#include "plimsoll/base/thread_pool.h"

namespace plimsoll {
namespace {

void scale(float* values, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) values[i] = values[i] * 0.999f + 0.001f;
}

void BM_Loop_serial(benchmark::State& state) {
  std::vector<float> values(static_cast<std::size_t>(state.range(0)), 1.f);
  for (auto _ : state) {
    scale(values.data(), 0, state.range(0));
    benchmark::ClobberMemory();
  }
}

void BM_Loop_pool(benchmark::State& state) {
  std::vector<float> values(static_cast<std::size_t>(state.range(0)), 1.f);
  const std::int64_t grain = std::max<std::int64_t>(state.range(0) / 4, 1);
  for (auto _ : state) {
    parallel_for(state.range(0), grain,
                 [&](std::int64_t begin, std::int64_t end) { scale(values.data(), begin, end); });
    benchmark::ClobberMemory();
  }
}

// Workers have gone to sleep before each loop.
void BM_Loop_pool_cold(benchmark::State& state) {
  std::vector<float> values(1024, 1.f);
  for (auto _ : state) {
    state.PauseTiming();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    state.ResumeTiming();
    parallel_for(1024, 256, [&](std::int64_t begin, std::int64_t end) { scale(values.data(), begin, end); });
  }
}

void BM_Intern(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(intern("train/dense_1/matmul"));
}

void BM_PhiloxBlock(benchmark::State& state) {
  Philox random(7);
  for (auto _ : state) benchmark::DoNotOptimize(random.next_block());
}

BENCHMARK(BM_Loop_serial)->Arg(2)->Arg(1024)->Arg(16384)->Arg(65536)->Arg(262144)->Arg(4194304);
BENCHMARK(BM_Loop_pool)->UseRealTime()->Arg(2)->Arg(1024)->Arg(16384)->Arg(65536)->Arg(262144)->Arg(4194304);
BENCHMARK(BM_Loop_pool_cold)->UseRealTime()->Iterations(500);
BENCHMARK(BM_Intern);
BENCHMARK(BM_PhiloxBlock);

}  // namespace
}  // namespace plimsoll

BENCHMARK_MAIN();
