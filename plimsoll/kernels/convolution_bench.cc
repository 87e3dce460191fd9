// Convolutions, pooling and batch normalisation of small image networks: GF/s (or GB/s) by pass, batch and threads.
//
//   convolution_bench --benchmark_filter='forward/.*/64/threads:1'
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/batch_norm.h"
#include "plimsoll/kernels/convolution.h"
#include "plimsoll/kernels/pooling.h"

namespace plimsoll {
namespace {

struct Layer {
  const char* name;
  std::int64_t size, channels, taps, outputs;
  Window window;
  std::int64_t groups = 1;
};

const Layer kLayers[] = {
    {"3_to_32", 32, 3, 3, 32, {1, 1, 1, 1, 1, 1, 1, 1}},
    {"32_to_32", 32, 32, 3, 32, {1, 1, 1, 1, 1, 1, 1, 1}},
    {"32_to_64_stride_2", 32, 32, 3, 64, {2, 2, 1, 1, 0, 1, 0, 1}},
    {"64_to_64", 16, 64, 3, 64, {1, 1, 1, 1, 1, 1, 1, 1}},
    {"shortcut_32_to_64", 32, 32, 1, 64, {2, 2}},
    {"lenet_3_to_6", 32, 3, 5, 6, {}},
    {"lenet_6_to_16", 14, 6, 5, 16, {}},
    {"256_to_256", 14, 256, 3, 256, {1, 1, 1, 1, 1, 1, 1, 1}},
    {"depthwise_64", 32, 64, 3, 64, {1, 1, 1, 1, 1, 1, 1, 1}, 64},
};

// Memory on a 64-byte boundary, filled with one number.
struct Buffer {
  struct alignas(64) Line {
    float values[16];
  };
  std::vector<Line> lines;
  Shape shape;
  explicit Buffer(const Shape& of) : lines(of.size() / 16 + 1), shape(of) {
    for (Line& line : lines)
      for (float& value : line.values) value = 0.5f;
  }
  TensorView view() { return {lines.data(), 0, f32, shape}; }
};

struct Scratch {
  std::vector<Buffer::Line> lines;
  explicit Scratch(std::size_t bytes) : lines(bytes / 64 + 1) {}
  operator std::span<std::byte>() { return std::as_writable_bytes(std::span(lines)); }
};

void BM_Convolution(benchmark::State& state, const Layer& layer, ConvolutionPass pass) {
  const std::int64_t batch = state.range(0);
  set_num_threads(static_cast<int>(state.range(1)));
  const Convolution convolution = {layer.window, layer.groups};
  const std::int64_t out = layer.window.positions_down(layer.size, layer.taps);
  Buffer x({batch, layer.size, layer.size, layer.channels}), y({batch, out, out, layer.outputs});
  Buffer filter({layer.taps, layer.taps, layer.channels / layer.groups, layer.outputs});
  Scratch scratch(convolution_scratch_bytes(pass, x.shape, filter.shape, y.shape, convolution, f32));
  for (auto _ : state) {
    if (pass == ConvolutionPass::forward)
      plimsoll::convolution(x.view(), filter.view(), y.view(), convolution, {}, scratch);
    else if (pass == ConvolutionPass::input_gradient)
      convolution_input_gradient(y.view(), filter.view(), x.view(), convolution, {}, scratch);
    else
      convolution_filter_gradient(x.view(), y.view(), filter.view(), convolution, scratch);
    benchmark::ClobberMemory();
  }
  const double flops = 2.0 * static_cast<double>(y.shape.size() * filter.shape.size()) / double(layer.outputs);
  state.counters["GF/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["scratch_KiB"] = static_cast<double>(scratch.lines.size()) / 16;
}

void BM_MaxPool(benchmark::State& state, std::int64_t size, std::int64_t channels, bool backward) {
  set_num_threads(static_cast<int>(state.range(1)));
  const Pooling pooling = {2, 2, {2, 2}};
  Buffer x({state.range(0), size, size, channels}), y({state.range(0), size / 2, size / 2, channels});
  Scratch positions(max_pool_positions_bytes(y.shape, pooling));
  std::byte* const at = std::span<std::byte>(positions).data();
  max_pool(x.view(), y.view(), pooling, at);
  for (auto _ : state) {
    if (backward)
      max_pool_gradient(y.view(), at, x.view(), pooling);
    else
      max_pool(x.view(), y.view(), pooling, at);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>((x.shape.size() + y.shape.size()) * 4));
}

void BM_BatchNorm(benchmark::State& state, std::int64_t size, std::int64_t channels, bool backward) {
  set_num_threads(static_cast<int>(state.range(1)));
  const Shape shape = {state.range(0), size, size, channels}, row = {channels};
  Buffer x(shape), y(shape), dx(shape), gamma(row), beta(row), mean(row), variance(row), rstd(row), dgamma(row);
  Scratch scratch(batch_norm_scratch_bytes(shape, f32));
  const ConstTensorView gamma_view = gamma.view(), beta_view = beta.view(), y_view = y.view();
  for (auto _ : state) {
    if (backward)
      batch_norm_gradient(x.view(), y.view(), mean.view(), rstd.view(), &gamma_view, &y_view,
                          {dx.view(), dgamma.view(), variance.view()}, scratch);
    else
      batch_norm_training(x.view(), {&gamma_view, &beta_view}, y.view(), {mean.view(), variance.view(), rstd.view()},
                          {.relu = true}, scratch);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(shape.size() * 4) * (backward ? 4 : 2));
}

void all_sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"batch", "threads"})->UseRealTime();
  for (const int threads : {1, 2})
    for (const int batch : {64, 1}) bench->Args({batch, threads});
}

[[maybe_unused]] const bool registered = [] {
  const std::pair<const char*, ConvolutionPass> passes[] = {{"forward", ConvolutionPass::forward},
                                                            {"input_gradient", ConvolutionPass::input_gradient},
                                                            {"filter_gradient", ConvolutionPass::filter_gradient}};
  for (const Layer& layer : kLayers)
    for (const auto& [name, pass] : passes)
      all_sizes(benchmark::RegisterBenchmark((std::string("BM_Convolution/") + layer.name + "/" + name).c_str(),
                                             BM_Convolution, layer, pass));
  for (const bool backward : {false, true}) {
    const std::string way = backward ? "backward" : "forward";
    all_sizes(benchmark::RegisterBenchmark(("BM_MaxPool/28x28x6/" + way).c_str(), BM_MaxPool, 28, 6, backward));
    all_sizes(benchmark::RegisterBenchmark(("BM_MaxPool/32x32x32/" + way).c_str(), BM_MaxPool, 32, 32, backward));
    all_sizes(benchmark::RegisterBenchmark(("BM_BatchNorm/32x32x32/" + way).c_str(), BM_BatchNorm, 32, 32, backward));
  }
  return true;
}();

}  // namespace
}  // namespace plimsoll

BENCHMARK_MAIN();
