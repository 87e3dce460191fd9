// The demo's series: synthetic hourly readings of a harbour's water level, by formula, the same on every machine.
//
// Two tides (periods of 12.42 and 12.00 hours), a daily one (25.82 hours), a fortnightly swing that follows from the
// first two, a slow storm surge, and noise of 3 % from a counter-based generator. No data is bundled: the formula is
// the data.
#pragma once

#include <cstddef>
#include <vector>

namespace plimsoll::internal {

std::vector<float> harbour_levels(std::size_t hours);  // In metres above the mean.

}  // namespace plimsoll::internal
