// Recurrent layers compared with the same made step by step of small operations, values and gradients.
#include "plimsoll/ops/recurrent.h"

#include <gtest/gtest.h>

#include "plimsoll/autograd/refusal_testing.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/ops/matmul.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/live_tensors.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

enum Cell { kSimple, kLstm, kGru };
constexpr std::int64_t kGates[] = {1, 4, 3};

struct Operands {
  Tensor x, kernel, recurrent, bias, h, c;
  std::vector<Tensor> all() const { return {x, kernel, recurrent, bias, h, c}; }
};

Operands make_operands(Cell cell, std::int64_t batch, std::int64_t time, std::int64_t inputs, std::int64_t units,
                       bool reset_after, DType dtype = f64) {
  const std::int64_t width = kGates[cell] * units;
  const auto make = [&](const Shape& shape, double size, double phase) {
    return varied(shape, -size, size, phase).cast(dtype);
  };
  return {make({batch, time, inputs}, 1, 0.1),
          make({inputs, width}, 0.8, 0.2),
          make({units, width}, 1.5 / static_cast<double>(units), 0.3),
          make(cell == kGru && reset_after ? Shape{2, width} : Shape{width}, 0.5, 0.4),
          make({batch, units}, 0.5, 0.5),
          make({batch, units}, 0.5, 0.6)};
}

Sequence run(Cell cell, const Operands& o, const SequenceOptions& options) {
  SequenceOptions with = options;
  with.initial_h = o.h;
  if (cell == kLstm) with.initial_c = o.c;
  const auto f = cell == kSimple ? simple_rnn : cell == kLstm ? lstm : gru;
  return f(o.x, o.kernel, o.recurrent, o.bias, with);
}

Tensor columns(const Tensor& x, std::int64_t gate, std::int64_t units) {
  return x.slice({0, gate * units}, {-1, units});
}

// One step of h, c; as in Keras.
void step_slowly(Cell cell, const Operands& o, const SequenceOptions& options, const Tensor& x, Tensor& h, Tensor& c) {
  const std::int64_t units = o.recurrent.shape()[0], width = kGates[cell] * units;
  const auto f = [&](const Tensor& z) { return activate(z, options.activation); };
  const auto s = [&](const Tensor& z) { return activate(z, options.recurrent_activation); };
  const bool two = o.bias.rank() == 2;
  const Tensor first = matmul(x, o.kernel) + (two ? o.bias.slice({0, 0}, {1, width}) : o.bias.reshape({1, width}));
  Tensor second = matmul(h, o.recurrent);
  if (two) second = second + o.bias.slice({1, 0}, {1, width});
  const auto gate = [&](int g) { return columns(first, g, units) + columns(second, g, units); };
  if (cell == kSimple) {
    h = f(gate(0));
  } else if (cell == kLstm) {
    c = s(gate(1)) * c + s(gate(0)) * f(gate(2));
    h = s(gate(3)) * f(c);
  } else {
    const Tensor z = s(gate(0)), r = s(gate(1));
    const Tensor inner = two ? r * columns(second, 2, units) : matmul(r * h, columns(o.recurrent, 2, units));
    h = z * h + (1 - z) * f(columns(first, 2, units) + inner);
  }
}

Sequence run_slowly(Cell cell, const Operands& o, const SequenceOptions& options) {
  const std::int64_t batch = o.x.shape()[0], time = o.x.shape()[1], inputs = o.x.shape()[2];
  Tensor h = o.h, c = o.c, output = zeros_like(o.h);
  std::vector<Tensor> outputs;
  for (std::int64_t k = 0; k < time; ++k) {
    const std::int64_t t = options.go_backwards ? time - 1 - k : k;
    Tensor next_h = h, next_c = c;
    step_slowly(cell, o, options, o.x.slice({0, t, 0}, {-1, 1, -1}).reshape({batch, inputs}), next_h, next_c);
    if (options.mask.is_empty_handle()) {
      h = next_h, c = next_c, output = h;
    } else {
      const Tensor keep = options.mask.slice({0, t}, {-1, 1});
      h = where(keep, next_h, h), c = where(keep, next_c, c), output = where(keep, next_h, output);
    }
    outputs.push_back(output);
  }
  return {options.return_sequences ? stack(outputs, 1) : output, h, c};
}

// One number that depends on everything.
Tensor objective(Cell cell, const Sequence& s) {
  Tensor sum = (s.output * varied(s.output.shape(), 0.5, 1.5, 0.7).cast(s.output.dtype())).sum() +
               (s.h * varied(s.h.shape(), 0.5, 1.5, 0.8).cast(s.h.dtype())).sum();
  if (cell == kLstm) sum = sum + (s.c * varied(s.c.shape(), 0.5, 1.5, 0.9).cast(s.c.dtype())).sum();
  return sum;
}

