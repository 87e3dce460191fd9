// Elementwise kernels, reductions, softmax and movement against libtorch: one thread each, into existing outputs,
// alternating within one run.
//
//   elementwise_bench [part of a name]      // A table: microseconds of each, and ours / libtorch's.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/kernels/movement.h"
#include "plimsoll/kernels/order.h"
#include "plimsoll/kernels/reduce.h"

namespace plimsoll {
namespace {

using Work = std::function<void()>;
using Torch = at::Tensor;

struct Row {
  std::string name;
  double target;  // The required ratio, ours / libtorch's.
  Work ours, theirs;
};

DType dtype_of(const Torch& t) {
  if (t.scalar_type() == at::kFloat) return f32;
  if (t.scalar_type() == at::kDouble) return f64;
  if (t.scalar_type() == at::kHalf) return f16;
  return t.scalar_type() == at::kLong ? i64 : boolean;
}

// The same memory for both: inputs are shared, outputs are not.
TensorView view(const Torch& t) {
  return {t.data_ptr(), 0, dtype_of(t), Shape(std::span<const std::int64_t>(t.sizes().data(), t.sizes().size()))};
}

std::vector<Row> rows;
void add(std::string name, Work ours, Work theirs, double target = 1) {
  rows.push_back({std::move(name), target, std::move(ours), std::move(theirs)});
}

Torch random(at::IntArrayRef sizes) { return at::rand(sizes) * 4 - 2; }

using UnaryOut = at::Tensor& (*)(at::Tensor&, const at::Tensor&);

void add_unary(const std::string& name, UnaryOp op, UnaryOut theirs, std::int64_t n, bool positive = false) {
  const Torch x = positive ? random({n}).abs() + 0.1 : random({n}), y = at::empty({n}), z = at::empty({n});
  const std::string size = n == 1000 ? "1000" : fmt::format("{} MiB", n >> 18);
  const double target = op == UnaryOp::tanh && n == 1 << 20 ? 0.13 : 1;
  add(
      name + " " + size, [=] { unary(op, view(x), view(y)); },
      [=] {
        Torch out = z;
        theirs(out, x);
      },
      target);
}

void add_elementwise(std::int64_t n) {
  const Torch a = random({n}), b = random({n}), y = at::empty({n}), z = at::empty({n});
  const std::string size = n == 1000 ? "1000" : fmt::format("{} MiB", n >> 18);
  const auto pair = [&](const char* name, BinaryOp op, auto theirs) {
    add(
        fmt::format("{} {}", name, size), [=] { binary(op, view(a), view(b), view(y)); },
        [=] {
          Torch out = z;
          theirs(out, a, b);
        });
  };
  pair("add", BinaryOp::add, [](Torch& o, const Torch& p, const Torch& q) { at::add_out(o, p, q); });
  pair("mul", BinaryOp::multiply, [](Torch& o, const Torch& p, const Torch& q) { at::mul_out(o, p, q); });
  pair("maximum", BinaryOp::maximum, [](Torch& o, const Torch& p, const Torch& q) { at::maximum_out(o, p, q); });
  add_unary("exp", UnaryOp::exp, at::exp_out, n);
  add_unary("log", UnaryOp::log, at::log_out, n, true);
  add_unary("tanh", UnaryOp::tanh, at::tanh_out, n);
  add_unary("sigmoid", UnaryOp::sigmoid, at::sigmoid_out, n);
  add_unary(
      "gelu", UnaryOp::gelu, [](Torch& o, const Torch& x) -> Torch& { return at::gelu_out(o, x); }, n);
  add_unary(
      "relu", UnaryOp::relu, [](Torch& o, const Torch& x) -> Torch& { return at::clamp_min_out(o, x, 0); }, n);
}

void add_softmax() {
  const Torch x = random({1024, 1024}), y = at::empty({1024, 1024}), z = at::empty({1024, 1024});
  add(
      "softmax rows of 1024", [=] { softmax(view(x), view(y)); },
      [=] {
        Torch o = z;
        at::_softmax_out(o, x, 1, false);
      },
      0.5);
  add(
      "log_softmax rows of 1024", [=] { log_softmax(view(x), view(y)); },
      [=] {
        Torch o = z;
        at::_log_softmax_out(o, x, 1, false);
      });
  add(
      "softmax gradient", [=] { softmax_grad(view(x), view(x), view(y)); },
      [=] {
        Torch o = z;
        at::_softmax_backward_data_out(o, x, x, 1, at::kFloat);
      });
}

void add_reductions() {
  const Torch x = random({1024, 1024}), row = at::empty({1024}), row2 = at::empty({1024});
  const Torch one = at::empty({}), one2 = at::empty({}), at1 = at::empty({1024}, at::kLong), at2 = at1.clone();
  add(
      "sum leading", [=] { reduce(ReduceOp::sum, view(x), 1, view(row)); },
      [=] {
        Torch o = row2;
        at::sum_out(o, x, {0});
      },
      0.9);
  add(
      "sum last", [=] { reduce(ReduceOp::sum, view(x), 2, view(row)); },
      [=] {
        Torch o = row2;
        at::sum_out(o, x, {1});
      });
  add(
      "sum all", [=] { reduce(ReduceOp::sum, view(x), 3, view(one)); },
      [=] {
        Torch o = one2;
        at::sum_out(o, x, at::IntArrayRef{0, 1});
      });
  add(
      "max all", [=] { reduce(ReduceOp::max, view(x), 3, view(one)); },
      [=] {
        Torch o = one2;
        at::amax_out(o, x, {0, 1});
      });
  add(
      "max last", [=] { reduce(ReduceOp::max, view(x), 2, view(row)); },
      [=] {
        Torch o = row2;
        at::amax_out(o, x, {1});
      });
  add(
      "max leading", [=] { reduce(ReduceOp::max, view(x), 1, view(row)); },
      [=] {
        Torch o = row2;
        at::amax_out(o, x, {0});
      });
  add(
      "argmax last", [=] { argmax(view(x), 1, view(at1)); },
      [=] {
        Torch o = at2;
        at::argmax_out(o, x, 1);
      });
  add(
      "argmax leading", [=] { argmax(view(x), 0, view(at1)); },
      [=] {
        Torch o = at2;
        at::argmax_out(o, x, 0);
      });
}

void add_broadcasts() {
  const Torch x = random({1024, 1024}), y = at::empty({1024, 1024}), z = at::empty({1024, 1024});
  const Torch column = random({1024, 1}), bias = random({1024});
  add(
      "column [N,1] + [N,M]", [=] { binary(BinaryOp::add, view(x), view(column), view(y)); },
      [=] {
        Torch o = z;
        at::add_out(o, x, column);
      });
  add(
      "row [M] + [N,M]", [=] { binary(BinaryOp::add, view(x), view(bias), view(y)); },
      [=] {
        Torch o = z;
        at::add_out(o, x, bias);
      });
  const Torch narrow = random({104857, 10}), ten = random({10}), narrow_out = at::empty({104857, 10}),
              narrow_out2 = narrow_out.clone();
  add(
      "row [10] + [N,10]", [=] { binary(BinaryOp::add, view(narrow), view(ten), view(narrow_out)); },
      [=] {
        Torch o = narrow_out2;
        at::add_out(o, narrow, ten);
      });
  const Torch tall = random({104857, 1});
  add(
      "column [N,1] + [N,10]", [=] { binary(BinaryOp::add, view(narrow), view(tall), view(narrow_out)); },
      [=] {
        Torch o = narrow_out2;
        at::add_out(o, narrow, tall);
      });
}

void add_movement() {
  const Torch x = random({1024, 1024}), y = at::empty({1024, 1024}), z = at::empty({1024, 1024});
  const Torch heads = random({8, 128, 4, 64}), swapped = at::empty({8, 4, 128, 64}), swapped2 = swapped.clone();
  static const std::int64_t flip[] = {1, 0}, middle[] = {0, 2, 1, 3};
  add(
      "transpose 1024x1024", [=] { transpose(view(x), flip, view(y)); },
      [=] {
        Torch o = z;
        o.copy_(x.t());
      });
  add(
      "transpose [8,128,4,64]", [=] { transpose(view(heads), middle, view(swapped)); },
      [=] {
        Torch o = swapped2;
        o.copy_(heads.permute({0, 2, 1, 3}));
      });
  const Torch left = random({1024, 512}), right = random({1024, 512});
  add(
      "concat axis 1", [=] { concat_part(view(right), 1, concat_part(view(left), 1, 0, view(y)), view(y)); },
      [=] {
        Torch o = z;
        at::cat_out(o, {left, right}, 1);
      });
  add(
      "concat axis 0",
      [=] {
        const TensorView out = view(y).reshaped({2048, 512});
        concat_part(view(right), 0, concat_part(view(left), 0, 0, out), out);
      },
      [=] {
        Torch o = z.view({2048, 512});
        at::cat_out(o, {left, right}, 0);
      });
  const Torch indices = at::randint(0, 1024, {1024}, at::kLong);
  add(
      "gather rows", [=] { gather(view(x), view(indices), 0, view(y)); },
      [=] {
        Torch o = z;
        at::index_select_out(o, x, 0, indices);
      });
  add(
      "cumsum last", [=] { cumsum(view(x), 1, {}, view(y)); },
      [=] {
        Torch o = z;
        at::cumsum_out(o, x, 1);
      });
  add(
      "cumsum leading", [=] { cumsum(view(x), 0, {}, view(y)); },
      [=] {
        Torch o = z;
        at::cumsum_out(o, x, 0);
      });
  const Torch top = at::empty({1024, 5}), where = at::empty({1024, 5}, at::kLong), top2 = top.clone(),
              where2 = where.clone();
  const Torch scratch = at::empty({static_cast<std::int64_t>(top_k_scratch_bytes(Shape{1024, 1024}))}, at::kByte);
  add(
      "top_k 5 of 1024",
      [=] {
        top_k(view(x), 5, view(top), view(where),
              {static_cast<std::byte*>(scratch.data_ptr()), static_cast<std::size_t>(scratch.numel())});
      },
      [=] {
        Torch v = top2, i = where2;
        at::topk_out(v, i, x, 5, 1);
      });
  const Torch sorted = at::empty({1024, 1024}), order = at::empty({1024, 1024}, at::kLong), sorted2 = sorted.clone(),
              order2 = order.clone();
  add(
      "sort rows of 1024", [=] { sort(view(x), {}, view(sorted), view(order)); },
      [=] {
        Torch v = sorted2, i = order2;
        at::sort_out(v, i, x, 1, false);
      });
}

void add_others() {
  const std::int64_t n = 1 << 20;
  const Torch a = random({n}), b = random({n}), y = at::empty({n}), z = at::empty({n});
  const Torch mask = at::empty({n}, at::kBool), mask2 = mask.clone(), chosen = (a > b);
  add(
      "less 4 MiB", [=] { binary(BinaryOp::less, view(a), view(b), view(mask)); },
      [=] {
        Torch o = mask2;
        at::lt_out(o, a, b);
      });
  add(
      "where 4 MiB", [=] { select(view(chosen), view(a), view(b), view(y)); },
      [=] {
        Torch o = z;
        at::where_out(o, chosen, a, b);
      });
  const Torch half = a.to(at::kHalf), half2 = half.clone();
  add(
      "f32 to f16 4 MiB", [=] { copy(view(a), view(half)); },
      [=] {
        Torch o = half2;
        o.copy_(a);
      });
  add(
      "f16 to f32 4 MiB", [=] { copy(view(half), view(y)); },
      [=] {
        Torch o = z;
        o.copy_(half);
      });
  const Torch wide = a.to(at::kDouble), wide2 = at::empty({n}, at::kDouble), wide3 = wide2.clone();
  add(
      "exp f64 8 MiB", [=] { unary(UnaryOp::exp, view(wide), view(wide2)); },
      [=] {
        Torch o = wide3;
        at::exp_out(o, wide);
      });
  add(
      "tanh f64 8 MiB", [=] { unary(UnaryOp::tanh, view(wide), view(wide2)); },
      [=] {
        Torch o = wide3;
        at::tanh_out(o, wide);
      });
}

void add_numbers() {
  const std::int64_t n = 1 << 20;
  const Torch a = random({n}), b = random({n}), y = at::empty({n}), z = at::empty({n});
  const Torch low = at::full({}, -1.f), high = at::full({}, 1.f), two = at::full({}, 2.f), power = at::full({}, 2.3f);
  add(
      "clip 4 MiB", [=] { ternary(TernaryOp::clip, view(a), view(low), view(high), view(y)); },
      [=] {
        Torch o = z;
        at::clamp_out(o, a, -1, 1);
      });
  add(
      "number * 4 MiB", [=] { binary(BinaryOp::multiply, view(a), view(two), view(y)); },
      [=] {
        Torch o = z;
        at::mul_out(o, a, two);
      });
  add(
      "power 2 4 MiB", [=] { binary(BinaryOp::power, view(a), view(two), view(y)); },
      [=] {
        Torch o = z;
        at::pow_out(o, a, 2.f);
      });
  const Torch positive = a.abs() + 0.1;
  add(
      "power 2.3 4 MiB", [=] { binary(BinaryOp::power, view(positive), view(power), view(y)); },
      [=] {
        Torch o = z;
        at::pow_out(o, positive, 2.3f);
      });
  add(
      "power 4 MiB", [=] { binary(BinaryOp::power, view(positive), view(b), view(y)); },
      [=] {
        Torch o = z;
        at::pow_out(o, positive, b);
      });
  add(
      "relu gradient 4 MiB", [=] { binary(BinaryOp::relu_grad, view(a), view(b), view(y)); },
      [=] {
        Torch o = z;
        at::threshold_backward_out(o, b, a, 0);
      });
  add(
      "gelu gradient 4 MiB", [=] { binary(BinaryOp::gelu_grad, view(a), view(b), view(y)); },
      [=] {
        Torch o = z;
        at::gelu_backward_out(o, b, a);
      });
  add(
      "fill 4 MiB", [=] { copy(view(two), view(y)); },
      [=] {
        Torch o = z;
        o.fill_(2.f);
      });
}

double seconds_per_call(const Work& work, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
}

void measure(const Row& row) {
  row.ours(), row.theirs();
  const int calls = std::max(1, static_cast<int>(2e-3 / std::max(seconds_per_call(row.theirs, 1), 1e-7)));
  double ours = 1e9, theirs = 1e9;
  for (int round = 0; round < 25; ++round) {
    ours = std::min(ours, seconds_per_call(row.ours, calls));
    theirs = std::min(theirs, seconds_per_call(row.theirs, calls));
  }
  const double ratio = ours / theirs;
  fmt::print("| {:<26} | {:>10.2f} | {:>10.2f} | {:>5.2f} | {:>6} |\n", row.name, ours * 1e6, theirs * 1e6, ratio,
             ratio <= row.target ? "" : fmt::format("> {}", row.target));
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  using namespace plimsoll;
  at::NoGradGuard no_grad;
  at::set_num_threads(1);
  set_num_threads(1);
  for (const std::int64_t n : {std::int64_t{1000}, std::int64_t{1} << 20, std::int64_t{1} << 24}) add_elementwise(n);
  add_softmax();
  add_reductions();
  add_broadcasts();
  add_movement();
  add_others();
  add_numbers();
  fmt::print("| {:<26} | {:>10} | {:>10} | {:>5} | {:>6} |\n", "us per call, best of 25", "ours", "libtorch", "ratio",
             "misses");
  fmt::print("|{:-<28}|{:->11}:|{:->11}:|{:->6}:|{:->7}:|\n", "", "", "", "", "");
  for (const Row& row : rows)
    if (argc < 2 || row.name.find(argv[1]) != std::string::npos) measure(row);
  return 0;
}
