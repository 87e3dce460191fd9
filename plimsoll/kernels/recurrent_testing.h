// Shared by the tests of recurrent layers: a problem with all its tensors, and the slow way to solve it.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "plimsoll/kernels/kernel_testing.h"
#include "plimsoll/kernels/recurrent.h"

namespace plimsoll {

struct RecurrentProblem {
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  RecurrentProblem(DType type, const RecurrentRule& the_options, const RecurrentSizes& the_sizes, bool masked,
                   bool states)
      : dtype(type), options(the_options), sizes(the_sizes), has_states(states), has_mask(masked) {
    const std::int64_t gates = options.cell == RecurrentCell::simple ? 1 : options.cell == RecurrentCell::lstm ? 4 : 3;
    const std::int64_t batch = sizes.batch, time = sizes.time, inputs = sizes.inputs, units = sizes.units;
    const bool two = options.cell == RecurrentCell::gru && options.reset_after;
    x = values({batch, time, inputs}, 0.9, 1);
    kernel = values({inputs, gates * units}, 0.7, 2);
    recurrent_kernel = values({units, gates * units}, 1.2 / (1 + 0.3 * double(units)), 3);  // Or linear ones explode.
    bias = values(two ? Shape{2, gates * units} : Shape{gates * units}, 0.4, 4);
    initial_h = values({batch, units}, 0.6, 5);
    initial_c = values({batch, units}, 0.6, 6);
    mask = TestTensor::from<bool>({batch, time}, [&](std::int64_t i) { return (i * 7 + i / time) % 3 != 0; });
    if (batch > 1)  // A row without any step.
      for (std::int64_t t = 0; t < time; ++t) mask.data<bool>()[time + t] = false;
    sequence = values({batch, time, units}, 1, 7);
    last = final_h = final_c = values({batch, units}, 1, 8);
    workspace.resize(recurrent_workspace_bytes(options, sizes, dtype) / 64 + 1);
    scratch.resize(recurrent_scratch_bytes(options, sizes, dtype) / 64 + 1);
    if (options.keep_for_gradient)
      gradient_scratch.resize(recurrent_gradient_scratch_bytes(options, sizes, dtype) / 64 + 1);
    dsequence = values({batch, time, units}, 1, 9);
    dlast = values({batch, units}, 1, 10);
    dfinal_h = values({batch, units}, 1, 11);
    dfinal_c = values({batch, units}, 1, 12);
    dx = x, dkernel = kernel, drecurrent_kernel = recurrent_kernel, dbias = bias;
    dinitial_h = initial_h, dinitial_c = initial_c;
  }

  TestTensor values(const Shape& shape, double size, int seed) const {
    const auto value = [&](std::int64_t i) { return size * std::sin(double(i) * 1.91 + seed * 2.3); };
    return dtype == f32 ? TestTensor::from<float>(shape, value) : TestTensor::from<double>(shape, value);
  }

  bool is_lstm() const { return options.cell == RecurrentCell::lstm; }
  ConstTensorView view_if(bool wanted, TestTensor& tensor) {
    return wanted ? ConstTensorView(tensor.view()) : ConstTensorView();
  }
  RecurrentInputs inputs() {
    return {x.view(),
            kernel.view(),
            recurrent_kernel.view(),
            bias.view(),
            view_if(has_states, initial_h),
            view_if(has_states && is_lstm(), initial_c),
            view_if(has_mask, mask)};
  }
  void forward() {
    recurrent(options, inputs(),
              {sequence.view(), last.view(), final_h.view(), is_lstm() ? final_c.view() : TensorView()},
              {workspace.data()->bytes, workspace.size() * 64}, {scratch.data()->bytes, scratch.size() * 64});
  }
  void backward() {
    recurrent_gradient(options, inputs(),
                       {dsequence.view(), dlast.view(), dfinal_h.view(), view_if(is_lstm(), dfinal_c)},
                       {dx.view(), dkernel.view(), drecurrent_kernel.view(), dbias.view(), dinitial_h.view(),
                        is_lstm() ? dinitial_c.view() : TensorView()},
                       {workspace.data()->bytes, workspace.size() * 64},
                       {gradient_scratch.data()->bytes, gradient_scratch.size() * 64});
  }
  double objective() {
    forward();
    double sum = 0;
    const auto add = [&](const TestTensor& y, const TestTensor& dy) {
      for (std::size_t i = 0; i < y.size(); ++i) sum += y.at(i) * dy.at(i);
    };
    add(sequence, dsequence), add(last, dlast), add(final_h, dfinal_h);
    if (is_lstm()) add(final_c, dfinal_c);
    return sum;
  }

