// What a planned step takes with the model it is of: the numbers of a forecast, and the gate of a fit's budget.
#pragma once

#include <cstddef>
#include <vector>

#include "plimsoll/model/training/forecast.h"
#include "plimsoll/model/training/planned_step.h"

namespace plimsoll {

class Network;

// What a block of so many bytes takes of a budget.
constexpr std::size_t block_bytes(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

// A batch of this size as the model's inputs and losses want it. Throws FailedPrecondition when sizes are unknown,
// InvalidArgument for a model that takes batches of another size only.
BatchSpec assumed_batch(const Network& network, std::size_t batch_size);

MemoryForecast forecast_of(const Network& network, const PlannedStep& step, const BatchSpec& batch);
// Traces the step, with an optimizer of the same kind, and forgets it.
MemoryForecast forecast_training(Network& network, const BatchSpec& batch);

// What a pass over a dataset holds beside the batch is there too.
void add_held_bytes(MemoryForecast& forecast, std::size_t bytes);

std::size_t parameter_bytes(const Network& network);  // Of all weights.
// Before anything is computed: throws OutOfMemory when a budget around has no room for results of all examples and, in
// turn, steps with these batches, and says the limit that would do. Unknown for steps that are run directly.
void require_room_to_predict(Network& network, const std::vector<std::vector<Tensor>>& batches, std::int64_t count);
[[noreturn]] void refuse_budget(const Network& network, const char* where, const MemoryForecast& needed,
                                std::size_t budget, const BatchSpec& batch);
// The same for a budget that the run is inside of.
struct BudgetAround {
  std::string name;
  std::size_t limit, used, sufficient;
};
[[noreturn]] void refuse_budget_around(const Network& network, const char* where, const MemoryForecast& needed,
                                       const BatchSpec& batch, const BudgetAround& budget);

}  // namespace plimsoll
