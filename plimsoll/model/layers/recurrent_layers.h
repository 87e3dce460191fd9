// Recurrent layers and what wraps layers: SimpleRNN, LSTM, GRU, Bidirectional, TimeDistributed.
//
//   layers::LSTM(64, {.return_sequences = true, .input_shape = {20, 1}})
//   layers::Bidirectional(layers::GRU(8)); layers::TimeDistributed(layers::Dense(3))
//
// x is [batch, time, features]; options and defaults are Keras'. With return_state the layer gives [output, h] or, of
// an LSTM, [output, h, c]. It takes initial states as further inputs. A stateful one keeps its state from batch to
// batch, all of one size; reset_states() of the model forgets it. Masked steps are left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/model/layers/layer.h"

namespace plimsoll {

struct RecurrentOptions {
  std::string activation = "tanh";
  std::string recurrent_activation = "sigmoid";
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool stateful = false;
  Shape input_shape = {};
  std::string name = {};
  std::optional<std::uint64_t> seed = {};
  bool use_bias = true;
  double dropout = 0;            // Of the inputs, in training; the same features for all steps.
  double recurrent_dropout = 0;  // Of the state, likewise. Steps then run one by one, in training.
  bool unit_forget_bias = true;  // LSTM: the forget gates' biases begin with 1.
  bool reset_after = true;       // GRU.
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  bool zero_output_for_mask = false;  // Of a sequence: zeros for steps that are left out, not the output before.
};
struct BidirectionalOptions {
  std::string merge_mode = "concat";  // Or "sum", "mul", "ave"; "none": both outputs, one after the other.
  std::string name = {};
  Shape input_shape = {};
};
struct TimeDistributedOptions {
  std::string name = {};
  Shape input_shape = {};
};

namespace layers {

class PLIMSOLL_API SimpleRNN : public Layer {
 public:
  explicit SimpleRNN(std::int64_t units, const RecurrentOptions& options = {});
};
class PLIMSOLL_API LSTM : public Layer {
 public:
  explicit LSTM(std::int64_t units, const RecurrentOptions& options = {});
};
class PLIMSOLL_API GRU : public Layer {
 public:
  explicit GRU(std::int64_t units, const RecurrentOptions& options = {});
};
// A layer like the given one in each direction. Throws InvalidArgument for a layer that is not recurrent or built.
class PLIMSOLL_API Bidirectional : public Layer {
 public:
  explicit Bidirectional(const Layer& layer, const BidirectionalOptions& options = {});
};
class PLIMSOLL_API TimeDistributed : public Layer {  // The layer for each step.
 public:
  explicit TimeDistributed(const Layer& layer, const TimeDistributedOptions& options = {});
};

}  // namespace layers
}  // namespace plimsoll
