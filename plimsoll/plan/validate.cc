#include "plimsoll/plan/validate.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "plimsoll/base/bytes.h"

namespace plimsoll::internal {
namespace {

// From `time` on, `owner` holds bytes [low, high); nothing when low == high.
struct Event {
  std::int64_t time;
  bool starts;
  std::size_t owner;
  std::size_t buffer;
  std::size_t low;
  std::size_t high;
};

std::string name(std::size_t buffer) { return fmt::format("buffer {}", buffer); }

std::string range(std::size_t low, std::size_t high) { return fmt::format("[{}, {})", low, high); }

void add_stay(std::vector<Event>& events, std::size_t owner, std::size_t buffer, std::int64_t lower, std::int64_t upper,
              std::size_t low, std::size_t high) {
  if (lower >= upper || low >= high) return;
  events.push_back({lower, true, owner, buffer, low, high});
  events.push_back({upper, false, owner, buffer, low, high});
}

void add_buffer(std::vector<Event>& events, const Buffer& buffer, std::size_t index, std::size_t owner,
                std::size_t offset) {
  std::vector<Gap> gaps = buffer.gaps;
  std::sort(gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) { return a.lower < b.lower; });
  std::int64_t from = buffer.lower;
  for (const Gap& gap : gaps) {
    add_stay(events, owner, index, from, gap.lower, offset, offset + buffer.size);
    add_stay(events, owner, index, gap.lower, gap.upper, offset + gap.window_lower, offset + gap.window_upper);
    from = gap.upper;
  }
  add_stay(events, owner, index, from, buffer.upper, offset, offset + buffer.size);
}

// What lives at the moment of the sweep: for each owner the bytes of its members, and all owners by address.
class LiveSet {
 public:
  void remove(const Event& event) {
    take_out(event.owner);
    auto& members = members_[event.owner];
    members.erase(std::find_if(members.begin(), members.end(), [&](const Event& e) {
      return e.buffer == event.buffer && e.low == event.low && e.high == event.high;
    }));
    put_back(event.owner);
  }

  void add(const Event& event) {
    take_out(event.owner);
    members_[event.owner].push_back(event);
    put_back(event.owner);
  }

  // Two owners that share bytes, in words. Looks only around `owner`.
  std::string fault_at(std::size_t owner) const {
    const auto found = extents_.find(owner);
    if (found == extents_.end()) return "";
    const auto [low, high] = found->second;
    auto place = by_low_.find({low, owner});
    if (place != by_low_.begin()) {
      const auto& [key, below_high] = *std::prev(place);
      if (below_high > low) return clash(owner, key.second);
    }
    if (++place != by_low_.end() && place->first.first < high) return clash(owner, place->first.second);
    return "";
  }

 private:
  void take_out(std::size_t owner) {
    if (const auto found = extents_.find(owner); found != extents_.end()) {
      by_low_.erase({found->second.first, owner});
      extents_.erase(found);
    }
  }

  void put_back(std::size_t owner) {
    const auto& members = members_[owner];
    if (members.empty()) {
      members_.erase(owner);
      return;
    }
    std::size_t low = members[0].low, high = members[0].high;
    for (const Event& e : members) low = std::min(low, e.low), high = std::max(high, e.high);
    extents_[owner] = {low, high};
    by_low_[{low, owner}] = high;
  }

  std::string clash(std::size_t a, std::size_t b) const {
    const Event& left = members_.at(a)[0];
    const Event& right = members_.at(b)[0];
    return name(left.buffer) + " " + range(left.low, left.high) + " and " + name(right.buffer) + " " +
           range(right.low, right.high) + " share bytes at time " + std::to_string(std::max(left.time, right.time));
  }

  std::unordered_map<std::size_t, std::vector<Event>> members_;
  std::unordered_map<std::size_t, std::pair<std::size_t, std::size_t>> extents_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> by_low_;
};

std::string check_place(const Buffer& buffer, std::size_t index, std::size_t offset, const Constraints& constraints) {
  for (const std::size_t alignment : {buffer.alignment, constraints.alignment})
    if (alignment == 0 || offset % alignment != 0)
      return name(index) + " at " + std::to_string(offset) + " is not aligned to " + std::to_string(alignment);
  if (offset > constraints.capacity || buffer.size > constraints.capacity - offset)
    return name(index) + " at " + range(offset, offset + buffer.size) + " passes the capacity of " +
           format_bytes_exactly(constraints.capacity);
  return "";
}

std::string sweep(std::vector<Event>& events) {
  // Ends come before starts: lifetimes are half-open.
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.time != b.time ? a.time < b.time : a.starts < b.starts; });
  LiveSet live;
  for (std::size_t first = 0; first < events.size();) {
    std::size_t last = first;
    while (last < events.size() && events[last].time == events[first].time) ++last;
    for (std::size_t i = first; i < last; ++i) events[i].starts ? live.add(events[i]) : live.remove(events[i]);
    for (std::size_t i = first; i < last; ++i)
      if (std::string fault = live.fault_at(events[i].owner); !fault.empty()) return fault;
    first = last;
  }
  return "";
}

}  // namespace

std::string validate_plan(std::span<const Buffer> buffers, std::span<const std::size_t> offsets,
                          const Constraints& constraints) {
  if (offsets.size() != buffers.size())
    return std::to_string(buffers.size()) + " buffers but " + std::to_string(offsets.size()) + " offsets";
  std::vector<Event> events;
  std::unordered_map<int, std::size_t> first_of_set;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    if (std::string fault = check_place(buffer, i, offsets[i], constraints); !fault.empty()) return fault;
    std::size_t owner = i;
    if (buffer.alias_set != kNoAliasSet) {
      owner = first_of_set.emplace(buffer.alias_set, i).first->second;
      if (offsets[i] - buffer.alias_offset != offsets[owner] - buffers[owner].alias_offset)
        return name(i) + " at " + std::to_string(offsets[i]) + " lies apart from its alias set " +
               std::to_string(buffer.alias_set) + ", whose " + name(owner) + " is at " + std::to_string(offsets[owner]);
    }
    add_buffer(events, buffer, i, owner, offsets[i]);
  }
  return sweep(events);
}

}  // namespace plimsoll::internal
