#include "plimsoll/graph/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/plan/lifetimes_csv.h"

namespace plimsoll {

std::array<std::size_t, kCategories> MemoryPlan::extent_by_category() const {
  constexpr std::size_t kAlignment = 64;
  const std::size_t count = order.size() + 2;
  std::vector<std::int64_t> change(count, 0);
  for (const PlannedBuffer& buffer : buffers) {
    if (buffer.is_result) continue;
    const auto bytes = static_cast<std::int64_t>(round_up(buffer.bytes, kAlignment));
    change[static_cast<std::size_t>(buffer.first)] += bytes;
    change[std::min(count - 1, static_cast<std::size_t>(buffer.end))] -= bytes;
  }
  std::int64_t live = 0, most = -1;
  std::int64_t at = 0;
  for (std::size_t step = 0; step < count; ++step) {
    live += change[step];
    if (live > most) most = live, at = static_cast<std::int64_t>(step);
  }
  std::array<std::size_t, kCategories> bytes{};
  std::size_t named = 0;
  for (const PlannedBuffer& buffer : buffers) {
    if (buffer.is_result || buffer.first > at || buffer.end <= at) continue;
    bytes[static_cast<std::size_t>(buffer.category_at(at))] += buffer.bytes;
    named += buffer.bytes;
  }
  bytes[static_cast<std::size_t>(Category::kWorkspace)] += extent_bytes - named;
  return bytes;
}

std::string format_front(const std::vector<BudgetPoint>& front) {
  if (front.empty()) return "";
  std::string text = fmt::format("smallest {} ({} bytes)\n", format_bytes(front.back().bytes), front.back().bytes);
  for (const BudgetPoint& point : front)
    text += fmt::format("{:>12} bytes  {:.3f} times as long\n", point.bytes, point.slowdown);
  return text;
}

std::string MemoryPlan::to_csv() const {
  Lifetimes lifetimes;
  for (const PlannedBuffer& buffer : buffers) {
    if (buffer.is_result || buffer.bytes == 0) continue;
    lifetimes.ids.push_back(fmt::format("{}{}", buffer.name, lifetimes.ids.size()));
    lifetimes.buffers.push_back({.size = buffer.bytes, .lower = buffer.first, .upper = buffer.end, .alignment = 64});
    lifetimes.offsets.push_back(buffer.offset);
  }
  return format_lifetimes(lifetimes);
}

std::string MemoryPlan::to_string() const {
  std::string text = fmt::format("peak {} ({} bytes), lower bound {} ({} bytes)\n", format_bytes(peak_bytes),
                                 peak_bytes, format_bytes(lower_bound_bytes), lower_bound_bytes);
  text += fmt::format("extent {} bytes, results {} bytes, {} steps\n", extent_bytes, result_bytes, order.size());
  text += format_front(front);
  if (!front.empty()) text += fmt::format("no run takes less than {} bytes: {}\n", floor_bytes, floor_step);
  for (std::size_t i = 0; i < order.size(); ++i) text += fmt::format("{:>6}  {}\n", i, order[i]);
  for (const PlannedBuffer& buffer : buffers)
    text += fmt::format("{:>10} bytes at {:>10}  steps {} to {}  {}{}\n", buffer.bytes, buffer.offset, buffer.first,
                        buffer.end - 1, buffer.name, buffer.is_result ? " (result)" : "");
  return text;
}

}  // namespace plimsoll
