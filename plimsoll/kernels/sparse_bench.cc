// Sparse times dense in f32 compared with Eigen in the same process: 2048 x 2048, one element in a hundred, times
// [2048, n].
//
//   sparse_bench
//
// The two alternate, sample by sample; Eigen has 32-bit indices and row-major operands. Its templates use only the
// instructions this file is compiled for: with -O3 -march=native it is three times as fast as without, so without them
// the program says that the ratios are not fair to it. A ratio is Eigen's time, which is of one thread, to ours, by
// best and by median sample. A result that differs is an error.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/sparse.h"

#define EIGEN_NO_DEBUG
#include <eigen3/Eigen/SparseCore>

namespace plimsoll {
namespace {

using EigenSparse = Eigen::SparseMatrix<float, Eigen::RowMajor>;
using EigenDense = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct Problem {
  Problem(std::int64_t size, double density, std::int64_t n) : b(size, n), peer(size, n), ours(size, n) {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> uniform(0, 1);
    std::vector<Eigen::Triplet<float>> entries;
    splits.push_back(0);
    for (std::int64_t r = 0; r < size; ++r) {
      for (std::int64_t c = 0; c < size; ++c) {
        if (uniform(random) >= density) continue;
        columns.push_back(c);
        values.push_back(static_cast<float>(uniform(random)) - 0.5f);
        entries.emplace_back(static_cast<int>(r), static_cast<int>(c), values.back());
      }
      splits.push_back(static_cast<std::int64_t>(columns.size()));
    }
    a.resize(size, size);
    a.setFromTriplets(entries.begin(), entries.end());
    b = EigenDense::Random(size, n);
  }
  void run_ours() {
    const std::int64_t rows = b.rows(), n = b.cols();
    sparse_matmul({splits.data(), columns.data(), rows, rows},
                  {values.data(), 0, f32, {static_cast<std::int64_t>(values.size())}}, {b.data(), 0, f32, {rows, n}},
                  {ours.data(), 0, f32, {rows, n}});
  }
  void run_peer() { peer.noalias() = a * b; }

  std::vector<std::int64_t> splits, columns;
  std::vector<float> values;
  EigenSparse a;
  EigenDense b, peer, ours;
};

double sample(const std::function<void()>& f) {
  const std::int64_t start = monotonic_ns();
  f();
  return static_cast<double>(monotonic_ns() - start) / 1000;
}

void compare(std::int64_t n, int threads) {
  Problem problem(2048, 0.01, n);
  set_num_threads(threads);
  std::vector<double> ours, peer;
  for (int i = 0; i < 200; ++i) {
    peer.push_back(sample([&] { problem.run_peer(); }));
    ours.push_back(sample([&] { problem.run_ours(); }));
  }
  const float difference = (problem.ours - problem.peer).cwiseAbs().maxCoeff();
  if (!(difference < 1e-4f)) {
    fmt::print(stderr, "sparse_bench: the results differ by {} for n {}\n", difference, n);
    std::exit(1);
  }
  std::sort(ours.begin(), ours.end());
  std::sort(peer.begin(), peer.end());
  const std::size_t middle = ours.size() / 2;
  fmt::print("{:>5} {:>8} {:>12.0f} {:>12.0f} {:>8.2f} {:>8.2f}\n", n, threads, ours[0], peer[0], peer[0] / ours[0],
             peer[middle] / ours[middle]);
}

}  // namespace
}  // namespace plimsoll

int main() {
#if defined(__x86_64__) && !defined(__AVX2__)
  fmt::print("Eigen is compiled without AVX2: not a fair comparison; compile this file with -O3 -march=native\n");
#endif
  fmt::print("{:>5} {:>8} {:>12} {:>12} {:>8} {:>8}\n", "n", "threads", "ours us", "Eigen us", "best", "median");
  for (const int threads : {1, 2})
    for (const std::int64_t n : {16, 64, 256, 1024}) plimsoll::compare(n, threads);
}
