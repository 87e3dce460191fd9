// forecast_prediction: the memory of one prediction of a model, known before it runs.
//
//   forecast_prediction(model, {.batch_size = 8}).smallest_budget;       // The gate of predict, with such a batch.
//
// Counts the parameters, one batch, its results and the run between them. Needs no compile(). Throws FailedPrecondition
// when sizes of the inputs are not known.
#pragma once

#include "plimsoll/base/api.h"
#include "plimsoll/model/model.h"

namespace plimsoll {

PLIMSOLL_API MemoryForecast forecast_prediction(const Model& model, const ForecastOptions& options = {});

}  // namespace plimsoll
