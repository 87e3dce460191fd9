// synthetic_training: the allocations of a small recurrent network that learns, made up but typical; for the demo.
//
//   Trace trace = parse_trace("demo", synthetic_training({.steps = 12}));
//
// Parameters and optimizer state come first and stay. Each step reads a batch of another length, keeps the activations
// of its forward pass until the backward pass has used them, and makes gradients: large blocks whose sizes change from
// step to step, between small ones that stay. The same options give the same trace everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "plimsoll/cli/trace_csv.h"

namespace plimsoll {

struct SyntheticTraining {
  std::size_t layers = 2;
  std::size_t hidden = 232;
  std::size_t batch = 32;
  std::size_t shortest = 24, longest = 80;  // Sequence lengths.
  std::size_t steps = 12;
  std::uint64_t seed = 7;
};

// The text of the trace: a,<id>,<bytes> and f,<id> lines with comments.
std::string synthetic_training(const SyntheticTraining& options);

Trace parse_trace(const std::string& name, const std::string& text);

}  // namespace plimsoll
