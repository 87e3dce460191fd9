// forecast_svg(): a picture of a forecast: budgets across, the time of a step up, from the smallest budget to the peak.
//
//   write_file("front.svg", forecast_svg(model.forecast({.batch_size = 64}), {.title = "tides, batches of 64"}));
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "plimsoll/model/training/forecast.h"

namespace plimsoll::internal {

struct ForecastPicture {
  std::string title = {};
  std::optional<std::size_t> budget = {};  // Marked if it is within the picture.
};

std::string forecast_svg(const MemoryForecast& forecast, const ForecastPicture& options);

}  // namespace plimsoll::internal
