// RecurrentPlan: the memory layout of one call of recurrent() or recurrent_gradient(), and how rows are divided.
//
// Steps form segments, which run one after the other; normally there is one. With options.remade the first ones leave
// only the state before them, from which the gradient computes their gates again, in scratch that all of them share.
#pragma once

#include <algorithm>
#include <cstring>

#include "plimsoll/base/rounding.h"
#include "plimsoll/kernels/internal/recurrent_loops.h"
#include "plimsoll/kernels/recurrent.h"

namespace plimsoll::internal {

inline constexpr std::int64_t kRecurrentRows = 16;    // The most rows that go through time together.
inline constexpr std::int64_t kRecurrentChunk = 128;  // Rows and steps whose gradients are multiplied together.

// Hands out aligned pieces of memory; without memory, only counts.
class Carver {
 public:
  explicit Carver(std::byte* base) noexcept : base_(base) {}
  template <class T>
  T* take(std::int64_t count) noexcept {
    std::byte* at = base_ ? base_ + used_ : nullptr;
    used_ += round_up(static_cast<std::size_t>(count) * sizeof(T), 64);
    return reinterpret_cast<T*>(at);
  }
  std::size_t used() const noexcept { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

// Rows of [batch, time, units], or of [batch, units] when every step uses the same.
template <class T>
struct StepRows {
  T* data;
  std::int64_t row, step;  // Elements between rows, between steps.
  std::int64_t first = 0;  // The place of the first step that is there.
  T* at(std::int64_t b, std::int64_t t) const noexcept { return data + b * row + (t - first) * step; }
};

template <class T>
struct RecurrentPlan {
  RecurrentRule options;
  std::int64_t batch, time, inputs, units, gates;
  // Of the segment that select() chose.
  std::int64_t segment = 0, low = 0, high = 0;  // Its steps are [low, high).
  StepRows<T> values;                           // The gates' values.
  StepRows<T> h, c;                             // The state before a step; c of an LSTM only.
  StepRows<T> extra;                            // GRU only: GateStep::extra.
  // Workspace: what is kept of segments, one after the other.
  T *kept_values, *kept_h, *kept_c, *kept_extra;
  T *start_h, *start_c;  // [batch, units] before each segment, where options.remade asks for it.
  T* kept_bias;          // For steps that run again, too.
  // Scratch.
  T *made_values, *made_h, *made_c, *made_extra;  // Of a segment of which nothing is kept, or nothing but the gates.
  T* segment_x;                                   // Its inputs side by side.
  T *forward_panels, *forward_third_panels;       // Going back, for steps that run again.
  // Going back, a chunk of steps at a time, [batch, steps of the chunk, ..].
  T *slopes, *extra_slopes;            // The gradients of the gates' products; of a GRU's `extra`.
  T *chunk_x, *chunk_h, *chunk_extra;  // Rows of the chunk side by side.
  T* chunk_dx;
  T *panels, *third_panels;  // The recurrent kernel (going back, transposed); a GRU's third gate by itself.
  T* bias;                   // Those that are simply added, going forward.
  T* bias_sums;              // Going back: see bias_sums_of().
  T *dh, *dc, *dreset;       // [batch, units], going back.
  T *final_h, *final_c;      // [batch, units], going forward.
  T* third;                  // [units, units], going back without reset_after.
  std::byte* products;       // For matmul.
  std::size_t workspace_bytes, scratch_bytes;

  bool is_gru() const noexcept { return options.cell == RecurrentCell::gru; }
  bool is_lstm() const noexcept { return options.cell == RecurrentCell::lstm; }
  std::int64_t width() const noexcept { return gates * units; }
  std::int64_t steps() const noexcept { return batch * time; }                            // For all rows.
  std::int64_t first_columns() const noexcept { return is_gru() ? 2 * units : width(); }  // In `panels`.

  // The input's place of the k-th step, and that of its output.
  std::int64_t place(std::int64_t k) const noexcept { return options.reverse ? time - 1 - k : k; }
  std::int64_t output_place(std::int64_t k) const noexcept { return options.in_step_order ? k : place(k); }

  bool has_starts() const noexcept { return options.remade > 0; }
  bool has_bias_pair() const noexcept { return is_gru() && options.reset_after; }
  // Segments are whole chunks, counted from the end; the first may be shorter. Their length balances the states that
  // are kept with the gates that are made again.
  std::int64_t segment_steps() const noexcept {
    if (!has_starts()) return std::max<std::int64_t>(time, 1);
    const std::int64_t states = is_lstm() ? 2 : 1, held = gates + states;
    std::int64_t steps = 1;
    while (steps * steps * held < time * states) ++steps;
    return std::min(round_up(steps, chunk_steps()), time);
  }
  std::int64_t num_segments() const noexcept { return divide_up(std::max<std::int64_t>(time, 1), segment_steps()); }
  // The first so many are made again.
  std::int64_t num_remade() const noexcept {
    if (!has_starts()) return 0;
    return options.keep_for_gradient ? divide_up(num_segments() * options.remade, kRecurrentParts) : num_segments();
  }
  T* start_h_of(std::int64_t number) const noexcept {
    return start_h + (options.keep_for_gradient ? number * batch * units : 0);
  }
  T* start_c_of(std::int64_t number) const noexcept {
    return start_c + (options.keep_for_gradient ? number * batch * units : 0);
  }
  void select(std::int64_t number) noexcept;

  // An LSTM's h is its output gate times f(c); under a mask it may be older.
  bool keeps_h() const noexcept { return !is_lstm() || !options.unmasked; }

  // Steps that run backward together before their products are computed.
  std::int64_t chunk_steps() const noexcept {
    return std::clamp<std::int64_t>(divide_up(kRecurrentChunk, std::max<std::int64_t>(batch, 1)), 1, time);
  }
  std::int64_t chunk_rows() const noexcept { return batch * chunk_steps(); }

  // The batch is split by its size only.
  std::int64_t group_rows() const noexcept {
    const std::int64_t groups = batch <= 4 ? 1 : std::max<std::int64_t>(2, divide_up(batch, kRecurrentRows));
    return std::max<std::int64_t>(1, divide_up(batch, groups));
  }

  // Sums that a group of rows adds to, and space to compute them.
  std::int64_t bias_columns() const noexcept { return width() + (has_bias_pair() ? units : 0); }
  T* bias_sums_of(std::int64_t row) const noexcept { return bias_sums + row / group_rows() * 2 * bias_columns(); }

  GateStep<T> step_of(std::int64_t b, std::int64_t t) const noexcept {
    GateStep<T> step = {};
    step.units = units;
    step.activation = options.activation;
    step.recurrent_activation = options.recurrent_activation;
    step.gates = values.at(b, t);
    step.h = h.data ? h.at(b, t) : nullptr;
    step.c = is_lstm() ? c.at(b, t) : nullptr;
    step.extra = is_gru() ? extra.at(b, t) : nullptr;
    return step;
  }
};

// Lays out workspace and scratch; either may be null to compute only the sizes.
template <class T>
RecurrentPlan<T> plan_recurrent(const RecurrentRule& options, const RecurrentSizes& sizes, bool back,
                                std::byte* workspace, std::byte* scratch) noexcept;

inline bool is_masked(const bool* mask, std::int64_t time, std::int64_t b, std::int64_t t) noexcept {
  return mask && !mask[b * time + t];
}

// The first step taken of a row that is not masked.
inline std::int64_t first_step(const bool* mask, const auto& plan, std::int64_t b) noexcept {
  std::int64_t k = 0;
  while (k < plan.time && is_masked(mask, plan.time, b, plan.place(k))) ++k;
  return k;
}

template <class T>
void copy_row(T* to, const T* from, std::int64_t n) noexcept {
  if (to != from) std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
}

template <class T, class View>
auto* data_or_null(const View& view) noexcept {
  return view.base() ? view.template data<T>() : nullptr;
}

RecurrentSizes recurrent_sizes(const RecurrentInputs& in) noexcept;

}  // namespace plimsoll::internal
