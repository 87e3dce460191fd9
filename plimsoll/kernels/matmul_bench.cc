// Matrix products of f32 into an existing output, compared with OpenBLAS and oneDNN in the same process.
//
//   matmul_bench [threads [squares|shapes]]        (all four tables without arguments)
//
// The three alternate: a burst of samples of one is followed by a burst of the next, and each library has its best
// setting: with one thread the serial OpenBLAS, with more the pthread build; oneDNN's primitive and memory objects are
// made beforehand, with the number of threads they run with. With more than one thread a burst begins when all threads
// of the process sleep, so that the spinning workers of one library do not disturb the next. Gflop/s by the best
// sample; the ratios are those of ours to the better peer, by best and by median sample. A result that differs from the
// peers' is an error.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <dnnl.hpp>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/matmul.h"

namespace plimsoll {
namespace {

struct Case {
  std::int64_t m, k, n, batch = 1;
  bool transpose_a = false, transpose_b = false;

  double flops() const { return 2.0 * static_cast<double>(m * k * n * batch); }
  Shape shape(std::int64_t rows, std::int64_t columns, bool transposed) const {
    return {batch, transposed ? columns : rows, transposed ? rows : columns};
  }
};

template <class T>
T symbol(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (!found) throw std::runtime_error(fmt::format("matmul_bench: no {} in the library", name));
  return reinterpret_cast<T>(found);
}

// One build of OpenBLAS, with its symbols kept private.
class OpenBlas {
 public:
  OpenBlas(const char* path, int threads) : library_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) throw std::runtime_error(fmt::format("matmul_bench: {}", dlerror()));
    sgemm_ = symbol<Sgemm>(library_, "cblas_sgemm");
    symbol<void (*)(int)>(library_, "openblas_set_num_threads")(threads);
    fmt::print("{}\n", symbol<const char* (*)()>(library_, "openblas_get_config")());
  }

  void multiply(const Case& c, const float* a, const float* b, float* out) const {
    const int m = static_cast<int>(c.m), n = static_cast<int>(c.n), k = static_cast<int>(c.k);
    for (std::int64_t i = 0; i < c.batch; ++i)
      sgemm_(101, c.transpose_a ? 112 : 111, c.transpose_b ? 112 : 111, m, n, k, 1.f, a + i * c.m * c.k,
             c.transpose_a ? m : k, b + i * c.k * c.n, c.transpose_b ? k : n, 0.f, out + i * c.m * c.n, n);
  }

 private:
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
  void* library_;
  Sgemm sgemm_;
};

