// Saving and loading a gibibyte, compared with the same bytes written and read in one plain loop, alternating.
// PLIMSOLL_BENCH_DIR chooses the disk.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/crc32c.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/io/checkpoint.h"
#include "plimsoll/io/internal/pieces.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

fs::path bench_folder() {
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
    for (std::size_t at = 0; at < view.nbytes(); at += kPieceBytes)
      check(write(file, view.bytes() + at, kPieceBytes) == static_cast<ssize_t>(kPieceBytes));
  }
  check(fsync(file) == 0 && close(file) == 0);
}

void plain_read(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY);
  for (const NamedTensor& tensor : model()) {
    const TensorView view = writable(tensor.tensor);
    for (std::size_t at = 0; at < view.nbytes(); at += kPieceBytes)
      check(read(file, view.bytes() + at, kPieceBytes) == static_cast<ssize_t>(kPieceBytes));
  }
  close(file);
}

// Out of the page cache, so that the next read comes from the disk.
void forget(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY);
  check(fsync(file) == 0 && posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) == 0 && close(file) == 0);
}

void forget_all() {
  for (const auto& entry : fs::directory_iterator(bench_folder())) forget(entry.path());
}

template <class F>
double seconds(F&& f) {
  const Stopwatch watch;
  f();
  return watch.seconds();
}

// Alternates between both, so that a busy machine slows both; the ratio is that of their best times.
template <class Prepare, class Plain, class Ours>
void compare(benchmark::State& state, Prepare&& prepare, Plain&& plain, Ours&& ours) {
  double best_plain = 1e9, best_ours = 1e9;
  reset_memory_stats("CPU:0");
  bool plain_first = true;
  for (auto _ : state) {
    double taken[2];
    for (const bool is_plain : {plain_first, !plain_first}) {
      prepare();
      taken[is_plain] = is_plain ? seconds(plain) : seconds(ours);
    }
    best_plain = std::min(best_plain, taken[1]);
    best_ours = std::min(best_ours, taken[0]);
    state.SetIterationTime(taken[0]);
    plain_first = !plain_first;
  }
  const MemoryStats stats = memory_stats("CPU:0");
  const double gigabytes = static_cast<double>(1_GiB) * 1e-9;
  state.counters["plain_GB/s"] = gigabytes / best_plain;
  state.counters["ours_GB/s"] = gigabytes / best_ours;
  state.counters["percent_of_plain"] = 100 * best_plain / best_ours;
  state.counters["staging_bytes"] = static_cast<double>(stats.peak_bytes_in_use - stats.bytes_in_use);
  fs::remove_all(bench_folder());
}

// Beside one write and fsync of the same bytes.
void BM_Save(benchmark::State& state) {
  model();
  compare(
      state,
      [] {
        fs::remove_all(bench_folder());
        fs::create_directories(bench_folder());
      },
      [] { plain_write(bench_folder() / "plain"); }, [] { save_checkpoint(bench_folder() / "model", model()); });
}
BENCHMARK(BM_Save)->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(6);

std::vector<RestoreTarget> targets(bool have_values) {
  std::vector<RestoreTarget> made;
  for (const NamedTensor& tensor : model()) made.push_back({tensor.name, writable(tensor.tensor), have_values});
  return made;
}

// Beside one read of the same bytes. Variables that have values are verified before they are written: two passes.
void BM_Load(benchmark::State& state) {
  const bool from_disk = state.range(0) != 0, have_values = state.range(1) != 0;
  fs::create_directories(bench_folder());
  plain_write(bench_folder() / "plain");
  save_checkpoint(bench_folder() / "model", model());
  compare(
      state,
      [&] {
        if (from_disk) forget_all();
      },
      [] { plain_read(bench_folder() / "plain"); },
      [&] { restore_checkpoint(bench_folder() / "model", targets(have_values)); });
  state.SetLabel(std::string(from_disk ? "from the disk" : "from the page cache") +
                 (have_values ? ", over values" : ", into new variables"));
}
BENCHMARK(BM_Load)
    ->Args({0, 0})
    ->Args({0, 1})
    ->Args({1, 0})
    ->Args({1, 1})
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->Iterations(6);

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
