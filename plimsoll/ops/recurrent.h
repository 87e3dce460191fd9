// Recurrent layers over whole sequences, as in Keras: simple_rnn, lstm, gru.
//
//   Sequence s = lstm(x, kernel, recurrent_kernel, bias);         // x [batch, time, inputs]: s.output [batch, units]
//   lstm(x, w, u, b, {.return_sequences = true})                  // [batch, time, units]
//   gru(x, w, u, b, {.initial_h = s.h, .mask = mask, .go_backwards = true})
//
// kernel [inputs, gates units], recurrent_kernel [units, gates units], bias [gates units] (an empty handle: none; with
// reset_after [2, 3 units]). Gates in Keras' order: LSTM i, f, c, o; GRU z, r, h. A masked step keeps the state and
// repeats the previous output, zeros when there was none. go_backwards takes the steps from the last to the first, and
// the sequence begins with the step taken first. One operation, whatever the number of steps: one product for the
// inputs of all steps, then parts of the batch through time. Besides the inputs, a tape keeps gates and states of each
// step once (for an LSTM without a mask only the cell). Takes f32 and f64. Throws InvalidArgument for shapes that do
// not match, naming both, for a sequence without steps, and for activations other than linear, relu, tanh, sigmoid and
// hard_sigmoid. Second derivatives are Unsupported.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/ops/dense.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

struct SequenceOptions {
  bool return_sequences = false;
  bool go_backwards = false;
  Activation activation = Activation::tanh;
  Activation recurrent_activation = Activation::sigmoid;  // TF.js: hard_sigmoid.
  bool reset_after = true;                                // GRU. TF.js: false.
  Tensor initial_h = {};                                  // [batch, units]; an empty handle: zeros.
  Tensor initial_c = {};                                  // LSTM.
  Tensor mask = {};                                       // [batch, time] of bool: false is masked.
};

struct Sequence {
  Tensor output;  // Of all steps, or of the last one taken.
  Tensor h, c;    // The state after it; c only for an LSTM.
};

PLIMSOLL_API Sequence simple_rnn(const Tensor& x, const Tensor& kernel, const Tensor& recurrent_kernel,
                                 const Tensor& bias = {}, const SequenceOptions& options = {});
PLIMSOLL_API Sequence lstm(const Tensor& x, const Tensor& kernel, const Tensor& recurrent_kernel,
                           const Tensor& bias = {}, const SequenceOptions& options = {});
PLIMSOLL_API Sequence gru(const Tensor& x, const Tensor& kernel, const Tensor& recurrent_kernel,
                          const Tensor& bias = {}, const SequenceOptions& options = {});

}  // namespace plimsoll
