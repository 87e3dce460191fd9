#include "plimsoll/model/training/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/model.h"
#include "plimsoll/model/training/planned_budget.h"
#include "plimsoll/model/training/planned_memory.h"
#include "plimsoll/model/training/train_step.h"

namespace plimsoll {
namespace {

constexpr std::size_t kMostBatch = std::size_t{1} << 30;

void require_compiled(const Network& network) {
  if (!network.training.is_compiled())
    throw FailedPrecondition(fmt::format("forecast: model \"{}\" is not compiled; call compile first", network.name()));
}

// Sums of sizes that a file named could pass the end of numbers.
constexpr std::size_t kMostBytes = std::size_t{1} << 50;
MemoryForecast forecast_batch(Network& network, std::size_t batch_size) {
  const BatchSpec batch = assumed_batch(network, batch_size);
  Shapes inputs;
  for (const auto& input : batch.inputs) inputs.push_back(input.shape);
  if (network.bytes_between_layers(inputs) > kMostBytes)
    throw InvalidArgument(fmt::format(
        "forecast: model \"{}\" passes more than {} between its layers for a batch of {}; give smaller batches",
        network.name(), format_bytes(kMostBytes), batch_size));
  return forecast_training(network, batch);
}

}  // namespace

MemoryForecast Model::forecast(const ForecastOptions& options) const {
  require_compiled(*network_);
  return forecast_batch(*network_, options.batch_size);
}

MemoryForecast Model::forecast(const Example& batch) const {
  require_compiled(*network_);
  prepare(*network_, batch.inputs, "forecast");
  BatchSpec spec = BatchSpec::of(batch);
  for (std::size_t i = 0; i < spec.inputs.size(); ++i)
    spec.inputs[i].dtype = input_dtype_for(*network_, i, spec.inputs[i].dtype);
  return forecast_training(*network_, spec);
}

MemoryForecast Model::forecast(const Dataset& batches) const {
  require_compiled(*network_);
  const PlannedBudget memory(*network_, "forecast", {});
  Example batch;
  std::unique_ptr<ExampleStream> pass;
  {
    const BudgetScope charged(memory.loading());
    const auto frozen = batches.is_set() ? batches.node()->frozen(false) : nullptr;  // Later passes stay what they are.
    pass = frozen ? frozen->open() : batches.open();
    if (!pass->next(batch)) throw InvalidArgument("forecast: the dataset has no batches; give it some");
    cast_inputs(*network_, batch.inputs);
  }
  prepare(*network_, batch.inputs, "forecast");
  MemoryForecast result = forecast_training(*network_, BatchSpec::of(batch));
  memory.add_data(result, batch, *batches.node());
  return result;
}

// The need grows about linearly: doubling until it is too much, then guesses between the two ends.
std::size_t Model::max_batch_size(std::size_t bytes) const {
  require_compiled(*network_);
  const auto need = [&](std::size_t batch) {
    try {
      return forecast_batch(*network_, batch).smallest_budget;
    } catch (const InvalidArgument&) {
      if (batch == 1) throw;
      return SIZE_MAX;  // Sizes that no memory has.
    }
  };
  const Shape& input = network_->is_connected() ? network_->call_of(network_->input_slots()[0]).shapes[0] : Shape();
  if (input.is_set() && input.rank() > 0 && input[0] != kUnknownSize) {  // One that takes no other.
    const auto only = static_cast<std::size_t>(input[0]);
    return need(only) <= bytes ? only : 0;
  }
  std::size_t low = 0, high = 1, low_need = 0, high_need = need(1);
  while (high_need <= bytes && high < kMostBatch) {
    low = high, low_need = high_need;
    high *= 2;
    high_need = need(high);
  }
  if (high_need <= bytes) return high;
  if (low == 0) return 0;
  for (bool halve = false; high - low > 1; halve = !halve) {
    std::size_t guess = low + (high - low) / 2;
    if (!halve && high_need > low_need)
      guess = low + static_cast<std::size_t>(static_cast<double>(high - low) * static_cast<double>(bytes - low_need) /
                                             static_cast<double>(high_need - low_need));
    guess = std::clamp(guess, low + 1, high - 1);
    const std::size_t guess_need = need(guess);
    if (guess_need <= bytes) {
      low = guess, low_need = guess_need;
      if (low + 1 < high && need(low + 1) > bytes) return low;  // Guesses are mostly right.
    } else {
      high = guess, high_need = guess_need;
    }
  }
  return low;
}

std::string MemoryForecast::to_string() const {
  std::string text;
  for (const auto& [category, bytes] : by_category)
    if (bytes > 0) text += fmt::format("{:<12} {:>12} {:>14} bytes\n", category, format_bytes(bytes), bytes);
  text += fmt::format("{:<12} {:>12} {:>14} bytes\n", "peak", format_bytes(peak_bytes), peak_bytes);
  return text +
         fmt::format("{:<12} {:>12} {:>14} bytes\n", "lower bound", format_bytes(lower_bound_bytes), lower_bound_bytes);
}

std::ostream& operator<<(std::ostream& out, const MemoryForecast& forecast) { return out << forecast.to_string(); }

}  // namespace plimsoll
