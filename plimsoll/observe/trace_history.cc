#include "plimsoll/observe/trace_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/observe/plan_runs.h"
#include "plimsoll/observe/trace_records.h"

namespace plimsoll {
namespace {

class Builder {
 public:
  // `trace` without its events.
  Builder(const TraceFile& trace, const CompactEvents& events, std::size_t most_planned)
      : events_(events), runs_(trace, events, most_planned) {
    out_.names = trace.names;
    if (out_.names.empty()) out_.names.emplace_back();
    out_.arenas = trace.arenas;
    out_.events = events.all().size();
    out_.dropped_events = trace.dropped_events;
    out_.start_unix_ns = trace.start_unix_ns;
    out_.ring = trace.ring;
    out_.complete = trace.complete;
    out_.process = trace.process;
  }

  TraceHistory run() && {
    out_.plan_runs = runs_.runs();
    out_.expanded_plan_runs = runs_.expanded();
    reserve();
    runs_.for_each([&](const TraceMoment& moment) {
      if (moment.piece == TraceMoment::kNoPiece)
        add(events_.all()[moment.event], runs_.is_whole(moment.event));
      else if (moment.piece == TraceMoment::kPhase || moment.piece == TraceMoment::kPhasesEnd)
        add_phase(moment);
      else
        add_piece(moment);
    });
    out_.labels = std::move(labels_).take();
    return std::move(out_);
  }

 private:
  // Exact: growing step by step would take twice the memory.
  void reserve() {
    std::size_t births = 0, changes = 0;
    runs_.for_each([&](const TraceMoment& moment) {
      const bool is_piece = moment.piece != TraceMoment::kNoPiece;
      const CompactEvent& event = events_.all()[moment.event];
      const bool is_birth = is_piece ? moment.is_birth : event.is_allocation();
      births += is_birth;
      changes += is_birth || is_piece || event.kind == TraceEventKind::kFree;
    });
    out_.blocks.reserve(births);
    out_.times.reserve(changes);
    out_.owner.reserve(changes);
  }

  std::uint32_t now() const { return static_cast<std::uint32_t>(out_.times.size()); }

  void add(const CompactEvent& event, bool whole_plan) {
    out_.duration_ns = std::max(out_.duration_ns, event.time_ns);
    switch (event.kind) {
      case TraceEventKind::kAllocate:
      case TraceEventKind::kExisting:
        return born(event, whole_plan);
      case TraceEventKind::kFree:
        return died(event.block, event.time_ns);
      case TraceEventKind::kCommitted:
        out_.commits.push_back({now(), event.arena, event.size});
        return;
      case TraceEventKind::kArenaEnded:
        return arena_ended(event);
      case TraceEventKind::kPlanSteps:
        return;  // Its pieces replace it.
      default:
        mark(events_.whole(event));
    }
  }

  void born(const CompactEvent& event, bool whole_plan) {
    const auto [place, is_new] = live_.try_emplace(event.block, static_cast<std::uint32_t>(out_.blocks.size()));
    if (!is_new) return;  // Recorded twice.
    out_.existing += event.kind == TraceEventKind::kExisting;
    TracedLabel label = events_.label(event);
    label.is_unused = whole_plan;
    out_.blocks.push_back({.born = now(),
                           .label = labels_.number_of(label),
                           .arena = event.arena,
                           .thread = event.thread,
                           .size = event.size,
                           .requested = std::min(event.requested, event.size),
                           .offset = event.offset});
    moment(event.time_ns, place->second);
  }

  void died(std::uint64_t id, std::int64_t time_ns) {
    const auto place = live_.find(id);
    if (place == live_.end()) {
      ++out_.unknown_frees;
      return;
    }
    out_.blocks[place->second].died = now();
    moment(time_ns, place->second);
    live_.erase(place);
  }

  // Pieces have ids that no block has.
  void add_piece(const TraceMoment& change) {
    std::vector<std::uint64_t>& ids = piece_ids_[change.event];
    if (ids.empty()) ids.resize(runs_.num_pieces(change.event), 0);
    if (!change.is_birth) {
      if (const std::uint64_t id = std::exchange(ids[change.piece], 0); live_.count(id) != 0) died(id, change.time_ns);
      return;
    }
    const CompactEvent& extent = events_.all()[change.event];
    const TracedLabel& outer = events_.label(extent);
    const PlanPiece& piece = runs_.piece(change);
    ids[change.piece] = next_piece_id_--;
    live_.emplace(ids[change.piece], static_cast<std::uint32_t>(out_.blocks.size()));
    out_.existing += extent.kind == TraceEventKind::kExisting && change.time_ns == extent.time_ns;
    TracedLabel label = piece.value ? label_of(*piece.value)
                                    : TracedLabel{.op = outer.op,
                                                  .scope = outer.scope,
                                                  .name = name_number("unused now"),
                                                  .category = outer.category,
                                                  .is_unused = true};
    label.budget = outer.budget;
    out_.blocks.push_back({.born = now(),
                           .label = labels_.number_of(label),
                           .arena = extent.arena,
                           .thread = extent.thread,
                           .size = piece.size,
                           .requested = piece.value ? piece.value->requested : piece.size,
                           .offset = extent.offset + piece.offset});
    moment(change.time_ns, static_cast<std::uint32_t>(out_.blocks.size() - 1));
  }

