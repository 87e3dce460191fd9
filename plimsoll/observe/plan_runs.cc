#include "plimsoll/observe/plan_runs.h"

#include <algorithm>

namespace plimsoll::internal {
namespace {

constexpr std::size_t kMostValues = 20'000, kMostPieces = 400'000;  // Per plan; larger plans stay whole.

// Only the first extent that holds values reports phases.
bool reports_phases(const TracePlan& plan, std::uint32_t extent) {
  if (plan.phases.size() > kMostValues) return false;
  return std::none_of(plan.values.begin(), plan.values.end(),
                      [&](const TracePlan::Value& value) { return value.extent < extent && value.label.size > 0; });
}

}  // namespace

PlanRuns::PlanRuns(const TraceFile& trace, const CompactEvents& events, std::size_t most)
    : trace_(trace), events_(events) {
  find_runs();
  std::vector<std::uint32_t> order;
  std::size_t changes = 0;
  for (const auto& [event, run] : runs_) {
    order.push_back(event);
    changes += run.cut->changes.size();
  }
  std::sort(order.begin(), order.end());
  const std::size_t stride = changes / std::max<std::size_t>(most, 1) + 1;
  std::unordered_map<const Cut*, std::size_t> seen;  // Each plan by itself: training and validation take turns.
  for (const std::uint32_t event : order) {
    Run& run = runs_.at(event);
    run.is_expanded = seen[run.cut]++ % stride == 0;
    expanded_ += run.is_expanded;
  }
  add_moments();
}

void PlanRuns::find_runs() {
  if (trace_.plans.empty()) return;
  const std::vector<CompactEvent>& events = events_.all();
  std::unordered_map<std::uint64_t, std::uint32_t> allocated;  // By block.
  for (const CompactEvent& event : events)
    if (event.kind == TraceEventKind::kPlanSteps) allocated.emplace(event.block, UINT32_MAX);
  for (std::uint32_t i = 0; i < events.size(); ++i) {
    const CompactEvent& event = events[i];
    if (event.is_allocation()) {
      const auto found = allocated.find(event.block);
      if (found != allocated.end() && found->second == UINT32_MAX) found->second = i;
    } else if (event.kind == TraceEventKind::kPlanSteps) {
      const std::uint32_t begin = allocated.at(event.block);
      if (begin == UINT32_MAX) continue;  // The ring dropped it.
      const TraceEvent& steps = events_.whole(event);
      const Cut& cut = cut_of(steps.number, steps.step, events[begin].size);
      if (!cut.is_sound) continue;
      Run& run = runs_[begin];
      run.cut = &cut;
      run.steps.push_back(i);
      blocks_.emplace(event.block, begin);
    } else if (event.kind == TraceEventKind::kFree) {
      if (const auto found = blocks_.find(event.block); found != blocks_.end())
        runs_.at(found->second).freed_ns = event.time_ns;
    }
  }
}

const PlanRuns::Cut& PlanRuns::cut_of(std::uint64_t plan, std::uint32_t extent, std::uint64_t bytes) {
  std::unique_ptr<Cut>& cut = cuts_[{plan, extent, bytes}];
  if (!cut) cut = std::make_unique<Cut>(make_cut(trace_.plans[plan], extent, bytes));
  return *cut;
}

PlanRuns::Cut PlanRuns::make_cut(const TracePlan& plan, std::uint32_t extent, std::uint64_t bytes) {
  std::map<std::uint32_t, std::pair<std::vector<const TracePlan::Value*>, std::vector<const TracePlan::Value*>>> steps;
  steps[0];
  std::size_t values = 0;
  for (const TracePlan::Value& value : plan.values) {
    if (value.extent != extent || value.first == value.end || value.label.size == 0) continue;
    if (++values > kMostValues) return {};
    steps[value.first].first.push_back(&value);
    if (value.end < plan.steps) steps[value.end].second.push_back(&value);  // Others stay until the block is freed.
  }
  Cut cut;
  std::map<std::uint32_t, std::uint32_t> phases;  // By step.
  if (reports_phases(plan, extent))
    for (const TracePlan::Phase& phase : plan.phases)
      if (phase.first < plan.steps) steps[phase.first], phases.emplace(phase.first, phase.name);
  cut.has_phases = !phases.empty();
  std::map<std::uint64_t, std::uint32_t> live;                              // Values' pieces, by offset.
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> unused;  // By offset and size.
  const auto add = [&](std::uint32_t step, const TraceEvent* value, std::uint64_t offset, std::uint64_t size) {
    cut.pieces.push_back({value, offset, size});
    cut.changes.push_back({.step = step, .piece = static_cast<std::uint32_t>(cut.pieces.size() - 1), .is_birth = true});
    return static_cast<std::uint32_t>(cut.pieces.size() - 1);
  };
  for (const auto& entry : steps) {
    const std::uint32_t step = entry.first;
    const auto& [begins, ends] = entry.second;
    if (const auto phase = phases.find(step); phase != phases.end())
      cut.changes.push_back({.step = step, .piece = TraceMoment::kPhase, .name = phase->second});
    const std::size_t first = cut.changes.size();
    for (const TracePlan::Value* value : ends) {
      const auto place = live.find(value->label.offset);
      if (place == live.end()) return {};
      cut.changes.push_back({.step = step, .piece = place->second});
      live.erase(place);
    }
    for (const TracePlan::Value* value : begins)
      if (!live.emplace(value->label.offset, add(step, &value->label, value->label.offset, value->label.size)).second)
        return {};
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> now;
    std::uint64_t end = 0;
    const auto gap_until = [&](std::uint64_t offset) {
      if (offset == end) return;
      const std::pair key{end, offset - end};
      const auto known = unused.find(key);
      now.emplace(key, known == unused.end() ? add(step, nullptr, key.first, key.second) : known->second);
      if (known != unused.end()) unused.erase(known);
    };
    for (const auto& [offset, piece] : live) {
      if (offset < end || cut.pieces[piece].size > bytes || offset > bytes - cut.pieces[piece].size) return {};
      gap_until(offset);
      end = offset + cut.pieces[piece].size;
    }
    gap_until(bytes);
    for (const auto& [place, piece] : unused) cut.changes.push_back({.step = step, .piece = piece});
    unused = std::move(now);
    std::stable_sort(cut.changes.begin() + static_cast<std::ptrdiff_t>(first), cut.changes.end(),
                     [](const Cut::Change& a, const Cut::Change& b) { return a.is_birth < b.is_birth; });
    if (cut.pieces.size() > kMostPieces) return {};
  }
  cut.is_sound = true;
  return cut;
}

// Everything but its end.
void PlanRuns::expand(std::uint32_t event, const Run& run) {
  const std::int64_t allocated = events_.all()[event].time_ns;
  auto change = run.cut->changes.begin();
  const auto tell_until = [&](std::uint64_t step, std::int64_t time) {
    for (; change != run.cut->changes.end() && change->step <= step; ++change)
      moments_.push_back({.time_ns = std::max(time, allocated),
                          .event = event,
                          .piece = change->piece,
                          .name = change->name,
                          .is_birth = change->is_birth,
                          .caused_by = event});
  };
  tell_until(0, allocated);
  std::uint64_t done = 0;
  std::int64_t since = allocated;
  for (const std::uint32_t index : run.steps) {
    const CompactEvent& steps = events_.all()[index];
    const bool timed = steps.requested > 0;
    if (timed) {
      since = steps.time_ns;
      for (std::uint64_t i = 0; i < steps.size; ++i) since -= trace_.durations[steps.offset + i];
    }
    const std::int64_t end = timed ? steps.time_ns : std::max(run.freed_ns, steps.time_ns), span = end - since;
    std::int64_t time = since;
    for (std::uint64_t i = 1; i <= steps.size && change != run.cut->changes.end(); ++i) {
      if (timed) {
        time += trace_.durations[steps.offset + i - 1];
      } else if (change->step > done + i) {
        i = std::min<std::uint64_t>(change->step - done, steps.size);  // Nothing happens in between.
      }
      if (!timed)
        time = since + static_cast<std::int64_t>(static_cast<double>(span) * static_cast<double>(i) /
                                                 static_cast<double>(steps.size));
      tell_until(done + i, std::min(time, end));
    }
    done += steps.size;
    since = end;
  }
}

const PlanRuns::Run* PlanRuns::run_of(const CompactEvent& event) const {
  if (blocks_.empty() || (event.kind != TraceEventKind::kFree && !event.is_allocation())) return nullptr;
  const auto block = blocks_.find(event.block);
  return block == blocks_.end() ? nullptr : &runs_.at(block->second);
}

void PlanRuns::add_moments() {
  const std::vector<CompactEvent>& events = events_.all();
  for (std::uint32_t i = 0; i < events.size() && !runs_.empty(); ++i) {
    const Run* const run = run_of(events[i]);
    if (!run || !run->is_expanded) continue;
    const std::uint32_t begin = blocks_.at(events[i].block);
    if (i == begin) {
      expand(i, *run);
    } else if (events[i].kind == TraceEventKind::kFree) {
      const auto end = [&](std::uint32_t piece) {  // If it is still live.
        moments_.push_back({.time_ns = events[i].time_ns, .event = begin, .piece = piece, .caused_by = i});
      };
      for (std::uint32_t piece = 0; piece < run->cut->pieces.size(); ++piece) end(piece);
      if (run->cut->has_phases) end(TraceMoment::kPhasesEnd);
    }
  }
  const auto earlier = [](const TraceMoment& a, const TraceMoment& b) { return a.time_ns < b.time_ns; };
  if (!std::is_sorted(moments_.begin(), moments_.end(), earlier))
    std::stable_sort(moments_.begin(), moments_.end(), earlier);
}

void PlanRuns::for_each(FunctionRef<void(const TraceMoment&)> f) const {
  const std::vector<CompactEvent>& events = events_.all();
  auto moment = moments_.begin();
  for (std::uint32_t i = 0; i < events.size(); ++i) {
    if (events[i].kind == TraceEventKind::kPlanSteps) continue;
    if (const Run* const run = run_of(events[i]); run && run->is_expanded) continue;  // Its pieces replace it.
    for (; moment != moments_.end(); ++moment) {
      if (std::pair(moment->time_ns, std::uint32_t{moment->caused_by}) > std::pair(events[i].time_ns, i)) break;
      f(*moment);
    }
    f({.time_ns = events[i].time_ns, .event = i});
  }
  for (; moment != moments_.end(); ++moment) f(*moment);
}

}  // namespace plimsoll::internal
