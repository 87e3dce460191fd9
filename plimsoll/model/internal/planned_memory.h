// What a planned step takes with the model it is of: the numbers of a forecast, and the gate of a fit's budget.
#pragma once

#include <cstddef>
#include <vector>

#include "plimsoll/model/forecast.h"
#include "plimsoll/model/internal/planned_step.h"

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
[[noreturn]] void refuse_budget(const Network& network, const MemoryForecast& needed, std::size_t budget,
                                const BatchSpec& batch);

}  // namespace plimsoll
