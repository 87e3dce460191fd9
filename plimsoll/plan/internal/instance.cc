#include "plimsoll/plan/internal/instance.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "plimsoll/base/rounding.h"
#include "plimsoll/plan/internal/check_buffers.h"

namespace plimsoll::internal {
namespace {

// Bytes [low, high) of an item, counted from its place, held during [lower, upper).
struct Stay {
  int item;
  std::int64_t lower;
  std::int64_t upper;
  std::size_t low;
  std::size_t high;
};

struct Draft {
  std::vector<Stay> stays;  // Of one item never two at a time.
  std::vector<std::size_t> alignments;
  std::vector<std::size_t> bytes;
};

void add_stays(std::vector<Stay>& stays, int item, const Buffer& buffer) {
  std::vector<Gap> gaps = buffer.gaps;
  std::sort(gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) { return a.lower < b.lower; });
  const std::size_t base = buffer.alias_offset;
  const auto add = [&](std::int64_t lower, std::int64_t upper, std::size_t low, std::size_t high) {
    if (lower < upper && low < high) stays.push_back({item, lower, upper, base + low, base + high});
  };
  std::int64_t from = buffer.lower;
  for (const Gap& gap : gaps) {
    add(from, gap.lower, 0, buffer.size);
    add(gap.lower, gap.upper, gap.window_lower, gap.window_upper);
    from = gap.upper;
  }
  add(from, buffer.upper, 0, buffer.size);
}

// The stays of the members of an alias set as those of one item: at each time from the lowest to the highest byte.
void merge_members(std::vector<Stay>& out, int item, const std::vector<Stay>& members) {
  std::vector<std::int64_t> times;
  for (const Stay& s : members) times.insert(times.end(), {s.lower, s.upper});
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const std::size_t first_own = out.size();
  for (std::size_t t = 0; t + 1 < times.size(); ++t) {
    Stay hull{item, times[t], times[t + 1], SIZE_MAX, 0};
    for (const Stay& s : members)
      if (s.lower <= times[t] && times[t] < s.upper)
        hull.low = std::min(hull.low, s.low), hull.high = std::max(hull.high, s.high);
    if (hull.low >= hull.high) continue;
    Stay* last = out.size() > first_own ? &out.back() : nullptr;
    if (last && last->upper == hull.lower && last->low == hull.low && last->high == hull.high)
      last->upper = hull.upper;
    else
      out.push_back(hull);
  }
}

int new_item(Draft& draft, Instance& instance, std::size_t alignment) {
  draft.alignments.push_back(alignment);
  draft.bytes.push_back(0);
  instance.items.emplace_back();
  return static_cast<int>(instance.items.size()) - 1;
}

Draft draft_items(std::span<const Buffer> buffers, const Constraints& constraints, Instance& instance) {
  Draft draft;
  std::unordered_map<int, int> item_of_set;
  std::vector<std::vector<Stay>> set_stays;
  std::vector<int> set_items;
  instance.item_of_buffer.assign(buffers.size(), -1);
  instance.offset_in_item.assign(buffers.size(), 0);
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    const Buffer& buffer = buffers[b];
    const std::size_t alignment = std::lcm(buffer.alignment, constraints.alignment);
    const bool in_set = buffer.alias_set != kNoAliasSet;
    if (buffer.size == 0 && !in_set) continue;
    int item = -1;
    if (!in_set) {
      item = new_item(draft, instance, alignment);
      add_stays(draft.stays, item, buffer);
    } else {
      const auto [found, is_new] = item_of_set.emplace(buffer.alias_set, static_cast<int>(set_stays.size()));
      if (is_new) set_items.push_back(new_item(draft, instance, 1)), set_stays.emplace_back();
      item = set_items[found->second];
      draft.alignments[item] = std::lcm(draft.alignments[item], alignment);
      add_stays(set_stays[found->second], item, buffer);
    }
    draft.bytes[item] = std::max(draft.bytes[item], buffer.alias_offset + buffer.size);
    instance.item_of_buffer[b] = item;
    instance.offset_in_item[b] = buffer.alias_offset;
  }
  for (std::size_t s = 0; s < set_stays.size(); ++s) merge_members(draft.stays, set_items[s], set_stays[s]);
  return draft;
}

// Pads every extent to the alignment all items share, then finds the largest unit that divides everything.
void choose_units(Draft& draft, Instance& instance) {
  std::size_t shared = 0;
  for (const std::size_t a : draft.alignments) shared = std::gcd(shared, a);
  shared = std::max<std::size_t>(shared, 1);
  std::size_t unit = 0;
  for (const std::size_t b : draft.bytes) unit = std::gcd(unit, round_up(b, shared));
  for (Stay& s : draft.stays) {
    s.low = s.low / shared * shared;
    s.high = round_up(s.high, shared);
    unit = std::gcd(unit, std::gcd(s.low, s.high));
  }
  unit = std::max<std::size_t>(unit, 1);
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::size_t a : draft.alignments)
      if (unit % a != 0 && a % unit != 0) unit = std::gcd(unit, a), changed = true;
  }
  instance.unit = unit;
  for (std::size_t i = 0; i < instance.items.size(); ++i) {
    Item& item = instance.items[i];
    item.bytes = draft.bytes[i];
    item.size = static_cast<Units>(round_up(draft.bytes[i], shared) / unit);
    item.alignment = unit % draft.alignments[i] == 0 ? 1 : static_cast<Units>(draft.alignments[i] / unit);
  }
}

