// Recurrent layers: forward and backward over 50 steps of a batch of 32, by units and threads. GFLOP/s counts the
// matrix products alone.
#include <benchmark/benchmark.h>

#include <vector>

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/recurrent.h"

namespace plimsoll {
namespace {

struct alignas(64) Line {
  std::byte bytes[64];
};

struct Memory {
  explicit Memory(std::size_t bytes) : lines(bytes / 64 + 1) {}
  std::span<std::byte> span() { return {lines.data()->bytes, lines.size() * 64}; }
  std::vector<Line> lines;
};

struct Values {
  explicit Values(const Shape& the_shape, float size) : shape(the_shape), data(shape.size()) {
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = size * static_cast<float>(static_cast<int>(i * 7919 % 201) - 100);
  }
  TensorView view() { return {data.data(), 0, f32, shape}; }
  Shape shape;
  std::vector<float> data;
};

void run(benchmark::State& state, RecurrentRule options, bool back) {
  const std::int64_t batch = 32, time = 50, inputs = 32, units = state.range(0);
  const std::int64_t gates = options.cell == RecurrentCell::simple ? 1 : options.cell == RecurrentCell::lstm ? 4 : 3;
  const RecurrentSizes sizes = {batch, time, inputs, units};
  Values x({batch, time, inputs}, 0.01f), kernel({inputs, gates * units}, 1e-3f), bias({gates * units}, 1e-3f);
  Values recurrent_kernel({units, gates * units}, 1e-3f), y({batch, time, units}, 0), dy({batch, time, units}, 1e-3f);
  Values dx = x, dkernel = kernel, drecurrent_kernel = recurrent_kernel, dbias = bias;
  options.keep_for_gradient = back;
  Memory workspace(recurrent_workspace_bytes(options, sizes, f32)),
      scratch(recurrent_scratch_bytes(options, sizes, f32));
  Memory back_scratch(recurrent_gradient_scratch_bytes(options, sizes, f32));
  const RecurrentInputs in = {
      .x = x.view(), .kernel = kernel.view(), .recurrent_kernel = recurrent_kernel.view(), .bias = bias.view()};
  set_num_threads(static_cast<int>(state.range(1)));
  for (auto _ : state) {
    recurrent(options, in, {.sequence = y.view()}, workspace.span(), scratch.span());
    if (back)
      recurrent_gradient(options, in, {.sequence = dy.view()},
                         {dx.view(), dkernel.view(), drecurrent_kernel.view(), dbias.view(), {}, {}}, workspace.span(),
                         back_scratch.span());
    benchmark::ClobberMemory();
  }
  const double flops = 2.0 * double(batch * time * gates * units * (inputs + units)) * (back ? 3 : 1);
  state.counters["GFLOP/s"] =
      benchmark::Counter(flops * 1e-9 * double(state.iterations()), benchmark::Counter::kIsRate);
}

void BM_Lstm_forward(benchmark::State& state) { run(state, {RecurrentCell::lstm}, false); }
void BM_Lstm_train(benchmark::State& state) { run(state, {RecurrentCell::lstm}, true); }
void BM_Gru_train(benchmark::State& state) { run(state, {RecurrentCell::gru}, true); }
void BM_GruResetAfter_train(benchmark::State& state) {
  run(state, {.cell = RecurrentCell::gru, .reset_after = true}, true);
}
void BM_SimpleRnn_train(benchmark::State& state) { run(state, {RecurrentCell::simple}, true); }

#define PLIMSOLL_UNITS_AND_THREADS \
  UseRealTime()->Unit(benchmark::kMicrosecond)->Args({64, 1})->Args({64, 2})->Args({128, 1})->Args({128, 2})
BENCHMARK(BM_Lstm_forward)->PLIMSOLL_UNITS_AND_THREADS;
BENCHMARK(BM_Lstm_train)->PLIMSOLL_UNITS_AND_THREADS;
BENCHMARK(BM_Gru_train)->PLIMSOLL_UNITS_AND_THREADS;
BENCHMARK(BM_GruResetAfter_train)->PLIMSOLL_UNITS_AND_THREADS;
BENCHMARK(BM_SimpleRnn_train)->PLIMSOLL_UNITS_AND_THREADS;

}  // namespace
}  // namespace plimsoll

BENCHMARK_MAIN();
