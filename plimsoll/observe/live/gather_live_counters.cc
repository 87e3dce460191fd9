#include <time.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string_view>
#include <tuple>

#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/arena_list.h"
#include "plimsoll/memory/budget_list.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/observe/live/live_counters.h"

namespace plimsoll::internal {
namespace {

std::int64_t unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void gather_devices(LiveCounters& counters) {
  counters.num_devices = 0;
  ArenaList::instance().for_each([&](const Arena& arena) {
    if (counters.num_devices == LiveCounters::kDevices) return;
    LiveDevice& device = counters.devices[counters.num_devices++];
    const MemoryStats stats = arena.stats();
    set_text(device.name, arena.name());
    device.used = stats.bytes_in_use;
    device.peak = stats.peak_bytes_in_use;
    device.reserved = stats.bytes_reserved;
    device.peak_reserved = stats.peak_bytes_reserved;
    device.limit = arena.limit();
    device.allocations = stats.num_allocs;
    device.refusals = stats.num_ooms;
  });
}

// Parents first, then those with most bytes, so that what does not fit matters least.
void gather_budgets(LiveCounters& counters) {
  const std::vector<BudgetFigures> budgets = list_budgets();
  std::vector<std::size_t> depth(budgets.size(), 0), order(budgets.size());
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    order[i] = i;
    for (std::ptrdiff_t up = budgets[i].parent; up >= 0 && depth[i] < budgets.size();
         up = budgets[static_cast<std::size_t>(up)].parent)
      ++depth[i];
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple(depth[a], budgets[b].used) < std::tuple(depth[b], budgets[a].used);
  });
  std::vector<std::int32_t> places(budgets.size(), -1);
  counters.all_budgets = static_cast<std::uint32_t>(budgets.size());
  counters.num_budgets = 0;
  for (const std::size_t i : order) {
    if (counters.num_budgets == LiveCounters::kBudgets) break;
    places[i] = static_cast<std::int32_t>(counters.num_budgets);
    LiveBudget& budget = counters.budgets[counters.num_budgets++];
    set_text(budget.name, budgets[i].name);
    budget.parent = budgets[i].parent < 0 ? -1 : places[static_cast<std::size_t>(budgets[i].parent)];
    budget.limit = budgets[i].limit;
    budget.used = budgets[i].used;
    budget.peak = budgets[i].peak;
  }
}

void count_live_blocks(LiveCounters& counters) {
  struct Group {
    std::uint64_t bytes = 0, blocks = 0;
  };
  // Names live as long as the program, so comparing their addresses tells most of them apart quickly.
  std::map<std::tuple<const char*, const char*, Category>, Group> by_address;
  std::fill_n(counters.by_category, kCategories, 0);
  ArenaList::instance().for_each([&](const Arena& arena) {
    arena.for_each_live([&](const Chunk& chunk) {
      counters.by_category[static_cast<std::size_t>(chunk.label.category)] += chunk.size;
      Group& group = by_address[{chunk.label.op, chunk.label.scope, chunk.label.category}];
      group.bytes += chunk.size;
      ++group.blocks;
    });
  });
  std::map<std::tuple<std::string_view, std::string_view, Category>, Group> by_name;
  for (const auto& [key, group] : by_address) {
    Group& named = by_name[{std::get<0>(key), std::get<1>(key), std::get<2>(key)}];
    named.bytes += group.bytes;
    named.blocks += group.blocks;
  }
  std::vector<decltype(by_name)::const_iterator> order;
  for (auto group = by_name.cbegin(); group != by_name.cend(); ++group) order.push_back(group);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a->second.bytes > b->second.bytes; });
  counters.num_holders = static_cast<std::uint32_t>(std::min(order.size(), LiveCounters::kHolders));
  for (std::size_t i = 0; i < counters.num_holders; ++i) {
    LiveHolder& holder = counters.holders[i];
    const auto& [op, scope, category] = order[i]->first;
    set_text(holder.op, std::string(op));
    set_text(holder.scope, std::string(scope));
    holder.category = static_cast<std::uint32_t>(category);
    holder.bytes = order[i]->second.bytes;
    holder.blocks = order[i]->second.blocks;
  }
  counters.counted_unix_ns = unix_ns();
}

std::uint64_t cpu_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

void gather_live_counters(LiveCounters& counters, bool count_blocks) {
  gather_devices(counters);
  gather_budgets(counters);
  if (count_blocks) count_live_blocks(counters);
  const auto step = last_marked_step();
  counters.has_step = step.has_value();
  counters.step = step.value_or(0);
  counters.is_recording = trace_is_recording();
  counters.process_cpu_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
  counters.updated_unix_ns = unix_ns();
}

}  // namespace plimsoll::internal
