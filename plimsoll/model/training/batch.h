// Batches and models: describes a batch without its elements, checks whether a model accepts one, and casts its inputs.
//
//   cast_inputs(network, batch.inputs);                       // To the model's dtypes, as Keras does.
//   require_batch(network, StepKind::kTrain, batch, "fit");   // InvalidArgument unless the model accepts it.
//   BatchSpec::of(batch).block_bytes();                       // Its size in a budget.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/model/data/dataset.h"
#include "plimsoll/model/training/step.h"
#include "plimsoll/tensor/op.h"

namespace plimsoll::internal {

class Device;
class Network;

// A batch without its elements.
struct BatchSpec {
  std::vector<TensorSpec> inputs, targets;
  std::optional<TensorSpec> weights;
  Device* device = nullptr;
  std::vector<Device*> devices;  // Of each tensor in that order, when they are on several; else `device`.

  static BatchSpec of(const Example& batch);
  std::size_t block_bytes() const;                // Of such tensors, each in a block of its own.
  std::vector<std::size_t> tensor_bytes() const;  // Of each one, without block rounding.
};

// A batch of this size in the form that the model's inputs and losses expect. Throws FailedPrecondition when sizes are
// unknown, InvalidArgument for a model with a fixed batch size.
BatchSpec assumed_batch(const Network& network, std::size_t batch_size);

// Connects a chain that waits for its input. Throws InvalidArgument for inputs that the model does not accept.
void require_inputs(Network& network, const std::vector<Tensor>& inputs, const char* where);
// The same for targets too, unless the step predicts: FailedPrecondition when the model is not compiled.
void require_batch(Network& network, StepKind kind, const Example& batch, const char* where);

// The dtype to which the model casts inputs of this dtype: its own. Integers that only embeddings read stay integers.
DType input_dtype_for(const Network& network, std::size_t input, DType given);
// Casts inputs of other dtypes, on the caller's budget; those that match stay as they are.
void cast_inputs(const Network& network, std::vector<Tensor>& inputs);

}  // namespace plimsoll::internal