void expect_near(const Tensor& a, const Tensor& b, double tolerance, const std::string& what) {
  if (a.is_empty_handle() || b.is_empty_handle()) {
    EXPECT_EQ(a.is_empty_handle(), b.is_empty_handle()) << what;
    return;
  }
  ASSERT_EQ(a.shape(), b.shape()) << what;
  const auto x = a.cast(f64).to_vector<double>(), y = b.cast(f64).to_vector<double>();
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(x[i], y[i], tolerance * (1 + std::abs(y[i]))) << what << " " << i;
}

void expect_alike(Cell cell, const Operands& o, const SequenceOptions& options, double tolerance,
                  const std::string& what) {
  const auto sources = o.all();
  const auto both = [&](auto&& f) {
    GradientTape tape;
    for (const Tensor& source : sources) tape.watch(source);
    const Sequence s = f(cell, o, options);
    return std::pair(s, tape.gradient(objective(cell, s), sources));
  };
  const auto [quick, quick_gradients] = both(run);
  const auto [slow, slow_gradients] = both(run_slowly);
  expect_near(quick.output, slow.output, tolerance, what + " output");
  expect_near(quick.h, slow.h, tolerance, what + " h");
  if (cell == kLstm) expect_near(quick.c, slow.c, tolerance, what + " c");
  for (std::size_t i = 0; i < (cell == kLstm ? 6u : 5u); ++i)
    expect_near(quick_gradients[i], slow_gradients[i], tolerance * 10, what + " gradient " + std::to_string(i));
  const Sequence plain = run(cell, o, options);  // Without a tape nothing is kept, and the result is the same.
  EXPECT_EQ(plain.output.cast(f64).to_vector<double>(), quick.output.cast(f64).to_vector<double>()) << what;
}

Tensor some_mask(std::int64_t batch, std::int64_t time) {
  std::vector<std::uint8_t> keep;
  for (std::int64_t i = 0; i < batch * time; ++i) keep.push_back(i / time != 0 && i * 7 % 3 != 0);  // Row 0: nothing.
  return from_vector(keep, {batch, time}) != 0;
}

TEST(Recurrent, IsWhatItsStepsAre) {
  const std::int64_t sizes[][4] = {{1, 1, 1, 1},  {3, 4, 2, 5},  {1, 6, 3, 9},
                                   {6, 1, 2, 17}, {19, 3, 5, 8}, {37, 17, 2, 3}};
  for (const Cell cell : {kSimple, kLstm, kGru})
    for (const auto& [batch, time, inputs, units] : sizes)
      for (int choice = 0; choice < 16; ++choice) {
        SequenceOptions options = {.return_sequences = (choice & 1) != 0, .go_backwards = (choice & 2) != 0};
        options.reset_after = (choice & 8) != 0;
        if (cell != kGru && options.reset_after) continue;
        if (choice & 4) options.mask = some_mask(batch, time);
        expect_alike(cell, make_operands(cell, batch, time, inputs, units, options.reset_after), options, 1e-9,
                     "cell " + std::to_string(cell) + " choice " + std::to_string(choice));
      }
}

TEST(Recurrent, TakesOtherActivations) {
  for (const Cell cell : {kSimple, kLstm, kGru})
    for (const Activation f : {Activation::linear, Activation::relu, Activation::sigmoid}) {
      const SequenceOptions options = {.return_sequences = true,
                                       .activation = f,
                                       .recurrent_activation = Activation::hard_sigmoid,
                                       .reset_after = false};
      expect_alike(cell, make_operands(cell, 3, 4, 2, 5, false), options, 1e-9, activation_name(f));
    }
}

TEST(Recurrent, InSinglesIsNear) {
  for (const Cell cell : {kSimple, kLstm, kGru})
    expect_alike(cell, make_operands(cell, 5, 7, 3, 21, true, f32), {.return_sequences = true}, 2e-5, "singles");
}

TEST(Recurrent, BeginsWithZerosAndNeedsNoBias) {
  const Operands o = make_operands(kLstm, 2, 3, 2, 4, true);
  const Tensor zero = zeros({2, 4}, f64), none = zeros({16}, f64);
  const Sequence bare = lstm(o.x, o.kernel, o.recurrent),
                 full = lstm(o.x, o.kernel, o.recurrent, none, {.initial_h = zero, .initial_c = zero});
  EXPECT_EQ(bare.output.to_vector<double>(), full.output.to_vector<double>());
}

TEST(Recurrent, GradientsAgreeWithDifferences) {
  const Operands o = make_operands(kLstm, 2, 3, 2, 3, true);
  expect_gradients(
      [](const Tensors& x) { return lstm(x[0], x[1], x[2], x[3], {.initial_h = x[4], .initial_c = x[5]}).c; }, o.all(),
      false);
  const Operands g = make_operands(kGru, 2, 3, 2, 3, true);
  expect_gradients([](const Tensors& x) { return gru(x[0], x[1], x[2], x[3]).output; },
                   {g.x, g.kernel, g.recurrent, g.bias}, false);
}

TEST(Recurrent, CanBeAskedForGradientsTwice) {
  const Operands o = make_operands(kGru, 3, 4, 2, 5, false);
  GradientTape tape({.persistent = true});
  tape.watch(o.recurrent);
  const Tensor y = gru(o.x, o.kernel, o.recurrent, o.bias, {.reset_after = false}).output.sum();
  const Tensor first = tape.gradient(y, o.recurrent), second = tape.gradient(y, o.recurrent);
  EXPECT_EQ(first.to_vector<double>(), second.to_vector<double>());
}

