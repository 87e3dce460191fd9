#include "plimsoll/ops/recurrent.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/convolution_recorded.h"
#include "plimsoll/ops/internal/recurrent_ops.h"

namespace plimsoll {
namespace {

RecurrentActivation activation_for(const char* where, Activation activation) {
  switch (activation) {
    case Activation::linear:
      return RecurrentActivation::linear;
    case Activation::relu:
      return RecurrentActivation::relu;
    case Activation::tanh:
      return RecurrentActivation::tanh;
    case Activation::sigmoid:
      return RecurrentActivation::sigmoid;
    case Activation::hard_sigmoid:
      return RecurrentActivation::hard_sigmoid;
    default:
      throw InvalidArgument(
          fmt::format("{}: \"{}\" is not among its activations; give linear, relu, tanh, sigmoid or hard_sigmoid",
                      where, activation_name(activation)));
  }
}

Sequence run_sequence(RecurrentCell cell, const char* where, const Tensor& x, const Tensor& kernel,
                      const Tensor& recurrent_kernel, const Tensor& bias, const SequenceOptions& options) {
  const bool is_lstm = cell == RecurrentCell::lstm;
  if (!is_lstm && !options.initial_c.is_empty_handle())
    throw InvalidArgument(fmt::format("{}: has no cell state; leave initial_c out", where));
  const RecurrentRule rule = {
      .cell = cell,
      .activation = activation_for(where, options.activation),
      .recurrent_activation = activation_for(where, options.recurrent_activation),
      .reset_after = options.reset_after,
      .reverse = options.go_backwards,
      .in_step_order = options.go_backwards,
      .keep_for_gradient = is_recorded(x),
      .unmasked = options.mask.is_empty_handle(),
  };
  const Tensor* inputs[7] = {&x, &kernel, &recurrent_kernel};
  std::size_t count = 3;
  const auto add = [&](const Tensor& tensor) {
    if (tensor.is_empty_handle()) return false;
    inputs[count++] = &tensor;
    return true;
  };
  RecurrentOperands given;
  given.bias = add(bias);
  given.initial_h = add(options.initial_h);
  given.initial_c = add(options.initial_c);
  given.mask = add(options.mask);
  std::vector<Tensor> out = execute_all(RecurrentOp(rule, given, options.return_sequences), {inputs, count});
  return {std::move(out[0]), std::move(out[1]), is_lstm ? std::move(out[2]) : Tensor()};
}

}  // namespace

Sequence simple_rnn(const Tensor& x, const Tensor& kernel, const Tensor& recurrent_kernel, const Tensor& bias,
                    const SequenceOptions& options) {
  return run_sequence(RecurrentCell::simple, "simple_rnn", x, kernel, recurrent_kernel, bias, options);
}

Sequence lstm(const Tensor& x, const Tensor& kernel, const Tensor& recurrent_kernel, const Tensor& bias,
              const SequenceOptions& options) {
  return run_sequence(RecurrentCell::lstm, "lstm", x, kernel, recurrent_kernel, bias, options);
}

Sequence gru(const Tensor& x, const Tensor& kernel, const Tensor& recurrent_kernel, const Tensor& bias,
             const SequenceOptions& options) {
  return run_sequence(RecurrentCell::gru, "gru", x, kernel, recurrent_kernel, bias, options);
}

}  // namespace plimsoll