  DType dtype;
  RecurrentRule options;
  RecurrentSizes sizes;
  bool has_states, has_mask;
  TestTensor x{f32, {0}}, kernel = x, recurrent_kernel = x, bias = x, initial_h = x, initial_c = x, mask = x;
  TestTensor sequence = x, last = x, final_h = x, final_c = x, dsequence = x, dlast = x, dfinal_h = x, dfinal_c = x;
  TestTensor dx = x, dkernel = x, drecurrent_kernel = x, dbias = x, dinitial_h = x, dinitial_c = x;
  std::vector<Line> workspace, scratch, gradient_scratch;
};

// One row, step by step, as the header's formulas say.
struct RecurrentReference {
  RecurrentProblem& p;
  std::vector<double> h, c, output;

  static double activate(RecurrentActivation kind, double x) {
    switch (kind) {
      case RecurrentActivation::relu:
        return std::max(x, 0.0);
      case RecurrentActivation::tanh:
        return std::tanh(x);
      case RecurrentActivation::sigmoid:
        return 1 / (1 + std::exp(-x));
      case RecurrentActivation::hard_sigmoid:
        return std::clamp(0.2 * x + 0.5, 0.0, 1.0);
      case RecurrentActivation::linear:
        break;
    }
    return x;
  }

  // Column `j` of x W + b and of `state` U + b_2.
  double from_input(std::int64_t row, std::int64_t j, std::int64_t width) const {
    double sum = p.bias.at(static_cast<std::size_t>(j));
    for (std::int64_t i = 0; i < p.sizes.inputs; ++i)
      sum += p.x.at(static_cast<std::size_t>(row * p.sizes.inputs + i)) *
             p.kernel.at(static_cast<std::size_t>(i * width + j));
    return sum;
  }
  double from_state(const std::vector<double>& state, std::int64_t j, std::int64_t width) const {
    double sum = p.bias.size() > static_cast<std::size_t>(width) ? p.bias.at(static_cast<std::size_t>(width + j)) : 0;
    for (std::int64_t i = 0; i < p.sizes.units; ++i)
      sum += state[static_cast<std::size_t>(i)] * p.recurrent_kernel.at(static_cast<std::size_t>(i * width + j));
    return sum;
  }

  void step(std::int64_t row) {
    const std::int64_t units = p.sizes.units, width = p.kernel.shape()[1];
    const auto f = [&](double x) { return activate(p.options.activation, x); };
    const auto s = [&](double x) { return activate(p.options.recurrent_activation, x); };
    const auto both = [&](std::int64_t j) { return from_input(row, j, width) + from_state(h, j, width); };
    std::vector<double> reset = h, next = h;
    if (p.options.cell == RecurrentCell::gru)
      for (std::int64_t j = 0; j < units; ++j) reset[static_cast<std::size_t>(j)] *= s(both(units + j));
    for (std::int64_t j = 0; j < units; ++j) {
      const auto u = static_cast<std::size_t>(j);
      if (p.options.cell == RecurrentCell::simple) {
        next[u] = f(both(j));
      } else if (p.options.cell == RecurrentCell::lstm) {
        c[u] = s(both(units + j)) * c[u] + s(both(j)) * f(both(2 * units + j));
        next[u] = s(both(3 * units + j)) * f(c[u]);
      } else {
        const double z = s(both(j)), r = s(both(units + j)), x = from_input(row, 2 * units + j, width);
        const double candidate = p.options.reset_after ? f(x + r * from_state(h, 2 * units + j, width))
                                                       : f(x + from_state(reset, 2 * units + j, width));
        next[u] = z * h[u] + (1 - z) * candidate;
      }
    }
    h = output = next;
  }

  void start(std::int64_t b) {
    const std::int64_t units = p.sizes.units;
    h.assign(static_cast<std::size_t>(units), 0.0);
    c = output = h;
    if (!p.has_states) return;
    for (std::size_t j = 0; j < h.size(); ++j) {
      h[j] = p.initial_h.at(static_cast<std::size_t>(b * units) + j);
      c[j] = p.initial_c.at(static_cast<std::size_t>(b * units) + j);
    }
  }
};

}  // namespace plimsoll