  // A phase of a plan. After its last one, the phase before the plan continues.
  void add_phase(const TraceMoment& change) {
    std::string text;
    if (change.piece == TraceMoment::kPhase) {
      phases_before_.try_emplace(change.event, phase_);
      text = out_.names[change.name];
    } else if (const auto before = phases_before_.extract(change.event)) {
      text = before.mapped().empty() ? "between steps" : before.mapped();
    }
    if (text.empty() || text == phase_) return;
    phase_ = text;
    out_.marks.push_back(
        {.kind = MarkKind::kPhase, .moment = now(), .time_ns = change.time_ns, .text = std::move(text)});
  }

  void arena_ended(const CompactEvent& event) {
    std::vector<std::pair<std::uint32_t, std::uint64_t>> gone;
    for (const auto& [id, block] : live_)
      if (out_.blocks[block].arena == event.arena) gone.emplace_back(block, id);
    std::sort(gone.begin(), gone.end());
    for (const auto& [block, id] : gone) died(id, event.time_ns);
    out_.commits.push_back({now(), event.arena, 0});
  }

  void moment(std::int64_t time_ns, std::uint32_t block) {
    out_.times.push_back(time_ns);
    out_.owner.push_back(block);
  }

  // The number of a name that came from a record.
  std::uint32_t name_number(const std::string& name) {
    const auto [place, is_new] = names_.try_emplace(name, static_cast<std::uint32_t>(out_.names.size()));
    if (is_new) out_.names.push_back(name);
    return place->second;
  }

  // Names given after the blocks were made; they apply to the blocks' whole lives.
  void apply_names() {
    for (const TracedName& named : std::exchange(named_, {})) {
      const auto block = live_.find(named.block);
      if (block == live_.end()) continue;
      TracedLabel label = labels_.all()[out_.blocks[block->second].label];
      label.category = named.category;
      label.name = name_number(named.name);
      out_.blocks[block->second].label = labels_.number_of(label);
    }
  }

  void mark(const TraceEvent& event) {
    TracedMark mark{.moment = now(), .arena = event.arena, .time_ns = event.time_ns};
    if (event.kind == TraceEventKind::kStep) {
      if (std::exchange(last_step_, event.number) == event.number)
        return;  // Marked twice: by a loop and by what it calls.
      mark.kind = MarkKind::kStep;
      mark.number = event.number;
    } else if (event.kind == TraceEventKind::kRefused) {
      mark.kind = MarkKind::kRefused;
      mark.number = event.requested;
      mark.op = event.op;
      mark.scope = event.scope;
      mark.budget = event.budget;
      mark.device = event.name;
      mark.limit = event.size;
      mark.in_use = event.offset;
      mark.sufficient = event.number;
      mark.text = event.text;
    } else {
      mark.kind = event.kind == TraceEventKind::kPhase ? MarkKind::kPhase : MarkKind::kText;
      mark.text = event.text;
      if (mark.kind == MarkKind::kPhase) phase_ = mark.text;
      if (mark.kind == MarkKind::kText && read_trace_record(mark, out_, named_)) return apply_names();
    }
    out_.marks.push_back(std::move(mark));
  }

  const CompactEvents& events_;
  const PlanRuns runs_;
  TraceHistory out_;
  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> piece_ids_;  // By run; 0: not live.
  std::uint64_t next_piece_id_ = UINT64_MAX;
  std::string phase_;                                             // The last one marked.
  std::unordered_map<std::uint32_t, std::string> phases_before_;  // By run: phase_ before its own.
  std::unordered_map<std::uint64_t, std::uint32_t> live_;         // Block ids to blocks.
  LabelSet labels_;
  std::optional<std::uint64_t> last_step_;
  std::vector<TracedName> named_;                         // Not yet applied.
  std::unordered_map<std::string, std::uint32_t> names_;  // Names from records.
};

// Reads all but the events, which are added to `events`.
TraceFile scan_trace_file(const std::filesystem::path& path, CompactEvents& events) {
  TraceLimits limits;
  const std::string text = read_file(path, limits.max_file_bytes);
  const auto bytes = std::as_bytes(std::span(text));
  try {
    std::size_t count = 0;  // First: events that grow step by step would take twice the memory.
    scan_trace(bytes, limits, [&](const TraceFile&, TraceEvent&&) { ++count; });
    events.reserve(count);
    limits.verify_checksums = false;  // They are right.
    return scan_trace(bytes, limits, [&](const TraceFile&, TraceEvent&& event) { events.add(std::move(event)); });
  } catch (const Corruption& error) {
    std::string_view what = error.what();
    what.remove_prefix(std::min(what.size(), what.find(": ") + 2));  // "trace: "; which one is said here.
    throw Corruption(fmt::format("trace \"{}\": {}", path.string(), what));
  }
}

}  // namespace

TraceHistory make_trace_history(const TraceFile& trace, std::size_t most_planned) {
  CompactEvents events;
  events.reserve(trace.events.size());
  for (const TraceEvent& event : trace.events) events.add(event);
  events.sort();
  return Builder(trace, events, most_planned).run();
}

TraceHistory read_trace_history(const std::filesystem::path& path, std::size_t most_planned) {
  CompactEvents events;
  const TraceFile trace = scan_trace_file(path, events);
  events.sort();
  return Builder(trace, events, most_planned).run();
}

}  // namespace plimsoll