TEST(Recurrent, GivesTheSameBitsWithTwoThreads) {
  const int before = num_threads();
  for (const Cell cell : {kSimple, kLstm, kGru}) {
    const Operands o = make_operands(cell, 33, 9, 7, 40, true, f32);
    std::vector<std::vector<float>> results[2];
    for (const int threads : {1, 2}) {
      set_num_threads(threads);
      GradientTape tape;
      for (const Tensor& source : o.all()) tape.watch(source);
      const Sequence s = run(cell, o, {.return_sequences = true});
      results[threads - 1].push_back(s.output.to_vector<float>());
      for (const Tensor& g : tape.gradient(objective(cell, s), {o.x, o.kernel, o.recurrent, o.bias, o.h}))
        results[threads - 1].push_back(g.to_vector<float>());
    }
    EXPECT_EQ(results[0], results[1]) << cell;
  }
  set_num_threads(before);
}

TEST(Recurrent, KeepsGatesAndStatesOnce) {
  const Operands o = make_operands(kLstm, 8, 10, 4, 16, true, f32);
  GradientTape tape;
  tape.watch(o.kernel);
  const std::size_t before = memory().num_bytes;
  const Tensor y = lstm(o.x, o.kernel, o.recurrent, o.bias).output;
  EXPECT_EQ(memory().num_bytes - before,
            std::size_t{8 * 10 * 16 * 5 + 8 * 16} * 4);  // i f c o, the cell, and the output.
}

TEST(Recurrent, RefusedAnywhereChangesNothing) {
  const Operands o = make_operands(kLstm, 5, 4, 3, 6, true);
  expect_refused_anywhere(
      "lstm", [&](const Tensors&) { return run(kLstm, o, {.return_sequences = true}).output; }, o.all(), SIZE_MAX);
}

TEST(Recurrent, HasNoSecondDerivative) {
  const Operands o = make_operands(kSimple, 2, 3, 2, 4, true);
  GradientTape outer;
  outer.watch(o.kernel);
  Tensor first;
  {
    GradientTape inner;
    inner.watch(o.kernel);
    first = inner.gradient(simple_rnn(o.x, o.kernel, o.recurrent).output, o.kernel);
  }
  EXPECT_THROW(outer.gradient(first, o.kernel), Unsupported);
}

TEST(Recurrent, RefusesWhatDoesNotGoTogether) {
  const Tensor x = zeros({2, 3, 4}), w = zeros({4, 20}), u = zeros({5, 20}), b = zeros({20});
  expect_refusal([&] { lstm(zeros({2, 4}), w, u); }, "x [2, 4] and kernel [4, 20]");
  expect_refusal([&] { lstm(x, zeros({3, 20}), u); }, "x [2, 3, 4] and kernel [3, 20]");
  expect_refusal([&] { lstm(x, w, zeros({4, 20})); }, "kernel [4, 20] and recurrent_kernel [4, 20]");
  expect_refusal([&] { gru(x, w, u); }, "[units, 3 units]");
  expect_refusal([&] { lstm(zeros({2, 0, 4}), w, u); }, "has no steps");
  expect_refusal([&] { lstm(x, w, u, zeros({5})); }, "bias [5]; it must be [20]");
  expect_refusal([&] { lstm(x, w, u, b, {.initial_h = zeros({3, 5})}); }, "initial_h [3, 5]; it must be [2, 5]");
  expect_refusal([&] { lstm(x, w, u, b, {.initial_c = zeros({5})}); }, "initial_c [5]; it must be [2, 5]");
  expect_refusal([&] { lstm(x, w, u, b, {.mask = zeros({2, 4}, boolean)}); }, "mask [2, 4]; it must be [2, 3]");
  expect_refusal([&] { lstm(x, w, u, b, {.mask = zeros({2, 3})}); }, "mask float32; it must be bool");
  expect_refusal([&] { lstm(x, w, u.cast(f64)); }, "recurrent_kernel float64");
  expect_refusal([&] { lstm(x.cast(i32), w, u); }, "int32");
  expect_refusal([&] { simple_rnn(x, zeros({4, 5}), zeros({5, 5}), {}, {.initial_c = zeros({2, 5})}); }, "initial_c");
  expect_refusal([&] { lstm(x, w, u, b, {.activation = Activation::gelu}); }, "\"gelu\" is not among");
}

TEST(Recurrent, TakesNoRows) {
  const Operands o = make_operands(kLstm, 0, 3, 2, 4, true);
  GradientTape tape;
  tape.watch(o.kernel);
  const Tensor y = run(kLstm, o, {.return_sequences = true}).output;
  EXPECT_EQ(y.shape(), Shape({0, 3, 4}));
  EXPECT_EQ(tape.gradient(y, o.kernel).to_vector<double>(), std::vector<double>(32, 0));
}

}  // namespace
}  // namespace plimsoll
