// GrowthWatch: detects memory that rises from step to step, and reports once what took it.
//
// Checked once per step, at the same point of it. After a warm-up, steps form windows; the smallest live bytes of a
// window are compared with those of the previous one. When they have risen `kRises` times in a row, the growth since
// the warm-up is broken down by origin. Cost: a few loads per step; about 20 ns for each live tensor, once.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>

#include "plimsoll/tensor/growth.h"

namespace plimsoll::internal {

class GrowthWatch {
 public:
  static constexpr int kRises = 5;

  // `phase` names the unit: "step", "epoch".
  GrowthWatch(const char* phase, std::size_t warm_up, std::size_t window)
      : phase_(phase), warm_up_(warm_up), window_(window) {}
  // The report after another step; mostly empty, and always after the first report.
  std::optional<std::string> step_ended();

 private:
  std::string report();

  const char* const phase_;
  const std::size_t warm_up_, window_;
  std::size_t steps_ = 0;
  std::size_t least_ = std::numeric_limits<std::size_t>::max();  // In this window.
  std::size_t before_ = 0;                                       // In the previous one; 0: there was none.
  std::size_t bytes_at_start_ = 0, steps_at_start_ = 0;
  int rises_ = 0;
  bool told_ = false;
  std::optional<Growth> growth_;
};

}  // namespace plimsoll::internal
