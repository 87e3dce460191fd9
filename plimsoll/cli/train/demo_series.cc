#include "plimsoll/cli/train/demo_series.h"

#include <cmath>
#include <cstdint>
#include <numbers>

namespace plimsoll::internal {
namespace {

// A number of [-1, 1) for each hour: a mixed counter.
double noise(std::uint64_t hour) {
  std::uint64_t x = (hour + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return static_cast<double>((x ^ x >> 31) >> 11) * 0x1p-52 - 1;
}

}  // namespace

std::vector<float> harbour_levels(std::size_t hours) {
  std::vector<float> levels(hours);
  for (std::size_t hour = 0; hour < hours; ++hour) {
    const auto wave = [&](double height, double period, double phase) {
      return height * std::sin(2 * std::numbers::pi * static_cast<double>(hour) / period + phase);
    };
    const double surge =
        0.25 * std::sin(static_cast<double>(hour) / 61.0) * std::sin(static_cast<double>(hour) / 173.0);
    levels[hour] = static_cast<float>(wave(1.0, 12.4206, 0.3) + wave(0.45, 12.0, 1.1) + wave(0.2, 25.8193, 0.0) +
                                      surge + 0.03 * noise(hour));
  }
  return levels;
}

}  // namespace plimsoll::internal
