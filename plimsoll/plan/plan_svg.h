// plan_svg(): a picture of a plan: time across, address up, one box per buffer, its numbers when the mouse rests on it.
//
//   write("plan.svg", plan_svg(lifetimes, {.capacity = 1_MiB, .lower_bound = plan.lower_bound}));
//
// Self-contained SVG, no scripts. Colours tell sizes apart: the larger a buffer, the darker. Cost: O(n log n).
#pragma once

#include <cstddef>
#include <string>

#include "plimsoll/plan/lifetimes_csv.h"

namespace plimsoll::internal {

struct PictureOptions {
  std::size_t capacity = 0;     // Drawn as a line when not 0.
  std::size_t lower_bound = 0;  // Likewise.
  std::string title;
};

// Requires one offset per buffer.
PLIMSOLL_API std::string plan_svg(const Lifetimes& lifetimes, const PictureOptions& options);

}  // namespace plimsoll::internal
