// Perfetto's protobuf trace: counters of live and committed bytes, steps and phases as slices, refusals as instants,
// and a heap profile (flame graph) of one moment.
#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "plimsoll/base/wire.h"
#include "plimsoll/observe/internal/exporters.h"

namespace plimsoll::internal {
namespace {

constexpr std::int64_t kBootTime = 6, kMonotonicCoarse = 4;  // Clocks; heap profiles use the second one.
constexpr std::int64_t kStartNs = 1'000'000'000;             // Our time 0: clocks do not start at 0.
constexpr std::int64_t kUnitBytes = 3;
constexpr std::int64_t kProcessTrack = 1, kStepsTrack = 2, kPhasesTrack = 3, kFirstCounter = 16;

enum EventType : std::int64_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

class Perfetto {
 public:
  Perfetto(const ExportedRun& run, ExportFile& file)
      : run_(run), file_(file), process_(run.history().process == 0 ? 1 : run.history().process) {}

  std::uint64_t write(std::uint32_t end) {
    describe_clocks_and_tracks();
    write_marks();
    write_commits();
    const std::uint64_t births = write_counters();
    write_flame_graph(end);
    return births;
  }

 private:
  static std::int64_t at(std::int64_t time_ns) { return kStartNs + time_ns; }

  void packet(WireWriter content, std::int64_t time, bool starts_sequence = false) {
    content.integer(8, time);
    content.integer(58, kBootTime);
    content.integer(10, 1);  // One sequence for all packets.
    if (starts_sequence) content.integer(13, 1);
    WireWriter trace;
    trace.message(1, content);
    file_.write(trace.bytes());
  }

  void describe_clocks_and_tracks() {
    WireWriter snapshot, content;
    for (const std::int64_t clock : {kBootTime, kMonotonicCoarse}) {
      WireWriter one;
      one.integer(1, clock);
      one.integer(2, kStartNs);
      snapshot.message(1, one);
    }
    content.message(6, snapshot);
    packet(content, kStartNs, true);
    WireWriter process, track;
    process.integer(1, process_);
    process.text(6, "plimsoll");
    track.integer(1, kProcessTrack);
    track.message(3, process);
    describe(track);
    describe_child(kStepsTrack, "steps");
    describe_child(kPhasesTrack, "phases");
  }

  void describe(const WireWriter& track) {
    WireWriter content;
    content.message(60, track);
    packet(content, kStartNs);
  }

  void describe_child(std::int64_t uuid, const std::string& name, bool is_counter = false) {
    WireWriter track, counter;
    track.integer(1, uuid);
    track.integer(5, kProcessTrack);
    track.text(2, name);
    counter.integer(3, kUnitBytes);
    counter.text(7, "bytes");
    if (is_counter) track.message(8, counter);
    describe(track);
  }

  // The track of a counter; made at first use.
  std::int64_t counter_track(const std::string& name) {
    const auto [place, is_new] =
        counters_.try_emplace(name, kFirstCounter + static_cast<std::int64_t>(counters_.size()));
    if (is_new) describe_child(place->second, name, true);
    return place->second;
  }

  void event(EventType type, std::int64_t track, std::int64_t time_ns, const std::string& name = {}) {
    WireWriter event, content;
    event.integer(9, type);
    event.integer(11, track);
    event.text(23, name);
    content.message(11, event);
    packet(content, at(time_ns));
  }

  void count(std::int64_t track, std::int64_t time_ns, std::uint64_t value) {
    WireWriter event, content;
    event.integer(9, kCounter);
    event.integer(11, track);
    std::string bytes = event.bytes();
    append_varint(bytes, 30u << 3);  // Written even when it is 0.
    append_varint(bytes, value);
    content.item(11, bytes);
    packet(content, at(time_ns));
  }

  void write_marks() {
    for (const StepSummary& step : run_.steps()) {
      event(kBegin, kStepsTrack, step.begin_ns, fmt::format("step {}", step.number));
      event(kEnd, kStepsTrack, step.end_ns);
    }
    bool in_phase = false;
    for (const TracedMark& mark : run_.history().marks) {
      if (!run_.is_exported(mark)) continue;
      if (mark.kind == MarkKind::kRefused)
        event(kInstant, kProcessTrack, mark.time_ns,
              fmt::format("refused {} bytes for {}", mark.number, run_.name(mark.op)));
      if (mark.kind == MarkKind::kText || mark.kind == MarkKind::kLadder)
        event(kInstant, kProcessTrack, mark.time_ns, mark.text);
      if (mark.kind != MarkKind::kPhase) continue;
      if (in_phase) event(kEnd, kPhasesTrack, mark.time_ns);
      event(kBegin, kPhasesTrack, mark.time_ns, mark.text);
      in_phase = true;
    }
    if (in_phase) event(kEnd, kPhasesTrack, run_.end_ns());
  }