// Section numbers of times: a new section starts with the first birth after a death.
struct Sections {
  std::vector<std::int64_t> births;  // Time of the first birth of each section, rising.
  int first_at(std::int64_t time) const {
    return static_cast<int>(std::upper_bound(births.begin(), births.end(), time) - births.begin()) - 1;
  }
};

Sections find_sections(const std::vector<Stay>& stays) {
  std::vector<std::int64_t> births, deaths;
  for (const Stay& s : stays) births.push_back(s.lower), deaths.push_back(s.upper);
  std::sort(births.begin(), births.end());
  std::sort(deaths.begin(), deaths.end());
  Sections sections;
  std::size_t d = 0;
  for (const std::int64_t birth : births) {
    bool death_between = sections.births.empty();
    while (d < deaths.size() && deaths[d] <= birth) ++d, death_between = true;
    if (death_between) sections.births.push_back(birth);
  }
  return sections;
}

void number_sections(Draft& draft, Instance& instance) {
  const Sections sections = find_sections(draft.stays);
  instance.sections = static_cast<int>(sections.births.size());
  std::sort(draft.stays.begin(), draft.stays.end(),
            [](const Stay& a, const Stay& b) { return a.item != b.item ? a.item < b.item : a.lower < b.lower; });
  const auto unit = instance.unit;
  for (std::size_t i = 0; i < draft.stays.size();) {
    Item& item = instance.items[draft.stays[i].item];
    item.pieces_begin = static_cast<std::uint32_t>(instance.pieces.size());
    const int owner = draft.stays[i].item;
    for (; i < draft.stays.size() && draft.stays[i].item == owner; ++i) {
      const Stay& s = draft.stays[i];
      // The section in which a stay is born has begun at or before it; it dies before the first birth at or after
      // `upper`.
      const int first = sections.first_at(s.lower);
      const int last = sections.first_at(s.upper - 1) + 1;
      instance.pieces.push_back({first, last, static_cast<Units>(s.low / unit), static_cast<Units>(s.high / unit)});
      const double duration = static_cast<double>(s.upper) - static_cast<double>(s.lower);
      item.duration += duration;
      const std::uint64_t units = (s.high - s.low) / unit;
      item.area += duration * static_cast<double>(units);
    }
    item.pieces_end = static_cast<std::uint32_t>(instance.pieces.size());
  }
}

std::size_t most_live_bytes(const std::vector<Stay>& stays) {
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;  // Time and bytes; deaths sort before births.
  for (const Stay& s : stays) {
    const auto bytes = static_cast<std::int64_t>(s.high - s.low);
    changes.insert(changes.end(), {{s.lower, bytes}, {s.upper, -bytes}});
  }
  std::sort(changes.begin(), changes.end());
  std::int64_t live = 0, most = 0;
  for (const auto& [time, bytes] : changes) most = std::max(most, live += bytes);
  return static_cast<std::size_t>(most);
}

// A stay that ends inside a section and one that starts later inside the same section would both count there; sections
// begin at every birth that follows a death, so two stays of one item never share one. Settles the flags of the items.
void finish_items(Instance& instance) {
  for (Item& item : instance.items) {
    const auto pieces = instance.pieces_of(item);
    if (pieces.empty()) {  // Its gaps cover its whole life: it takes part nowhere.
      instance.is_simple = false;
      continue;
    }
    item.first = pieces.front().first;
    item.last = pieces.back().last;
    if (pieces.size() != 1 || pieces[0].low != 0 || pieces[0].high != item.size) instance.is_simple = false;
    for (const Piece& p : pieces)
      if (p.low != 0) instance.has_windows = true;
  }
}

}  // namespace

Instance make_instance(std::span<const Buffer> buffers, const Constraints& constraints) {
  check_buffers(buffers, constraints);
  Instance instance;
  Draft draft = draft_items(buffers, constraints, instance);
  instance.live_bytes = most_live_bytes(draft.stays);
  choose_units(draft, instance);
  number_sections(draft, instance);
  finish_items(instance);
  return instance;
}

std::vector<std::size_t> buffer_offsets(const Instance& instance, std::span<const Units> item_offsets) {
  std::vector<std::size_t> offsets(instance.item_of_buffer.size(), 0);
  for (std::size_t b = 0; b < offsets.size(); ++b)
    if (const int item = instance.item_of_buffer[b]; item >= 0)
      offsets[b] = static_cast<std::size_t>(item_offsets[item]) * instance.unit + instance.offset_in_item[b];
  return offsets;
}

std::size_t peak_bytes(const Instance& instance, std::span<const Units> item_offsets) {
  std::size_t peak = 0;
  for (std::size_t i = 0; i < instance.items.size(); ++i)
    peak = std::max(peak, static_cast<std::size_t>(item_offsets[i]) * instance.unit + instance.items[i].bytes);
  return peak;
}

}  // namespace plimsoll::internal
