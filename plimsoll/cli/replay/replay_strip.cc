#include "plimsoll/cli/replay/replay_strip.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace plimsoll::internal {
namespace {

enum Shade : std::size_t { kUsedShade, kWasteShade, kCachedShade, kFreeShade, kAbsentShade, kShades };

constexpr std::array<const char*, kShades> kUnicode = {"█", "▓", "▒", "░", "·"};
constexpr std::array<const char*, kShades> kAscii = {"#", "x", "c", "-", "."};
constexpr std::array<const char*, kShades> kMeaning = {"used", "rounding", "cached", "free, has pages", "no pages"};

struct Stretch {
  Shade shade;
  std::size_t size;
};

// The extents as ranges of one shade, those without pages shortened to at most `longest_absent`.
std::vector<Stretch> shaded(const std::vector<OccupancyExtent>& extents, std::size_t longest_absent) {
  std::vector<Stretch> result;
  const auto add = [&](Shade shade, std::size_t size) {
    if (shade == kAbsentShade) size = std::min(size, longest_absent);
    if (size > 0) result.push_back({shade, size});
  };
  for (const OccupancyExtent& extent : extents) {
    const std::size_t resident = std::min(extent.resident, extent.size);
    if (extent.kind == OccupancyKind::kUsed) {
      const std::size_t asked = std::min(extent.requested, extent.size);
      add(kUsedShade, asked);
      add(kWasteShade, extent.size - asked);
    } else {
      add(extent.kind == OccupancyKind::kCached ? kCachedShade : kFreeShade, resident);
      add(kAbsentShade, extent.size - resident);
    }
  }
  return result;
}

// Bytes of each shade per cell; the shade with most bytes names the cell.
std::vector<Shade> cells_of(const std::vector<Stretch>& stretches, std::size_t cells, double total) {
  std::vector<std::array<double, kShades>> bytes(cells, std::array<double, kShades>{});
  const double width = total / static_cast<double>(cells);
  double at = 0;
  for (const Stretch& stretch : stretches) {
    const double end = at + static_cast<double>(stretch.size);
    for (auto cell = static_cast<std::size_t>(at / width); cell < cells && static_cast<double>(cell) * width < end;
         ++cell) {
      const double from = std::max(at, static_cast<double>(cell) * width);
      const double to = std::min(end, static_cast<double>(cell + 1) * width);
      bytes[cell][stretch.shade] += std::max(0.0, to - from);
    }
    at = end;
  }
  std::vector<Shade> result;
  for (const auto& cell : bytes)
    result.push_back(static_cast<Shade>(std::max_element(cell.begin(), cell.end()) - cell.begin()));
  return result;
}

}  // namespace

std::string occupancy_strip(const std::vector<OccupancyExtent>& extents, const StripOptions& options) {
  std::size_t resident = 0;
  for (const OccupancyExtent& extent : extents)
    resident += extent.kind == OccupancyKind::kUsed ? extent.size : std::min(extent.resident, extent.size);
  const std::vector<Stretch> stretches = shaded(extents, std::max<std::size_t>(resident / 50, 1));
  double total = 0;
  for (const Stretch& stretch : stretches) total += static_cast<double>(stretch.size);
  if (total <= 0 || options.rows == 0 || options.columns == 0) return "";
  const auto& glyphs = options.unicode ? kUnicode : kAscii;
  std::string text;
  std::size_t column = 0;
  for (const Shade shade : cells_of(stretches, options.rows * options.columns, total)) {
    text += glyphs[shade];
    if (++column % options.columns == 0) text += '\n';
  }
  for (std::size_t shade = 0; shade < kShades; ++shade)
    text += fmt::format("{}{} {}", shade == 0 ? "" : "   ", glyphs[shade], kMeaning[shade]);
  return text + '\n';
}

}  // namespace plimsoll::internal
