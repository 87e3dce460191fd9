// Convolutions, pooling and normalizations of small image networks compared with libtorch, alternating in one process,
// with one thread and with two.
//
//   convolution_bench [part of a name]      // Best microseconds of each, ours / libtorch's, and our gain by two
//   threads.
//
// libtorch gets each tensor in the layout it is faster with: rows are timed channels first and channels last, and the
// faster counts. Its results are first compared with ours.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/batch_norm.h"
#include "plimsoll/kernels/convolution.h"
#include "plimsoll/kernels/layer_norm.h"
#include "plimsoll/kernels/pooling.h"

namespace plimsoll {
namespace {

using Work = std::function<void()>;
using Torch = at::Tensor;

struct Row {
  std::string name;
  Work ours;
  std::vector<Work> theirs;  // One per layout.
};

std::vector<Row> rows;

Torch random(at::IntArrayRef sizes) { return at::rand(sizes) * 2 - 1; }

// Elements in memory order.
TensorView view(const Torch& t) {
  return {t.data_ptr(), 0, f32, Shape(std::span<const std::int64_t>(t.sizes().data(), t.sizes().size()))};
}

// [batch, rows, columns, channels] for libtorch: [batch, channels, rows, columns], channels first or last in memory.
Torch as_theirs(const Torch& image, bool last) {
  const Torch moved = image.permute({0, 3, 1, 2});
  return moved.contiguous(last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
}

struct Scratch {
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines;
  explicit Scratch(std::size_t bytes) : lines(bytes / 64 + 1) {}
  operator std::span<std::byte>() { return std::as_writable_bytes(std::span(lines)); }
};

void expect_near(const std::string& name, const Torch& ours, const Torch& theirs) {
  const double error = (ours - theirs).abs().max().item<double>(), size = theirs.abs().max().item<double>();
  if (error > 1e-4 * (size + 1)) fmt::print("{}: differs from libtorch's by {} of {}\n", name, error, size);
}

struct Layer {
  const char* name;
  std::int64_t batch, size, channels, taps, outputs, stride, padding, groups = 1;
};

constexpr Layer kLayers[] = {
    {"lenet 3 to 6, 5x5", 64, 32, 3, 5, 6, 1, 0},
    {"lenet 6 to 16, 5x5", 64, 14, 6, 5, 16, 1, 0},
    {"3 to 32, 3x3", 64, 32, 3, 3, 32, 1, 1},
    {"32 to 32, 3x3", 64, 32, 32, 3, 32, 1, 1},
    {"32 to 64, 3x3, stride 2", 64, 32, 32, 3, 64, 2, 1},
    {"64 to 64, 3x3", 64, 16, 64, 3, 64, 1, 1},
    {"32 to 64, 1x1, stride 2", 64, 32, 32, 1, 64, 2, 0},
    {"256 to 256, 3x3, batch 8", 8, 14, 256, 3, 256, 1, 1},
    {"depthwise 64, 3x3", 64, 32, 64, 3, 64, 1, 1, 64},
    {"32 to 32, 3x3, batch 1", 1, 32, 32, 3, 32, 1, 1},
};

void add_convolution(const Layer& l) {
  const std::int64_t p = l.padding, out = (l.size + 2 * p - l.taps) / l.stride + 1;
  const Convolution how = {{l.stride, l.stride, 1, 1, p, p, p, p}, l.groups};
  const Torch x = random({l.batch, l.size, l.size, l.channels}), dy = random({l.batch, out, out, l.outputs});
  const Torch filter = random({l.taps, l.taps, l.channels / l.groups, l.outputs});
  const Torch y = at::empty_like(dy), dx = at::empty_like(x), dfilter = at::empty_like(filter);
  const auto scratch = [&](ConvolutionPass pass) {
    return std::make_shared<Scratch>(
        convolution_scratch_bytes(pass, view(x).shape(), view(filter).shape(), view(y).shape(), how, f32));
  };
  const auto forward = scratch(ConvolutionPass::forward), back = scratch(ConvolutionPass::input_gradient);
  const auto filters = scratch(ConvolutionPass::filter_gradient);
  Row rows_of[] = {
      {"forward", [=] { convolution(view(x), view(filter), view(y), how, {}, *forward); }, {}},
      {"dx", [=] { convolution_input_gradient(view(dy), view(filter), view(dx), how, {}, *back); }, {}},
      {"dfilter", [=] { convolution_filter_gradient(view(x), view(dy), view(dfilter), how, *filters); }, {}}};
  for (const bool last : {false, true}) {
    const Torch tx = as_theirs(x, last), tdy = as_theirs(dy, last);
    const Torch weight =
        filter.permute({3, 2, 0, 1}).contiguous(last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
    const auto gradient = [=](std::array<bool, 3> of) {
      return at::convolution_backward(tdy, tx, weight, at::OptionalIntArrayRef(), {l.stride, l.stride}, {p, p}, {1, 1},
                                      false, {0, 0}, l.groups, of);
    };
    const auto convolve = [=] { return at::conv2d(tx, weight, {}, l.stride, p, 1, l.groups); };
    rows_of[0].theirs.push_back([=] { convolve(); });
    rows_of[1].theirs.push_back([=] { gradient({true, false, false}); });
    rows_of[2].theirs.push_back([=] { gradient({false, true, false}); });
    if (last) continue;
    for (Row& row : rows_of) row.ours();
    expect_near(l.name, y, convolve().permute({0, 2, 3, 1}));
    const auto exact = gradient({true, true, false});
    expect_near(l.name, dx, std::get<0>(exact).permute({0, 2, 3, 1}));
    expect_near(l.name, dfilter, std::get<1>(exact).permute({2, 3, 1, 0}));
  }
  for (Row& row : rows_of) rows.push_back({fmt::format("{}: {}", l.name, row.name), row.ours, row.theirs});
}

void add_pooling(const char* name, std::int64_t size, std::int64_t channels) {
  const Pooling how = {2, 2, {2, 2}};
  const Torch x = random({64, size, size, channels}), dy = random({64, size / 2, size / 2, channels});
  const Torch y = at::empty_like(dy), dx = at::empty_like(x);
  const auto positions = std::make_shared<Scratch>(max_pool_positions_bytes(view(y).shape(), how));
  std::byte* const at = std::span<std::byte>(*positions).data();
  Row forward = {
      fmt::format("max pool {}: forward", name), [=] { max_pool(view(x), view(y), how, (void(positions), at)); }, {}};
  Row back = {fmt::format("max pool {}: dx", name),
              [=] { max_pool_gradient(view(dy), (void(positions), at), view(dx), how); },
              {}};
  for (const bool last : {false, true}) {
    const Torch tx = as_theirs(x, last), tdy = as_theirs(dy, last);
    const auto [ty, indices] = at::max_pool2d_with_indices(tx, {2, 2}, {2, 2});
    forward.theirs.push_back([=] { at::max_pool2d_with_indices(tx, {2, 2}, {2, 2}); });
    back.theirs.push_back([tdy = tdy, tx = tx, indices = indices] {
      at::max_pool2d_with_indices_backward(tdy, tx, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false, indices);
    });
    if (!last) forward.ours(), expect_near(name, y, ty.permute({0, 2, 3, 1}));
  }
  rows.push_back(forward);
  rows.push_back(back);
}

void add_batch_norm(const char* name, std::int64_t size, std::int64_t channels) {
  const Torch x = random({64, size, size, channels}), dy = random({64, size, size, channels});
  const Torch y = at::empty_like(x), dx = at::empty_like(x), gamma = random({channels}), beta = random({channels});
  const Torch mean = at::empty({channels}), variance = at::empty({channels}), rstd = at::empty({channels});
  const Torch dgamma = at::empty({channels}), dbeta = at::empty({channels});
  const auto scratch = std::make_shared<Scratch>(batch_norm_scratch_bytes(view(x).shape(), f32));
  Row forward = {
      fmt::format("batch norm {}: forward", name),
      [=] {
        const ConstTensorView scale = view(gamma), shift = view(beta);
        batch_norm_training(view(x), {&scale, &shift}, view(y), {view(mean), view(variance), view(rstd)}, {}, *scratch);
      },
      {}};
  Row back = {fmt::format("batch norm {}: gradients", name),
              [=] {
                const ConstTensorView scale = view(gamma);
                batch_norm_gradient(view(x), view(dy), view(mean), view(rstd), {&scale}, false,
                                    {view(dx), view(dgamma), view(dbeta)}, *scratch);
              },
              {}};
  for (const bool last : {false, true}) {
    const Torch tx = as_theirs(x, last), tdy = as_theirs(dy, last);
    const auto result = at::native_batch_norm(tx, gamma, beta, {}, {}, true, 0.1, 1e-3);
    const Torch tmean = std::get<1>(result), trstd = std::get<2>(result);
    forward.theirs.push_back([=] { at::native_batch_norm(tx, gamma, beta, {}, {}, true, 0.1, 1e-3); });
    back.theirs.push_back([=] {
      at::native_batch_norm_backward(tdy, tx, gamma, {}, {}, tmean, trstd, true, 1e-3, {true, true, true});
    });
    if (!last) forward.ours(), expect_near(name, y, std::get<0>(result).permute({0, 2, 3, 1}));
  }
  rows.push_back(forward);
  rows.push_back(back);
}

void add_layer_norm(const char* name, std::int64_t count, std::int64_t columns) {
  const Torch x = random({count, columns}), dy = random({count, columns}), gamma = random({columns}),
              beta = random({columns}), y = at::empty_like(x), dx = at::empty_like(x), mean = at::empty({count}),
              rstd = at::empty({count}), dgamma = at::empty({columns}), dbeta = at::empty({columns});
  const auto scratch = std::make_shared<Scratch>(layer_norm_gradient_scratch_bytes(count, columns, f32));
  const auto ours = [=] {
    layer_norm(view(x), columns, view(gamma), view(beta), 1e-5, {view(y), view(mean), view(rstd)});
  };
  const auto theirs = [=] { return at::native_layer_norm(x, {columns}, gamma, beta, 1e-5); };
  ours();
  expect_near(name, y, std::get<0>(theirs()));
  const Torch tmean = std::get<1>(theirs()), trstd = std::get<2>(theirs());
  rows.push_back({fmt::format("layer norm {}: forward", name), ours, {[=] { theirs(); }}});
  rows.push_back({fmt::format("layer norm {}: gradients", name),
                  [=] {
                    layer_norm_gradient(view(x), columns, view(gamma), view(mean), view(rstd), view(dy),
                                        {view(dx), view(dgamma), view(dbeta)}, *scratch);
                  },
                  {[=] {
                    at::native_layer_norm_backward(dy, x, {columns}, tmean, trstd, gamma, beta, {true, true, true});
                  }}});
}

double now(bool of_thread) {
  timespec time = {};
  clock_gettime(of_thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

double microseconds(const Work& work, int repeats, bool of_thread) {
  const double start = now(of_thread);
  for (int i = 0; i < repeats; ++i) work();
  return (now(of_thread) - start) / repeats;
}

struct Best {
  double ours, first, last;  // libtorch's: channels first, channels last.
  double theirs() const { return std::min(first, last); }
};

Best best_of(const Row& row, int threads) {
  set_num_threads(threads);
  at::set_num_threads(threads);
  const bool alone = threads == 1;
  const double once = std::min(microseconds(row.ours, 1, alone), microseconds(row.ours, 1, alone));
  const int repeats = std::max(1, static_cast<int>(2000 / (once + 1)));
  Best best = {1e30, 1e30, 1e30};
  for (int round = 0; round < 15; ++round) {
    best.ours = std::min(best.ours, microseconds(row.ours, repeats, alone));
    best.first = std::min(best.first, microseconds(row.theirs.front(), repeats, alone));
    best.last = std::min(best.last, microseconds(row.theirs.back(), repeats, alone));
  }
  return best;
}

void print_all(const std::string& part) {
  fmt::print("{:42} {:>8} {:>8} {:>8} {:>6}   {:>8} {:>8} {:>8} {:>6} {:>6}\n", "microseconds", "1 thread", "first",
             "last", "ratio", "2", "first", "last", "ratio", "gain");
  for (const Row& row : rows) {
    if (row.name.find(part) == std::string::npos) continue;
    const Best one = best_of(row, 1), two = best_of(row, 2);
    fmt::print("{:42} {:8.0f} {:8.0f} {:8.0f} {:6.2f}   {:8.0f} {:8.0f} {:8.0f} {:6.2f} {:6.2f}\n", row.name, one.ours,
               one.first, one.last, one.ours / one.theirs(), two.ours, two.first, two.last, two.ours / two.theirs(),
               one.ours / two.ours);
  }
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  using namespace plimsoll;
  at::NoGradGuard none;
  for (const Layer& layer : kLayers) add_convolution(layer);
  add_pooling("28x28x6", 28, 6);
  add_pooling("32x32x32", 32, 32);
  add_batch_norm("32x32x32", 32, 32);
  add_batch_norm("16x16x64", 16, 64);
  add_layer_norm("4 MiB", 1024, 1024);
  add_layer_norm("1 MiB, rows of 256", 1024, 256);
  print_all(argc > 1 ? argv[1] : "");
}