  void write_commits() {
    const TraceHistory& history = run_.history();
    for (const TracedCommit& commit : history.commits) {
      const std::int64_t time = commit.moment < history.times.size() ? history.times[commit.moment] : run_.end_ns();
      if (commit.arena < history.arenas.size() && time >= run_.begin_ns() && time <= run_.end_ns())
        count(counter_track("committed " + history.arenas[commit.arena].name), time, commit.bytes);
    }
  }

  std::uint64_t write_counters() {
    std::uint64_t births = 0;
    std::unordered_map<std::int64_t, std::uint64_t> live;  // By track.
    run_.for_each([&](const BlockEvent& event) {
      const TracedLabel& label = run_.history().labels[event.block->label];
      births += event.is_birth;
      const auto add = [&](std::int64_t track) {
        std::uint64_t& bytes = live[track];
        bytes = event.is_birth ? bytes + event.block->size : bytes - event.block->size;
        count(track, event.time_ns, bytes);
      };
      add(device_track(event.block->arena));
      add(category_track(label.category));
      if (label.budget != 0) add(budget_track(label.budget));
    });
    return births;
  }

  // Looked up for every event: by number, not by name.
  std::int64_t device_track(std::uint32_t arena) {
    return cached(device_tracks_, arena, [&] { return "live " + run_.history().arenas.at(arena).name; });
  }
  std::int64_t category_track(Category category) {
    return cached(category_tracks_, static_cast<std::uint32_t>(category),
                  [&] { return fmt::format("live {}", category_name(category)); });
  }
  std::int64_t budget_track(std::uint32_t name) {
    return cached(budget_tracks_, name, [&] { return fmt::format("budget {}", run_.name(name)); });
  }
  template <class Name>
  std::int64_t cached(std::unordered_map<std::uint32_t, std::int64_t>& tracks, std::uint32_t number, const Name& name) {
    const auto [place, is_new] = tracks.try_emplace(number, 0);
    if (is_new) place->second = counter_track(name());
    return place->second;
  }

  std::int64_t interned(const std::string& frame, WireWriter& data) {
    const auto [place, is_new] = frames_.try_emplace(frame, static_cast<std::int64_t>(frames_.size() + 1));
    if (is_new) {
      WireWriter name, one;
      name.integer(1, place->second);
      name.text(2, frame);
      data.message(5, name);
      one.integer(1, place->second);
      one.integer(2, place->second);
      one.integer(3, 1);
      data.message(6, one);
    }
    return place->second;
  }

  void write_flame_graph(std::uint32_t end) {
    const std::vector<LabelTotals> totals = totals_by_label(run_, end);
    std::int64_t time = run_.begin_ns();
    run_.for_each_before(end, [&](const BlockEvent& event) { time = event.time_ns; });
    WireWriter data, path, mapping, dump;
    path.integer(1, 1);
    path.text(2, "plimsoll");
    data.message(17, path);
    mapping.integer(1, 1);
    mapping.integer(7, 1);
    data.message(19, mapping);
    dump.integer(1, process_);
    dump.integer(9, at(time));
    dump.text(11, "plimsoll");
    std::int64_t stacks = 0;
    for (std::size_t label = 0; label < totals.size(); ++label) {
      if (totals[label].births == 0) continue;
      WireWriter stack, sample;
      stack.integer(1, ++stacks);
      for (const std::string& frame : run_.frames(run_.history().labels[label]))  // Outermost first.
        stack.integer(2, interned(frame, data));  // Not packed: the viewer would read no frame at all.
      data.message(7, stack);
      sample.integer(1, stacks);
      sample.integer(2, static_cast<std::int64_t>(totals[label].born_bytes));
      sample.integer(3, static_cast<std::int64_t>(totals[label].dead_bytes));
      sample.integer(5, static_cast<std::int64_t>(totals[label].births));
      sample.integer(6, static_cast<std::int64_t>(totals[label].deaths));
      dump.message(2, sample);
    }
    WireWriter interning, profile, content;
    interning.message(12, data);
    packet(interning, at(time), true);
    profile.message(5, dump);
    content.message(37, profile);
    packet(content, at(time));
  }

  const ExportedRun& run_;
  ExportFile& file_;
  const std::int64_t process_;
  std::map<std::string, std::int64_t> counters_;
  std::unordered_map<std::uint32_t, std::int64_t> device_tracks_, category_tracks_, budget_tracks_;
  std::unordered_map<std::string, std::int64_t> frames_;
};

}  // namespace

std::uint64_t export_perfetto(const ExportedRun& run, std::uint32_t end, ExportFile& file) {
  return Perfetto(run, file).write(end);
}

}  // namespace plimsoll::internal
