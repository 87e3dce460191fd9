// Saving and loading a gibibyte, beside the same bytes written and read in one plain loop, in turns.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/io/checkpoint.h"
#include "plimsoll/io/internal/crc32c.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

fs::path bench_folder() {  // PLIMSOLL_BENCH_DIR chooses the disk.
  const char* chosen = std::getenv("PLIMSOLL_BENCH_DIR");
  return (chosen ? fs::path(chosen) : fs::temp_directory_path()) / "plimsoll_checkpoint_bench";
}

std::vector<NamedTensor>& model() {
  static std::vector<NamedTensor> tensors = [] {
    std::vector<NamedTensor> made;
    for (int i = 0; i < 16; ++i) {
      Tensor tensor = make_tensor({.op = "bench"}, {16, 1024, 1024}, f32, current_device());
      for (float& element : writable(tensor).span<float>()) element = static_cast<float>(i);
      made.push_back({"layer" + std::to_string(i), tensor});
    }
    return made;
  }();
  return tensors;
}

void check(bool fine) {
  if (!fine) std::abort();
}

void plain_write(const fs::path& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  for (const NamedTensor& tensor : model()) {
    const ConstTensorView view = tensor.tensor.view();
    for (std::size_t at = 0; at < view.nbytes(); at += 1_MiB)
      check(write(file, view.bytes() + at, 1_MiB) == static_cast<ssize_t>(1_MiB));
  }
  check(fsync(file) == 0 && close(file) == 0);
}

void plain_read(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY);
  for (const NamedTensor& tensor : model()) {
    const TensorView view = writable(tensor.tensor);
    for (std::size_t at = 0; at < view.nbytes(); at += 1_MiB)
      check(read(file, view.bytes() + at, 1_MiB) == static_cast<ssize_t>(1_MiB));
  }
  close(file);
}

void report(benchmark::State& state) { state.SetBytesProcessed(static_cast<std::int64_t>(1_GiB) * state.iterations()); }

void BM_Save(benchmark::State& state) {
  fs::create_directories(bench_folder());
  model();
  for (auto _ : state) {
    if (state.range(0) == 0)
      plain_write(bench_folder() / "plain");
    else
      save_checkpoint(bench_folder() / "model", model());
    state.PauseTiming();
    fs::remove_all(bench_folder());
    fs::create_directories(bench_folder());
    state.ResumeTiming();
  }
  state.SetLabel(state.range(0) == 0 ? "plain write and fsync" : "save_checkpoint");
  report(state);
}
BENCHMARK(BM_Save)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime()->Repetitions(3)->Iterations(1);

void BM_Load(benchmark::State& state) {
  fs::create_directories(bench_folder());
  plain_write(bench_folder() / "plain");
  save_checkpoint(bench_folder() / "model", model());
  const BundleReader reader(bench_folder() / "model");
  reset_memory_stats("CPU:0");
  for (auto _ : state) {
    if (state.range(0) == 0) plain_read(bench_folder() / "plain");
    if (state.range(0) == 1)
      for (const NamedTensor& tensor : model()) reader.read_into(tensor.name, writable(tensor.tensor));
    if (state.range(0) == 2) {
      std::vector<RestoreTarget> targets;
      for (const NamedTensor& tensor : model()) targets.push_back({tensor.name, writable(tensor.tensor)});
      restore_checkpoint(reader, targets);
    }
  }
  const MemoryStats stats = memory_stats("CPU:0");
  state.counters["staging_bytes"] = static_cast<double>(stats.peak_bytes_in_use - stats.bytes_in_use);
  state.SetLabel(state.range(0) == 0 ? "plain read" : state.range(0) == 1 ? "read_into" : "restore_checkpoint");
  report(state);
  fs::remove_all(bench_folder());
}
BENCHMARK(BM_Load)->Arg(0)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime()->Repetitions(3)->Iterations(1);

void BM_Crc32c(benchmark::State& state) {
  const ConstTensorView view = model()[0].tensor.view();
  const std::span<const std::byte> bytes(view.bytes(), static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(crc32c(bytes));
  state.SetBytesProcessed(state.range(0) * state.iterations());
}
BENCHMARK(BM_Crc32c)->Arg(64)->Arg(4096)->Arg(256 << 10)->Arg(64 << 20);

}  // namespace
}  // namespace plimsoll

BENCHMARK_MAIN();
