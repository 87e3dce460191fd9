// Converts a StepResult to a row of numbers, to be sent, and back.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plimsoll/model/training/step.h"

namespace plimsoll::internal {

std::vector<double> numbers_of(const StepResult& result);
// `result` says how many there are of each kind.
void set_numbers(StepResult& result, std::span<const double> numbers);

}  // namespace plimsoll::internal
