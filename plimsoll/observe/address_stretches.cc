#include "plimsoll/observe/address_stretches.h"

#include <algorithm>
#include <tuple>

#include "plimsoll/base/bytes.h"

namespace plimsoll::internal {
namespace {

constexpr std::uint64_t kUnit = 64;

// The addresses that each arena ever used, neighbours merged.
std::vector<AddressStretch> used(const TraceHistory& history) {
  std::vector<AddressStretch> all;
  for (const TracedBlock& block : history.blocks) all.push_back({block.arena, block.offset, block.size, 0});
  std::sort(all.begin(), all.end(), [](const AddressStretch& a, const AddressStretch& b) {
    return std::tie(a.arena, a.from, a.size) < std::tie(b.arena, b.from, b.size);
  });
  std::vector<AddressStretch> joined;
  for (const AddressStretch& one : all) {
    AddressStretch* last = joined.empty() ? nullptr : &joined.back();
    if (last && last->arena == one.arena && one.from <= last->from + last->size)
      last->size = std::max(last->size, one.from + one.size - last->from);
    else
      joined.push_back(one);
  }
  return joined;
}

}  // namespace

std::vector<AddressStretch> address_stretches(const TraceHistory& history) {
  std::vector<std::uint64_t> total(history.arenas.size());
  const std::vector<AddressStretch> pieces = used(history);
  for (const AddressStretch& piece : pieces) total[piece.arena] += piece.size;
  std::vector<AddressStretch> result;
  std::uint64_t end = 0;  // The end of the map so far.
  for (const AddressStretch& piece : pieces) {
    AddressStretch* last = result.empty() ? nullptr : &result.back();
    const bool same = last && last->arena == piece.arena;
    const std::uint64_t gap = same ? piece.from - (last->from + last->size) : 0;
    if (same && gap <= std::max<std::uint64_t>(total[piece.arena] / 4, 64_KiB)) {
      last->size += gap + piece.size;
    } else {
      if (last) end += std::max(kUnit, total[piece.arena] / 48 / kUnit * kUnit);
      result.push_back({piece.arena, piece.from, piece.size, end});
    }
    end = result.back().at + result.back().size;
  }
  return result;
}

std::uint64_t place_in_map(const std::vector<AddressStretch>& stretches, std::uint32_t arena, std::uint64_t offset) {
  const auto after = std::upper_bound(
      stretches.begin(), stretches.end(), std::tuple(arena, offset),
      [](const auto& key, const AddressStretch& stretch) { return key < std::tuple(stretch.arena, stretch.from); });
  const AddressStretch& stretch = *std::prev(after);
  return stretch.at + (offset - stretch.from);
}

}  // namespace plimsoll::internal
