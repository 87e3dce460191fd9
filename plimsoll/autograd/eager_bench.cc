// Eager operations compared with libtorch's, interleaved in one process: medians over rounds, and the ratio of ours to
// theirs.
//
//   build-bench/eager_bench [rounds]
#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "plimsoll/autograd/tape.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/softmax.h"
#include "plimsoll/tensor/live_tensors.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/tidy.h"

namespace pl = plimsoll;

namespace {

// Nanoseconds of one call, the best of a few runs of some milliseconds.
double time_of(const std::function<void()>& work, int calls) {
  const pl::Stopwatch watch;
  for (int i = 0; i < calls; ++i) work();
  return static_cast<double>(watch.ns()) / calls;
}

int calls_for(const std::function<void()>& work) {
  work();
  const double once = std::max(time_of(work, 3), 20.0);
  return std::max(1, static_cast<int>(4e6 / once));
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void compare(const std::string& name, double target, int rounds, const std::function<void()>& ours,
             const std::function<void()>& theirs) {
  const int our_calls = calls_for(ours), their_calls = calls_for(theirs);
  std::vector<double> our_times, their_times, ratios;
  for (int round = 0; round < rounds; ++round) {
    our_times.push_back(time_of(ours, our_calls));
    their_times.push_back(time_of(theirs, their_calls));
    ratios.push_back(our_times.back() / their_times.back());
  }
  const double ratio = median(ratios);
  std::printf("%-44s %12.1f %12.1f %7.3f %7.2f %s\n", name.c_str(), median(our_times), median(their_times), ratio,
              target,
              ratio <= target         ? ""
              : ratio <= target * 1.1 ? "(within 10 %)"
                                      : "MISSED");
  std::fflush(stdout);
}

void alone(const std::string& name, double target, int rounds, const std::function<void()>& ours) {
  const int calls = calls_for(ours);
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) times.push_back(time_of(ours, calls));
  std::printf("%-44s %12.1f %12s %7s %7.0f %s\n", name.c_str(), median(times), "", "", target,
              median(times) <= target ? "" : "MISSED");
}

void compare_adds(int rounds) {
  const pl::Tensor x = pl::ones({1}), y = pl::ones({1}), a = pl::ones({1000}), b = pl::ones({1000});
  const torch::Tensor tx = torch::ones({1}), ty = torch::ones({1}), ta = torch::ones({1000}), tb = torch::ones({1000});
  compare(
      "add, 1 element", 0.08, rounds, [&] { pl::Tensor z = x + y; }, [&] { torch::Tensor z = tx + ty; });
  {
    const torch::Tensor gx = torch::ones({1}, torch::requires_grad());
    pl::GradientTape tape({.persistent = true});
    tape.watch(x);
    int count = 0;
    compare(
        "add, 1 element, with tape", 0.08, rounds,
        [&] {
          if (++count % 1000 == 0) {
            tape.reset();
            tape.watch(x);
          }
          pl::Tensor z = x + y;
        },
        [&] { torch::Tensor z = gx + ty; });
  }
  compare(
      "add, 1000 elements", 0.12, rounds, [&] { pl::Tensor z = a + b; }, [&] { torch::Tensor z = ta + tb; });
  const pl::Tensor c = pl::ones({16 << 20}), d = pl::ones({16 << 20});
  const torch::Tensor tc = torch::ones({16 << 20}), td = torch::ones({16 << 20});
  compare(
      "a + b, 64 MiB, output allocated", 0.46, rounds, [&] { pl::Tensor z = c + d; },
      [&] { torch::Tensor z = tc + td; });
}

void compare_maths(int rounds) {
  const pl::Tensor x = pl::full({1024, 1024}, 0.7f);
  const torch::Tensor tx = torch::full({1024, 1024}, 0.7f);
  compare(
      "tanh, 4 MiB", 0.13, rounds, [&] { pl::Tensor z = pl::tanh(x); }, [&] { torch::Tensor z = torch::tanh(tx); });
  compare(
      "softmax, 4 MiB", 0.5, rounds, [&] { pl::Tensor z = pl::softmax(x); },
      [&] { torch::Tensor z = torch::softmax(tx, 1); });
  compare(
      "sum over the leading dimension, 4 MiB", 0.9, rounds, [&] { pl::Tensor z = x.sum({0}); },
      [&] { torch::Tensor z = tx.sum(0); });
}

void compare_backward(int rounds) {
  const pl::Tensor x = pl::full({8}, 0.5f);
  const torch::Tensor tx = torch::full({8}, 0.5f, torch::requires_grad());
  // Each side runs forward and backward; the forward alone is timed beside it and taken off.
  const auto chain = [](const auto& t) {
    auto y = t * 1.5f;
    for (int i = 0; i < 3; ++i) y = tanh(y) * y + y;
    return y;
  };
  std::vector<double> ratios, ours, theirs;
  const auto forward = [&] {
    pl::GradientTape tape;
    tape.watch(x);
    chain(x);
  };
  const auto both = [&] {
    pl::GradientTape tape;
    tape.watch(x);
    const pl::Tensor y = chain(x);
    const pl::Tensor g = tape.gradient(y, x);
  };
  const auto torch_both = [&] { const auto g = torch::autograd::grad({chain(tx).sum()}, {tx}); };
  const auto torch_sum = [&] { chain(tx).sum(); };
  for (int round = 0; round < rounds; ++round) {
    const double mine = time_of(both, 2000) - time_of(forward, 2000);
    const double other = time_of(torch_both, 300) - time_of(torch_sum, 300);
    ours.push_back(mine);
    theirs.push_back(other);
    ratios.push_back(mine / other);
  }
  const double ratio = median(ratios);
  std::printf("%-44s %12.1f %12.1f %7.3f %7.2f %s\n", "backward of a 10-op chain", median(ours), median(theirs), ratio,
              0.1,
              ratio <= 0.1    ? ""
              : ratio <= 0.11 ? "(within 10 %)"
                              : "MISSED");
}

// A tensor without its storage: what the record, the handle and the counting cost.
void measure_record(int rounds) {
  pl::Device& device = pl::current_device();
  const pl::Shape shape({4});
  const pl::BlockLabel label = pl::block_label({.op = "record"}, shape, pl::f32);
  std::vector<double> differences;
  for (int round = 0; round < 5 * rounds; ++round) {
    const double tensor =
        time_of([&] { pl::Tensor z = pl::make_tensor({.op = "record"}, shape, pl::f32, device); }, 20000);
    const double storage = time_of([&] { pl::StorageRef z = pl::Storage::take(device, 16, label); }, 20000);
    differences.push_back(tensor - storage);
  }
  std::printf("%-44s %12.1f %12s %7s %7.0f %s\n", "record of a tensor, made and dropped", median(differences), "", "",
              10., median(differences) <= 10 ? "" : "MISSED");
}

void measure_many() {
  for (const std::size_t count : {std::size_t{10000}, std::size_t{100000}, std::size_t{1000000}}) {
    std::vector<pl::Tensor> tensors(count);
    const pl::Stopwatch making;
    for (pl::Tensor& tensor : tensors) tensor = pl::make_tensor({.op = "many"}, {4}, pl::f32, pl::current_device());
    const double made = static_cast<double>(making.ns());
    const pl::Stopwatch asking;
    const std::size_t counted = pl::memory().num_tensors;
    const double asked = static_cast<double>(asking.ns());
    const pl::Stopwatch listing;
    const std::size_t listed = pl::live_tensors().size();
    const double told = static_cast<double>(listing.ns());
    const auto each = static_cast<double>(count);
    std::printf(
        "%7zu live: make %.0f ns each, memory() %.0f ns, live_tensors() %.0f ns each (%zu counted, %zu listed)\n",
        count, made / each, asked, told / each, counted, listed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 11;
  pl::set_num_threads(1);
  at::set_num_threads(1);
  std::printf("%-44s %12s %12s %7s %7s\n", "one thread", "ours, ns", "torch, ns", "ratio", "target");
  compare_adds(rounds);
  compare_maths(rounds);
  compare_backward(rounds);
  const pl::Tensor x = pl::ones({1}), y = pl::ones({1});
  alone("tidy, empty", 50, rounds, [] { pl::tidy([] {}); });
  alone("tidy with one add", 150, rounds, [&] { pl::tidy([&] { x + y; }); });
  measure_record(rounds);
  measure_many();
  return 0;
}
