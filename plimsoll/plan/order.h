// order_operations(): finds an order of a graph of operations that needs little memory at once.
//
//   std::vector<Operation> operations = {{.output_bytes = 100}, {.inputs = {0}, .output_bytes = 10}, ...};
//   OrderResult result = order_operations(operations);
//   result.peak <= result.natural_peak;     // the natural order is the one given
//
// The graph is cut where one operation separates all before it from all after it; each piece is ordered on its own:
// exactly by dynamic programming over sets of done operations when there are few enough, by beam search otherwise.
// A pure function; the same input gives the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/base/api.h"

namespace plimsoll::internal {

// Reads the outputs of earlier operations and makes one output, freed after its last reader.
struct Operation {
  std::vector<int> inputs;  // Operations, by number; each smaller than this one's own.
  std::size_t output_bytes = 0;
  std::size_t workspace_bytes = 0;  // Needed only while it runs.
  bool keep_output = false;         // Lives to the end.
};

struct OrderLimits {
  std::uint64_t exact_states = 100'000;  // Per piece; beyond that beam search takes over.
  std::uint64_t beam_states = 400'000;   // Per piece, spread over its length.
};

struct OrderResult {
  std::vector<int> order;        // Every operation once, after its inputs.
  std::size_t peak = 0;          // Largest sum of live outputs and workspace.
  std::size_t natural_peak = 0;  // The same for the order given.
  bool is_optimal = false;       // Every piece was ordered exactly.
};

// Throws InvalidArgument when an input is not an earlier operation.
PLIMSOLL_API OrderResult order_operations(std::span<const Operation> operations, const OrderLimits& limits = {});

// The peak of running in `order`. Throws InvalidArgument when it is not an order of all operations after their inputs.
PLIMSOLL_API std::size_t order_peak(std::span<const Operation> operations, std::span<const int> order);

}  // namespace plimsoll::internal