class OneDnn {
 public:
  OneDnn(const Case& c, float* a, float* b, float* out) : stream_(engine_) {
    using Tag = dnnl::memory::format_tag;
    const auto describe = [&](std::int64_t rows, std::int64_t columns, bool transposed) {
      if (c.batch == 1)
        return dnnl::memory::desc({rows, columns}, dnnl::memory::data_type::f32, transposed ? Tag::ba : Tag::ab);
      return dnnl::memory::desc({c.batch, rows, columns}, dnnl::memory::data_type::f32,
                                transposed ? Tag::acb : Tag::abc);
    };
    const auto left = describe(c.m, c.k, c.transpose_a), right = describe(c.k, c.n, c.transpose_b),
               result = describe(c.m, c.n, false);
    product_ = dnnl::matmul({{left, right, result}, engine_});
    arguments_ = {{DNNL_ARG_SRC, dnnl::memory(left, engine_, a)},
                  {DNNL_ARG_WEIGHTS, dnnl::memory(right, engine_, b)},
                  {DNNL_ARG_DST, dnnl::memory(result, engine_, out)}};
  }
  void multiply() {
    product_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_;
  dnnl::matmul product_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

struct FreeMemory {
  void operator()(float* p) const { std::free(p); }
};
using Floats = std::unique_ptr<float[], FreeMemory>;

Floats floats(std::int64_t count, float scale) {
  const auto bytes = (static_cast<std::size_t>(count) * sizeof(float) / 4096 + 1) * 4096;
  Floats values(static_cast<float*>(std::aligned_alloc(4096, bytes)));
  for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = scale * float(i * 7919 % 41 - 20);
  return values;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Waits until the libraries' threads, which spin for up to 0.1 s after a call, are asleep.
void settle() {
  const auto used = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  for (double before = -1; used() - before > 1e-3;) {
    before = used();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

constexpr double kSampleSeconds = 2e-4, kBurstSeconds = 4e-3;
constexpr double kSeconds = 1.5;  // For all bursts of a case.
constexpr int kFewest = 7;        // Bursts of each.

struct Lane {
  std::function<void()> run;
  std::int64_t calls = 1;  // Per sample.
  std::vector<double> samples = {};

  void choose_calls() {
    const double begin = now();
    std::int64_t count = 0;
    do {
      run();
      ++count;
    } while (now() - begin < kSampleSeconds);
    calls = count;
  }
  // A burst of samples, after waiting for the others' threads and a run to wake ours.
  void sample(bool pause) {
    if (pause) settle();
    for (double begin = now(); pause && now() - begin < 1e-3;) run();
    const double start = now();
    do {
      const double begin = now();
      for (std::int64_t i = 0; i < calls; ++i) run();
      samples.push_back((now() - begin) / static_cast<double>(calls));
    } while (now() - start < kBurstSeconds);
  }
  double best() { return *std::min_element(samples.begin(), samples.end()); }
  double median() {
    std::sort(samples.begin(), samples.end());
    return samples[samples.size() / 2];
  }
};

void expect_same(const Case& c, const float* ours, const float* theirs, const char* name) {
  for (std::int64_t i = 0; i < c.batch * c.m * c.n; ++i)
    if (std::fabs(ours[i] - theirs[i]) > 1e-3f * (1 + std::fabs(theirs[i])))
      throw std::runtime_error(
          fmt::format("matmul_bench: {} differs at {}: ours {}, theirs {}", name, i, ours[i], theirs[i]));
}

void measure(const Case& c, const OpenBlas& blas, int threads) {
  const Floats a = floats(c.batch * c.m * c.k, 0.25f), b = floats(c.batch * c.k * c.n, 0.125f);
  const Floats out = floats(c.batch * c.m * c.n, 1), other = floats(c.batch * c.m * c.n, 2);
  const ConstTensorView left(a.get(), 0, f32, c.shape(c.m, c.k, c.transpose_a));
  const ConstTensorView right(b.get(), 0, f32, c.shape(c.k, c.n, c.transpose_b));
  const TensorView result(out.get(), 0, f32, c.shape(c.m, c.n, false));
  const MatmulFlags flags = {c.transpose_a, c.transpose_b};
  const std::size_t bytes = matmul_scratch_bytes(left.shape(), right.shape(), f32, flags);
  const Floats scratch = floats(static_cast<std::int64_t>(bytes / 4 + 1), 0);
  OneDnn onednn(c, a.get(), b.get(), other.get());
  Lane lanes[] = {{[&] {
                    matmul(left, right, result, flags, {reinterpret_cast<std::byte*>(scratch.get()), bytes});
                  }},
                  {[&] { blas.multiply(c, a.get(), b.get(), other.get()); }},
                  {[&] { onednn.multiply(); }}};
  for (Lane& lane : lanes) {
    lane.choose_calls();
    if (&lane != lanes) expect_same(c, out.get(), other.get(), &lane == lanes + 1 ? "OpenBLAS" : "oneDNN");
  }
  const double begin = now();
  for (int i = 0; i < kFewest || now() - begin < kSeconds; ++i)
    for (Lane& lane : lanes) lane.sample(threads > 1);
  const double peer = std::min(lanes[1].best(), lanes[2].best()),
               median = std::min(lanes[1].median(), lanes[2].median());
  fmt::print("| {}{}x{}x{}{}{} | {:.1f} | {:.1f} | {:.1f} | {:.2f} ({:.2f}) | {:.3f} |\n",
             c.batch > 1 ? fmt::format("{} of ", c.batch) : "", c.m, c.k, c.n, c.transpose_a ? ", left transposed" : "",
             c.transpose_b ? ", right transposed" : "", c.flops() / lanes[0].best() * 1e-9,
             c.flops() / lanes[1].best() * 1e-9, c.flops() / lanes[2].best() * 1e-9, peer / lanes[0].best(),
             median / lanes[0].median(), lanes[0].best() * 1e6);
  std::fflush(stdout);
}

std::vector<Case> squares() {
  std::vector<Case> cases;
  for (const std::int64_t n : {8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048})
    cases.push_back({n, n, n});
  return cases;
}

std::vector<Case> shapes() {
  std::vector<Case> cases;
  for (const std::int64_t n : {16, 32, 64, 128, 512, 1024}) {
    cases.push_back({n, n, n, 1, true, false});
    cases.push_back({n, n, n, 1, false, true});
    cases.push_back({n, n, n, 1, true, true});
  }
  for (const Case& c : {Case{128, 784, 512}, {32, 10, 16}, {32, 16, 1}, {1024, 256, 1024}, {1600, 32, 256}})
    cases.push_back(c);
  for (const Case& c : {Case{32, 64, 256}, {1, 784, 512}, {784, 128, 512, 1, true}, {100, 70, 513}, {7, 17, 5}})
    cases.push_back(c);
  cases.push_back({128, 64, 128, 32});
  cases.push_back({128, 64, 128, 32, false, true});
  return cases;
}

void table(int threads, std::string_view which) {
  set_num_threads(threads);
  symbol<void (*)(int)>(RTLD_DEFAULT, "omp_set_num_threads")(threads);
  const OpenBlas blas(threads == 1 ? OPENBLAS_SERIAL : OPENBLAS_PTHREAD, threads);
  fmt::print(
      "\n{} thread{}, Gflop/s\n\n| m x k x n | ours | OpenBLAS | oneDNN | best (median) to the better | us |\n"
      "|---|--:|--:|--:|--:|--:|\n",
      threads, threads == 1 ? "" : "s");
  for (const Case& c : which == "squares" ? squares() : shapes()) measure(c, blas, threads);
  fmt::print("\n");
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  using namespace plimsoll;
  try {
    for (const int threads : {1, 2})
      for (const std::string_view which : {"squares", "shapes"})
        if ((argc < 2 || std::atoi(argv[1]) == threads) && (argc < 3 || argv[2] == which)) table(threads, which);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
