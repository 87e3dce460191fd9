#include "plimsoll/observe/live/live_counters.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/base/text.h"

namespace plimsoll::internal {
namespace {

std::uint64_t sum(const LiveCounters& counters, std::uint64_t LiveDevice::*figure) noexcept {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < counters.num_devices; ++i) total += counters.devices[i].*figure;
  return total;
}

template <std::size_t kRoom>
bool ends(const char (&text)[kRoom]) noexcept {
  return std::memchr(text, 0, kRoom) != nullptr;
}

}  // namespace

std::uint64_t LiveCounters::used() const noexcept { return sum(*this, &LiveDevice::used); }
std::uint64_t LiveCounters::peak() const noexcept { return sum(*this, &LiveDevice::peak); }
std::uint64_t LiveCounters::reserved() const noexcept { return sum(*this, &LiveDevice::reserved); }
std::uint64_t LiveCounters::refusals() const noexcept { return sum(*this, &LiveDevice::refusals); }

int LiveCounters::top_category() const noexcept {
  const auto* const most = std::max_element(by_category, by_category + kCategories);
  return *most == 0 ? -1 : static_cast<int>(most - by_category);
}

NearestLimit nearest_limit(const LiveCounters& counters) {
  NearestLimit nearest;
  const auto look = [&](const std::string& name, std::uint64_t used, std::uint64_t limit) {
    const NearestLimit one{name, used, limit};
    if (limit > 0 && (nearest.limit == 0 || one.share() > nearest.share())) nearest = one;
  };
  for (std::size_t i = 0; i < counters.num_devices; ++i)
    look(text_of(counters.devices[i].name), counters.devices[i].used, counters.devices[i].limit);
  for (std::size_t i = 0; i < counters.num_budgets; ++i)
    look("budget " + text_of(counters.budgets[i].name), counters.budgets[i].used, counters.budgets[i].limit);
  return nearest;
}

bool is_sound(const LiveCounters& counters) noexcept {
  bool sound = counters.num_devices <= LiveCounters::kDevices && counters.num_budgets <= LiveCounters::kBudgets &&
               counters.num_holders <= LiveCounters::kHolders && ends(counters.name);
  for (std::size_t i = 0; sound && i < counters.num_devices; ++i) sound = ends(counters.devices[i].name);
  for (std::size_t i = 0; sound && i < counters.num_budgets; ++i)
    sound = ends(counters.budgets[i].name) && counters.budgets[i].parent < static_cast<std::int32_t>(i);
  for (std::size_t i = 0; sound && i < counters.num_holders; ++i)
    sound =
        ends(counters.holders[i].op) && ends(counters.holders[i].scope) && counters.holders[i].category < kCategories;
  return sound;
}

std::string text_of(const char* name) {
  std::string text = valid_utf8(name);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto letter = static_cast<unsigned char>(text[i]);
    if (letter < 0x20 || letter == 0x7f) text[i] = '?';
    if (letter == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0)
      text.replace(i, 2, "?");  // A control character of eight bits.
  }
  return text;
}

}  // namespace plimsoll::internal
