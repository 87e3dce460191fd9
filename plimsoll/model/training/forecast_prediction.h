// forecast_prediction: what Model::forecast({.predict = true}) answers: what one prediction takes, before it runs.
//
//   forecast_prediction(model, 8).smallest_budget;       // The gate of predict, with a batch of 8.
//
// Counts the parameters, one batch, its results and the run between them. Needs no compile(). Throws FailedPrecondition
// when sizes of the inputs are not known.
#pragma once

#include "plimsoll/model/model.h"

namespace plimsoll::internal {

MemoryForecast forecast_prediction(const Model& model, std::size_t batch_size);

}  // namespace plimsoll::internal
