// The gates of one row at one step, forward and back, vector by vector. Included by recurrent_loops.cc only.
//
// A gate struct's run(step, lane) does one vector at `lane.at`; `F` is the activation and `S` the recurrent one.
#pragma once

#include "plimsoll/kernels/internal/logistic.h"
#include "plimsoll/kernels/internal/recurrent_loops.h"
#include "plimsoll/kernels/internal/vector.h"
#include "plimsoll/kernels/internal/vector_math.h"

namespace plimsoll::internal {
namespace {

inline double tanh_of(double x) noexcept { return ::tanh(x); }

// The place of a vector of floats (or one double): `count` elements from `at`.
template <class T>
struct Lane;
template <>
struct Lane<float> {
  static constexpr std::int64_t kWidth = kLanes;
  using V = F32;
  std::int64_t at, count;
  F32 get(const float* p) const noexcept { return count == kLanes ? load(p + at) : load_some(p + at, count); }
  void put(float* p, F32 v) const noexcept { count == kLanes ? store(p + at, v) : store_some(p + at, v, count); }
  static F32 constant(float x) noexcept { return splat(x); }
};
template <>
struct Lane<double> {
  static constexpr std::int64_t kWidth = 1;
  using V = double;
  std::int64_t at, count;
  double get(const double* p) const noexcept { return p[at]; }
  void put(double* p, double v) const noexcept { p[at] = v; }
  static double constant(double x) noexcept { return x; }
};

// An activation known at compile time, or chosen at each vector for kAnyActivation.
inline constexpr int kAnyActivation = -1;
inline constexpr int kSigmoid = static_cast<int>(RecurrentActivation::sigmoid),
                     kTanh = static_cast<int>(RecurrentActivation::tanh),
                     kHardSigmoid = static_cast<int>(RecurrentActivation::hard_sigmoid);

template <int kKind, class T>
struct Activation {
  using V = typename Lane<T>::V;
  RecurrentActivation asked;
  RecurrentActivation kind() const noexcept {
    return kKind == kAnyActivation ? asked : static_cast<RecurrentActivation>(kKind);
  }
  V operator()(V x) const noexcept {
    const V zero = Lane<T>::constant(0), one = Lane<T>::constant(1);
    switch (kind()) {
      case RecurrentActivation::relu:
        return x < zero ? zero : x;
      case RecurrentActivation::tanh:
        return tanh_of(x);
      case RecurrentActivation::sigmoid:
        return logistic(x);
      case RecurrentActivation::hard_sigmoid: {
        const V y = x * T(0.2) + T(0.5);
        return y < zero ? zero : y > one ? one : y;
      }
      case RecurrentActivation::linear:
        break;
    }
    return x;
  }
  // The derivative, from the value.
  V slope(V y) const noexcept {
    const V zero = Lane<T>::constant(0), one = Lane<T>::constant(1);
    switch (kind()) {
      case RecurrentActivation::relu:
        return y > zero ? one : zero;
      case RecurrentActivation::tanh:
        return one - y * y;
      case RecurrentActivation::sigmoid:
        return y * (one - y);
      case RecurrentActivation::hard_sigmoid: {
        const V rising = y > zero ? Lane<T>::constant(T(0.2)) : zero;
        return y < one ? rising : zero;
      }
      case RecurrentActivation::linear:
        break;
    }
    return one;
  }
};

// Gate `g` of the step: its place, its products with bias.
template <class T>
inline T* gate(const GateStep<T>& step, int g) noexcept {
  return step.gates + g * step.units;
}
template <class T>
inline T* slopes(const GateStep<T>& step, int g) noexcept {
  return step.slopes + g * step.units;
}
template <class T>
inline typename Lane<T>::V product(const GateStep<T>& step, Lane<T> lane, int g) noexcept {
  const auto x = lane.get(gate(step, g));
  return step.bias ? x + lane.get(step.bias + g * step.units) : x;
}

struct SimpleGate {
  template <class T, class F, class S>
  static void run(const GateStep<T>& step, Lane<T> lane, F f, S) noexcept {
    const auto h = f(product(step, lane, 0));
    lane.put(step.gates, h);
    lane.put(step.h_next, h);
  }
};

struct SimpleBack {
  template <class T, class F, class S>
  static void run(const GateStep<T>& step, Lane<T> lane, F f, S) noexcept {
    lane.put(step.slopes, lane.get(step.dh) * f.slope(lane.get(step.gates)));
    lane.put(step.dh, Lane<T>::constant(0));
  }
};

struct LstmGates {
  template <class T, class F, class S>
  static void run(const GateStep<T>& step, Lane<T> lane, F f, S s) noexcept {
    const auto i = s(product(step, lane, 0)), forget = s(product(step, lane, 1)), g = f(product(step, lane, 2)),
               o = s(product(step, lane, 3));
    const auto c = forget * lane.get(step.c) + i * g;
    lane.put(gate(step, 0), i);
    lane.put(gate(step, 1), forget);
    lane.put(gate(step, 2), g);
    lane.put(gate(step, 3), o);
    lane.put(step.c_next, c);
    lane.put(step.h_next, o * f(c));
  }
};

struct LstmOutput {
  template <class T, class F, class S>
  static void run(const GateStep<T>& step, Lane<T> lane, F f, S) noexcept {
    lane.put(step.h_next, lane.get(gate(step, 3)) * f(lane.get(step.c)));
  }
};

struct LstmBack {
  template <class T, class F, class S>
  static void run(const GateStep<T>& step, Lane<T> lane, F f, S s) noexcept {
    const auto i = lane.get(gate(step, 0)), forget = lane.get(gate(step, 1)), g = lane.get(gate(step, 2)),
               o = lane.get(gate(step, 3)), before = lane.get(step.c), dh = lane.get(step.dh);
    const auto value = f(forget * before + i * g);
    const auto dc = lane.get(step.dc) + dh * o * f.slope(value);
    lane.put(slopes(step, 0), dc * g * s.slope(i));
    lane.put(slopes(step, 1), dc * before * s.slope(forget));
    lane.put(slopes(step, 2), dc * i * f.slope(g));
    lane.put(slopes(step, 3), dh * value * s.slope(o));
    lane.put(step.dc, dc * forget);
    lane.put(step.dh, Lane<T>::constant(0));
  }
};

// r, then what the third gate needs from it.
template <bool kAfter>
struct GruReset {
  template <class T, class F, class S>
  static void run(const GateStep<T>& step, Lane<T> lane, F, S s) noexcept {
    const auto r = s(product(step, lane, 1));
    lane.put(gate(step, 1), r);
    if constexpr (kAfter) {
      auto inner = lane.get(step.extra);
      if (step.recurrent_bias) inner = inner + lane.get(step.recurrent_bias);
      lane.put(step.extra, inner);
      lane.put(gate(step, 2), lane.get(gate(step, 2)) + r * inner);
    } else {
      lane.put(step.extra, r * lane.get(step.h));
    }
  }
};

struct GruGates {
  template <class T, class F, class S>
  static void run(const GateStep<T>& step, Lane<T> lane, F f, S s) noexcept {
    const auto z = s(product(step, lane, 0)), candidate = f(product(step, lane, 2));
    lane.put(gate(step, 0), z);
    lane.put(gate(step, 2), candidate);
    lane.put(step.h_next, candidate + z * (lane.get(step.h) - candidate));
  }
};

struct GruBack {
  template <class T, class F, class S>
  static void run(const GateStep<T>& step, Lane<T> lane, F f, S s) noexcept {
    const auto z = lane.get(gate(step, 0)), candidate = lane.get(gate(step, 2)), dh = lane.get(step.dh);
    lane.put(slopes(step, 0), dh * (lane.get(step.h) - candidate) * s.slope(z));
    lane.put(slopes(step, 2), dh * (Lane<T>::constant(1) - z) * f.slope(candidate));
    lane.put(step.dh, dh * z);
  }
};

template <bool kAfter>
struct GruResetBack {
  template <class T, class F, class S>
  static void run(const GateStep<T>& step, Lane<T> lane, F, S s) noexcept {
    const auto r = lane.get(gate(step, 1));
    if constexpr (kAfter) {
      const auto d = lane.get(slopes(step, 2));
      lane.put(slopes(step, 1), d * lane.get(step.extra) * s.slope(r));
      lane.put(step.extra_slopes, d * r);
    } else {
      const auto d = lane.get(step.dreset);
      lane.put(slopes(step, 1), d * lane.get(step.h) * s.slope(r));
      lane.put(step.dh, lane.get(step.dh) + d * r);
    }
  }
};

template <class Gates, class T, int kF, int kS>
void run_gates(const GateStep<T>& step) noexcept {
  const Activation<kF, T> f = {step.activation};
  const Activation<kS, T> s = {step.recurrent_activation};
  std::int64_t at = 0;
  for (; at + Lane<T>::kWidth <= step.units; at += Lane<T>::kWidth)
    Gates::run(step, Lane<T>{at, Lane<T>::kWidth}, f, s);
  if (at < step.units) Gates::run(step, Lane<T>{at, step.units - at}, f, s);
}

// Those of Keras and of TF.js are compiled in.
template <class Gates, class T>
void by_activations(const GateStep<T>& step) {
  if constexpr (sizeof(T) == 4)
    if (step.activation == RecurrentActivation::tanh) {
      if (step.recurrent_activation == RecurrentActivation::sigmoid) return run_gates<Gates, T, kTanh, kSigmoid>(step);
      if (step.recurrent_activation == RecurrentActivation::hard_sigmoid)
        return run_gates<Gates, T, kTanh, kHardSigmoid>(step);
    }
  run_gates<Gates, T, kAnyActivation, kAnyActivation>(step);
}

}  // namespace
}  // namespace plimsoll::internal
