// RecurrentLoops: products with a packed matrix and the gates of one row at one step, as
// in loops.h.
#pragma once

#include <cstdint>

#include "plimsoll/kernels/internal/instruction_sets.h"
#include "plimsoll/kernels/recurrent.h"

namespace plimsoll::internal {

// One row at one step. Forward, `gates` holds products and becomes the gates' values; backward, these yield `slopes`,
// the gradients of the products.
template <class T>
struct GateStep {
  std::int64_t units;
  RecurrentActivation activation, recurrent_activation;
  T* gates;
  const T *bias, *recurrent_bias;  // May be null; the second is that of a GRU's third gate, with reset_after.
  const T *h, *c;                  // The state before.
  T *h_next, *c_next;              // The state after; may be the one before.
  T* extra;                        // GRU: r h; with reset_after h U.
  T *slopes, *extra_slopes;        // Going back: of the gates; of `extra`, with reset_after.
  T *dh, *dc;                      // Going back: in, of the state after; out, of the state before, without products.
  const T* dreset;                 // GRU, going back: the gradient of r h.
};

template <class T>
struct RecurrentLoopsOf {
  std::int64_t columns;  // Per panel.
  // Element (p, j) of the k by n matrix is b[p * deep + j * along]; panels take k times n rounded up to `columns`.
  void (*pack)(const T* b, std::int64_t k, std::int64_t n, std::int64_t deep, std::int64_t along, T* panels);
  // c (m by n) = or += a (m by k) times the packed matrix. Element (i, p) of a is a[i * a_along + p * a_deep].
  void (*multiply)(const T* a, std::int64_t a_along, std::int64_t a_deep, std::int64_t m, std::int64_t k,
                   const T* panels, std::int64_t n, T* c, std::int64_t c_stride, bool accumulate);
  using Gates = void (*)(const GateStep<T>& step);
  Gates simple, lstm, gru;      // gru: after its third gate is complete.
  Gates gru_before, gru_after;  // Before it, without and with reset_after: r, and the third gate's part with it.
  Gates lstm_output;            // h_next alone, from the output gate and `c`.
  Gates simple_back, lstm_back;
  Gates gru_back;                         // All but the gradient of r.
  Gates gru_before_back, gru_after_back;  // That.
};

struct RecurrentLoops {
  RecurrentLoopsOf<float> f32;
  RecurrentLoopsOf<double> f64;
};

PLIMSOLL_LOOPS(RecurrentLoops, recurrent_loops)

template <class T>
const RecurrentLoopsOf<T>& recurrent_loops_of() noexcept {
  if constexpr (sizeof(T) == 4)
    return recurrent_loops().f32;
  else
    return recurrent_loops().f64;
}

}  // namespace plimsoll::internal
