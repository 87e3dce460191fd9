#include "plimsoll/model/training/forecast_prediction.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/layers/recurrent_states.h"
#include "plimsoll/model/training/step_plan.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {

MemoryForecast forecast_prediction(const Model& model, std::size_t batch_size) {
  Network& network = model.network();
  BatchSpec batch;
  batch.device = &current_device();
  const Shapes shapes = model.input_shapes();
  const std::vector<DType> dtypes = model.input_dtypes();
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    std::vector<std::int64_t> sizes(shapes[i].begin(), shapes[i].end());
    if (!sizes.empty() && sizes[0] == kUnknownSize) sizes[0] = static_cast<std::int64_t>(batch_size);
    const Shape shape(sizes);
    if (!shape.is_known())
      throw FailedPrecondition(fmt::format("forecast: model \"{}\" takes inputs of shape {}; sizes are not known",
                                           model.name(), shapes[i].to_string()));
    batch.inputs.push_back({shape, dtypes[i]});
  }
  MemoryForecast forecast;
  try {
    const StepPlan plan(network, StepKind::kPredict, batch);
    forecast = plan.forecast(batch);
    // Results have blocks of their own.
    const Program& program = plan.program();
    const std::size_t results = program.block_bytes() - program.extent_bytes() - program.staged_bytes();
    forecast.by_category["activations"] += results;
    forecast.peak_bytes += results;
    forecast.lower_bound_bytes += results;
    plan.add_front(forecast, Eviction::kRecompute);
  } catch (...) {
    forget_new_states(network);
    throw;
  }
  forget_new_states(network);
  return forecast;
}

}  // namespace plimsoll::internal
