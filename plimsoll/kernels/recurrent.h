// Recurrent layers over whole sequences: SimpleRNN, LSTM and GRU as in Keras, and their gradients.
//
//   RecurrentRule lstm = {.cell = RecurrentCell::lstm};
//   recurrent(lstm, {.x = x, .kernel = w, .recurrent_kernel = u, .bias = b}, {.sequence = y}, workspace, scratch);
//   recurrent_gradient(lstm, inputs, {.sequence = dy}, {.x = dx, .kernel = dw, ...}, workspace, scratch);
//
// x [batch, time, inputs]; kernel [inputs, gates units], recurrent kernel [units, gates units], gates in Keras' order:
// LSTM i, f, c, o; GRU z, r, h. With f = activation, s = recurrent_activation, h and c the state before the step:
//   simple  h' = f(x W + b + h U)
//   lstm    i, f, o = s(x W + b + h U), g = f(...);  c' = f c + i g;  h' = o f(c')
//   gru     z, r = s(x W + b + h U);  h' = z h + (1 - z) f(x W + b + (r h) U)
//           reset_after: f(x W + b + r (h U + b_2)), and the bias is [2, 3 units]: b, then b_2 of all gates
//
// A masked step carries the state over and repeats the output before it (zeros when there was none).
// The input's products are one matrix product for all steps. Then parts of the batch run through time, each in one
// thread; every result depends only on shapes, not on threads. No allocation, never throws. Requires f32 or f64, one
// dtype for all but the mask, at least one step. Thread safety: any thread, with its own memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plimsoll/base/api.h"
#include "plimsoll/base/tensor_view.h"

namespace plimsoll::internal {

enum class RecurrentCell : unsigned char { simple, lstm, gru };

// hard_sigmoid is 0.2 x + 0.5, clamped to [0, 1].
enum class RecurrentActivation : unsigned char { linear, relu, tanh, sigmoid, hard_sigmoid };

inline constexpr std::int8_t kRecurrentParts = 8;

struct RecurrentRule {
  RecurrentCell cell = RecurrentCell::simple;
  RecurrentActivation activation = RecurrentActivation::tanh;
  RecurrentActivation recurrent_activation = RecurrentActivation::sigmoid;
  bool reset_after = false;       // GRU: true in Keras 2, false in TF.js.
  bool reverse = false;           // From the last step to the first.
  bool in_step_order = false;     // When reversed: the sequence begins with the step taken first (Keras' go_backwards);
                                  // otherwise an output has its input's place.
  bool keep_for_gradient = true;  // The workspace will be passed to recurrent_gradient().
  bool unmasked = false;          // There is no mask: an LSTM then keeps no h, which the gradient recomputes.
  std::int8_t remade = 0;         // Of kRecurrentParts parts of the steps, the first so many: of these only some states
                                  // are kept, from which the gradient computes the rest again. The same bits.
  bool operator==(const RecurrentRule&) const = default;
};

struct RecurrentSizes {
  std::int64_t batch, time, inputs, units;
};

// Views without an address are skipped.
struct RecurrentInputs {
  ConstTensorView x, kernel, recurrent_kernel, bias;
  ConstTensorView initial_h, initial_c;  // [batch, units]; otherwise zeros.
  ConstTensorView mask;                  // [batch, time] of bool: false is masked.
};
template <class View>
struct RecurrentResults {
  View sequence;          // [batch, time, units]
  View last;              // [batch, units]: the last output, that is of the step taken last.
  View final_h, final_c;  // [batch, units]: the state after it.
};
struct RecurrentGradients {
  TensorView x, kernel, recurrent_kernel, bias, initial_h, initial_c;
};

// What recurrent() leaves for the gradient: per row and step gates units, the state before (of an unmasked LSTM c
// alone), and for a GRU units more.
// Without keep_for_gradient only the gates. With `remade` those of fewer steps, some states and a copy of the bias;
// what is made again takes scratch.
PLIMSOLL_API std::size_t recurrent_workspace_bytes(const RecurrentRule& options, const RecurrentSizes& sizes,
                                                   DType dtype) noexcept;
PLIMSOLL_API std::size_t recurrent_scratch_bytes(const RecurrentRule& options, const RecurrentSizes& sizes,
                                                 DType dtype) noexcept;
PLIMSOLL_API std::size_t recurrent_gradient_scratch_bytes(const RecurrentRule& options, const RecurrentSizes& sizes,
                                                          DType dtype) noexcept;

// Workspace and scratch of the sizes above, aligned to 64 bytes.
PLIMSOLL_API void recurrent(const RecurrentRule& options, const RecurrentInputs& in,
                            const RecurrentResults<TensorView>& out, std::span<std::byte> workspace,
                            std::span<std::byte> scratch) noexcept;

// The gradients of the sum of all results, each times its `upstream`. Takes the same inputs, and the workspace as
// recurrent() left it, without changing it. Gradients are overwritten, not accumulated. Scratch holds about 128 rows at
// a time.
PLIMSOLL_API void recurrent_gradient(const RecurrentRule& options, const RecurrentInputs& in,
                                     const RecurrentResults<ConstTensorView>& upstream, const RecurrentGradients& out,
                                     std::span<const std::byte> workspace, std::span<std::byte> scratch) noexcept;

}  // namespace plimsoll::internal
