#include "plimsoll/kernels/recurrent.h"

#include <gtest/gtest.h>

#include <cstring>

#include "plimsoll/base/heap_count_testing.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/kernels/recurrent_testing.h"

namespace plimsoll {
namespace {

using enum RecurrentActivation;

std::string name_of(const RecurrentProblem& p) {
  const auto& [batch, time, inputs, units] = p.sizes;
  std::string name = std::to_string(int(p.options.cell)) + (p.options.reset_after ? "a " : " ");
  for (const std::int64_t size : {batch, time, inputs, units}) name += std::to_string(size) + " ";
  return name + (p.has_mask ? "masked " : "") + (p.has_states ? "states " : "") + (p.options.reverse ? "reverse" : "");
}

// Cells with the activations of Keras, of TF.js, and others.
std::vector<RecurrentRule> all_options() {
  std::vector<RecurrentRule> all;
  for (const auto& [f, s] : {std::pair{tanh, sigmoid}, {tanh, hard_sigmoid}, {linear, relu}, {sigmoid, tanh}}) {
    all.push_back({RecurrentCell::simple, f, s});
    all.push_back({RecurrentCell::lstm, f, s});
    all.push_back({RecurrentCell::gru, f, s, false});
    all.push_back({RecurrentCell::gru, f, s, true});
  }
  return all;
}

void expect_reference(RecurrentProblem& p, double tolerance) {
  p.forward();
  const std::int64_t batch = p.sizes.batch, time = p.sizes.time, units = p.sizes.units;
  RecurrentReference reference{p, {}, {}, {}};
  const auto expect = [&](const TestTensor& actual, std::int64_t row, const std::vector<double>& expected) {
    for (std::size_t j = 0; j < expected.size(); ++j)
      ASSERT_NEAR(actual.at(static_cast<std::size_t>(row * units) + j), expected[j],
                  tolerance * (1 + std::fabs(expected[j])))
          << name_of(p) << " row " << row;
  };
  for (std::int64_t b = 0; b < batch; ++b) {
    reference.start(b);
    for (std::int64_t k = 0; k < time; ++k) {
      const std::int64_t t = p.options.reverse ? time - 1 - k : k;
      if (!p.has_mask || p.mask.data<bool>()[b * time + t]) reference.step(b * time + t);
      expect(p.sequence, b * time + (p.options.in_step_order ? k : t), reference.output);
    }
    expect(p.last, b, reference.output);
    expect(p.final_h, b, reference.h);
    if (p.is_lstm()) expect(p.final_c, b, reference.c);
  }
}

TEST(Recurrent, MatchesTheFormulasStepByStep) {
  const RecurrentSizes sizes[] = {{1, 1, 1, 1}, {2, 3, 2, 3}, {7, 4, 3, 5}, {1, 6, 5, 33}, {35, 2, 4, 8}};
  for (RecurrentRule options : all_options())
    for (const RecurrentSizes& size : sizes)
      for (int bits = 0; bits < 16; ++bits) {
        options.reverse = (bits & 4) != 0;
        options.in_step_order = options.reverse && (bits & 8) != 0;
        options.keep_for_gradient = (bits & 8) == 0;
        RecurrentProblem exact(f64, options, size, (bits & 1) != 0, (bits & 2) != 0);
        expect_reference(exact, 1e-11);
        RecurrentProblem quick(f32, options, size, (bits & 1) != 0, (bits & 2) != 0);
        expect_reference(quick, 5e-5);
        if (HasFatalFailure()) return;
      }
}

void expect_slopes(RecurrentProblem& p, TestTensor& variable, const TestTensor& gradient, const char* name) {
  const double middle = p.objective();
  for (std::size_t i = 0; i < variable.size(); i += 1 + variable.size() / 12) {
    double& at = variable.data<double>()[i];
    const double before = at, h = 1e-5;
    at = before + h;
    const double above = p.objective();
    at = before - h;
    const double below = p.objective(), slope = (above - below) / (2 * h);
    at = before;
    const double bend = std::fabs(above - 2 * middle + below) / (2 * h);  // Large where a relu's corner is in between.
    ASSERT_NEAR(gradient.at(i), slope, 2e-6 * (1 + std::fabs(slope)) + (bend > 1e-4 ? bend : 0))
        << name_of(p) << " " << name << " at " << i;
  }
}

void expect_gradients(RecurrentProblem& p) {
  p.forward();
  p.backward();
  const RecurrentProblem kept = p;
  expect_slopes(p, p.x, kept.dx, "x");
  expect_slopes(p, p.kernel, kept.dkernel, "kernel");
  expect_slopes(p, p.recurrent_kernel, kept.drecurrent_kernel, "recurrent kernel");
  expect_slopes(p, p.bias, kept.dbias, "bias");
  if (!p.has_states) return;
  expect_slopes(p, p.initial_h, kept.dinitial_h, "h");
  if (p.is_lstm()) expect_slopes(p, p.initial_c, kept.dinitial_c, "c");
}

TEST(Recurrent, GradientsMatchDifferences) {
  const RecurrentSizes sizes[] = {{1, 1, 1, 1}, {3, 5, 2, 3}, {7, 3, 3, 5}, {2, 2, 4, 33}};
  for (RecurrentRule options : all_options())
    for (const RecurrentSizes& size : sizes)
      for (int bits = 0; bits < 8; ++bits) {
        options.reverse = options.in_step_order = (bits & 4) != 0;
        RecurrentProblem p(f64, options, size, (bits & 1) != 0, (bits & 2) != 0);
        expect_gradients(p);
        if (HasFatalFailure()) return;
      }
}

TEST(Recurrent, FloatGradientsMatchThoseOfDoubles) {
  for (const RecurrentRule& options : all_options()) {
    if (options.activation != tanh) continue;
    RecurrentProblem exact(f64, options, {18, 5, 6, 33}, true, true), quick(f32, options, exact.sizes, true, true);
    exact.forward(), exact.backward();
    quick.forward(), quick.backward();
    for (const auto& [a, b] : {std::pair{&quick.dx, &exact.dx},
                               {&quick.dkernel, &exact.dkernel},
                               {&quick.drecurrent_kernel, &exact.drecurrent_kernel},
                               {&quick.dbias, &exact.dbias},
                               {&quick.dinitial_h, &exact.dinitial_h}})
      for (std::size_t i = 0; i < a->size(); ++i) ASSERT_NEAR(a->at(i), b->at(i), 2e-4) << name_of(quick);
  }
}

TEST(Recurrent, TheSameBitsForOneAndTwoThreadsWithoutAllocating) {
  const int threads = num_threads();
  for (const RecurrentRule& options : all_options()) {
    RecurrentProblem one(f32, options, {37, 6, 11, 40}, true, true), two = one;
    set_num_threads(1);
    one.forward(), one.backward();
    set_num_threads(2);
    two.forward(), two.backward();
    const RecurrentProblem kept = two;
    const std::size_t before = heap_allocations();
    two.forward(), two.backward();
    EXPECT_EQ(heap_allocations(), before);
    for (const auto& [a, b] : {std::pair{&one.sequence, &kept.sequence},
                               {&one.dx, &kept.dx},
                               {&one.dkernel, &kept.dkernel},
                               {&one.drecurrent_kernel, &kept.drecurrent_kernel},
                               {&one.dbias, &kept.dbias}})
      EXPECT_EQ(std::memcmp(a->data<float>(), b->data<float>(), a->size() * 4), 0) << name_of(one);
  }
  set_num_threads(threads);
}

void expect_same_bits(const RecurrentProblem& a, const RecurrentProblem& b) {
  for (const TestTensor RecurrentProblem::*each :
       {&RecurrentProblem::sequence, &RecurrentProblem::last, &RecurrentProblem::final_h, &RecurrentProblem::final_c,
        &RecurrentProblem::dx, &RecurrentProblem::dkernel, &RecurrentProblem::drecurrent_kernel,
        &RecurrentProblem::dbias, &RecurrentProblem::dinitial_h, &RecurrentProblem::dinitial_c})
    ASSERT_EQ(std::memcmp((a.*each).view().bytes(), (b.*each).view().bytes(), (a.*each).view().nbytes()), 0)
        << name_of(a) << "remade " << int(b.options.remade);
}

TEST(Recurrent, StepsThatAreMadeAgainHaveTheSameBitsInLessMemory) {
  const RecurrentSizes sizes[] = {{1, 1, 1, 1}, {3, 5, 2, 3}, {37, 23, 4, 8}, {130, 7, 2, 5}, {20, 9, 300, 12}};
  for (RecurrentRule options : all_options())
    for (const RecurrentSizes& size : sizes)
      for (int bits = 0; bits < (options.activation == tanh ? 8 : 2); ++bits) {
        options.unmasked = (bits & 1) == 0;
        options.reverse = options.in_step_order = (bits & 4) != 0;
        RecurrentProblem natural(bits & 2 ? f64 : f32, options, size, !options.unmasked, (bits & 2) != 0);
        natural.forward(), natural.backward();
        for (const int remade : {1, 4, 8}) {
          RecurrentRule lean = options;
          lean.remade = static_cast<std::int8_t>(remade);
          RecurrentProblem again(natural.dtype, lean, size, natural.has_mask, natural.has_states);
          again.forward(), again.backward();
          expect_same_bits(natural, again);
          if (HasFatalFailure()) return;
          if (size.time < 20 || remade < 8) continue;
          EXPECT_LT(2 * recurrent_workspace_bytes(lean, size, natural.dtype),
                    recurrent_workspace_bytes(options, size, natural.dtype))
              << name_of(natural);
        }
      }
}

TEST(Recurrent, WithoutAGradientAndInPartsTheGatesOfAFewStepsWillDo) {
  for (RecurrentRule options : all_options()) {
    options.keep_for_gradient = false;
    const RecurrentSizes sizes = {40, 64, 3, 9};
    RecurrentProblem whole(f32, options, sizes, true, true);
    options.remade = kRecurrentParts;
    RecurrentProblem parts(f32, options, sizes, true, true);
    whole.forward(), parts.forward();
    expect_same_bits(whole, parts);
    EXPECT_EQ(recurrent_workspace_bytes(options, sizes, f32), 0u);
    EXPECT_LT(recurrent_scratch_bytes(options, sizes, f32), recurrent_workspace_bytes(whole.options, sizes, f32));
  }
}

TEST(Recurrent, WhatNobodyAskedForIsLeftOut) {
  RecurrentProblem p(f32, {RecurrentCell::lstm}, {3, 4, 2, 5}, false, false), whole = p;
  whole.forward(), whole.backward();
  recurrent(p.options, {p.x.view(), p.kernel.view(), p.recurrent_kernel.view(), p.bias.view(), {}, {}, {}},
            {.last = p.last.view()}, {p.workspace.data()->bytes, p.workspace.size() * 64},
            {p.scratch.data()->bytes, p.scratch.size() * 64});
  for (std::size_t i = 0; i < p.last.size(); ++i) EXPECT_EQ(p.last.at(i), whole.last.at(i));
}

}  // namespace
}  // namespace plimsoll
