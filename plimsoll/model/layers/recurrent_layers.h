// Recurrent layers and wrappers: SimpleRNN, LSTM, GRU, Bidirectional, TimeDistributed.
//
//   layers::LSTM(64, {.return_sequences = true, .input_shape = {20, 1}})
//   layers::Bidirectional(layers::GRU(8)); layers::TimeDistributed(layers::Dense(3))
//
// x is [batch, time, features]; options and defaults are those of Keras. With return_state the layer returns [output,
// h] or, for an LSTM, [output, h, c]. It takes initial states as further inputs. A stateful layer keeps its state from
// batch to batch, all of one size; the model's reset_states() clears it. Masked steps are skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/model/layers/layer.h"

namespace plimsoll {

namespace layers {

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
  double recurrent_dropout = 0;  // Of the state, likewise. In training, steps then run one by one.
  bool unit_forget_bias = true;  // LSTM: the forget gates' biases start at 1.
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
  bool zero_output_for_mask = false;  // For a sequence: zeros for skipped steps, not the previous output.
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
// A copy of the layer for each direction. Throws InvalidArgument for a layer that is not recurrent or already built.
class PLIMSOLL_API Bidirectional : public Layer {
 public:
  explicit Bidirectional(const Layer& layer, const BidirectionalOptions& options = {});
};
class PLIMSOLL_API TimeDistributed : public Layer {  // Applies the layer to each step.
 public:
  explicit TimeDistributed(const Layer& layer, const TimeDistributedOptions& options = {});
};

}  // namespace layers

// Also without the namespace, as in earlier versions.
using layers::BidirectionalOptions;
using layers::RecurrentOptions;
using layers::TimeDistributedOptions;

}  // namespace plimsoll
