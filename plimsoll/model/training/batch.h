// Batches and models: what a batch is without its elements, whether a model takes one, and the casts it needs.
//
//   cast_inputs(network, batch.inputs);                       // To the model's dtypes, as Keras does.
//   require_batch(network, StepKind::kTrain, batch, "fit");   // InvalidArgument unless the model takes it.
//   BatchSpec::of(batch).block_bytes();                       // What it takes of a budget.
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

// What a batch is, without its elements.
struct BatchSpec {
  std::vector<TensorSpec> inputs, targets;
  std::optional<TensorSpec> weights;
  Device* device = nullptr;
  std::vector<Device*> devices;  // Of each tensor in that order, where they are on several; else `device`.

  static BatchSpec of(const Example& batch);
  std::size_t block_bytes() const;                // Of such tensors, each a block of its own.
  std::vector<std::size_t> tensor_bytes() const;  // Of each one, without what blocks add.
};

// A batch of this size as the model's inputs and losses want it. Throws FailedPrecondition when sizes are unknown,
// InvalidArgument for a model that takes batches of another size only.
BatchSpec assumed_batch(const Network& network, std::size_t batch_size);

// Builds a chain that waits for its input. Throws InvalidArgument for inputs that the model does not take.
void require_inputs(Network& network, const std::vector<Tensor>& inputs, const char* where);
// The same, and for targets, unless the step predicts: FailedPrecondition when the model is not compiled.
void require_batch(Network& network, StepKind kind, const Example& batch, const char* where);

// What inputs of this dtype become for the model's input: its own dtype. Integers that only embeddings read stay what
// they are.
DType input_dtype_for(const Network& network, std::size_t input, DType given);
// Casts inputs of other dtypes, on the caller's budget; those that fit stay as they are.
void cast_inputs(const Network& network, std::vector<Tensor>& inputs);

}  // namespace plimsoll::internal
