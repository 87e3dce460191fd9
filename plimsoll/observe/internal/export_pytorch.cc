// PyTorch's memory snapshot: a pickle of plain data that pytorch.org/memory_viz and torch.cuda._memory_viz read.
//
// The page needs one entry of category "unknown" when entries have categories: those that open segments. It replays
// backwards from the segments, which are therefore the state after the last event: one for each stretch of used
// addresses.
#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "plimsoll/base/wire.h"
#include "plimsoll/observe/internal/exporters.h"

namespace plimsoll::internal {
namespace {

constexpr std::uint64_t kJoinedGap = 1 << 20;                    // Used addresses closer than this share a segment.
constexpr std::uint64_t kArenaSpacing = std::uint64_t{1} << 44;  // Addresses of arenas; the page needs less than 2^53.
constexpr std::size_t kFlushItems = 1000;                        // The page spreads each appended batch as arguments.

// Writes a pickle of protocol 4; strings are written once.
class Pickle {
 public:
  explicit Pickle(ExportFile& file) : file_(file) { file_.write(std::string_view("\x80\x04", 2)); }

  void open_map() { file_.write("}("); }
  void close_map() { file_.write("u"); }
  void open_list() { file_.write("]("); }
  void close_list() { file_.write("e"); }
  void flush_list() { file_.write("e("); }
  void end() { file_.write("."); }

  void text(const std::string& value) {
    const auto [place, is_new] = memo_.try_emplace(value, next_memo_);
    if (!is_new) return recall(place->second);
    std::string bytes = "X";
    append_number(bytes, static_cast<std::uint32_t>(value.size()));
    file_.write(bytes + value);
    remember();
  }
  void number(std::uint64_t value) {
    std::string bytes;
    if (value < 256) {
      bytes = {'K', static_cast<char>(value)};
    } else if (value < 65536) {
      bytes = "M";
      append_number(bytes, static_cast<std::uint16_t>(value));
    } else if (value < (std::uint64_t{1} << 31)) {
      bytes = "J";
      append_number(bytes, static_cast<std::int32_t>(value));
    } else {
      bytes = {'\x8a', 9};
      append_number(bytes, value);
      bytes.push_back(0);  // Not negative.
    }
    file_.write(bytes);
  }
  void boolean(bool value) { file_.write(value ? "\x88" : "\x89"); }
  void pair(std::uint64_t first, std::uint64_t second) {
    number(first);
    number(second);
    file_.write("\x86");
  }
  void entry(const char* key, const std::string& value) {
    text(key);
    text(value);
  }
  void entry(const char* key, std::uint64_t value) {
    text(key);
    number(value);
  }

  // Returns a number by which recall() repeats the top of the stack.
  std::uint32_t remember() {
    std::string bytes = "r";
    append_number(bytes, next_memo_);
    file_.write(bytes);
    return next_memo_++;
  }
  void recall(std::uint32_t number) {
    std::string bytes = "j";
    append_number(bytes, number);
    file_.write(bytes);
  }

 private:
  ExportFile& file_;
  std::unordered_map<std::string, std::uint32_t> memo_;
  std::uint32_t next_memo_ = 0;
};

struct Stretch {
  std::uint32_t arena = 0;
  std::uint64_t begin = 0, end = 0;
};

struct ArenaEvent {
  std::int64_t time_ns = 0;
  std::uint32_t block = 0;  // Its index in the history.
  bool is_birth = false;
};

class Snapshot {
 public:
  Snapshot(const ExportedRun& run, ExportFile& file)
      : run_(run), pickle_(file), frames_(run.history().labels.size(), kNotWritten), details_(frames_.size()) {}

  std::uint64_t write() {
    find_blocks();
    pickle_.open_map();
    pickle_.text("device_traces");
    pickle_.open_list();
    std::uint64_t births = 0;
    for (std::uint32_t arena = 0; arena < run_.history().arenas.size(); ++arena) births += write_trace(arena);
    pickle_.close_list();
    pickle_.text("segments");
    pickle_.open_list();
    for (const Stretch& stretch : stretches_) write_segment(stretch);
    pickle_.close_list();
    pickle_.close_map();
    pickle_.end();
    return births;
  }

 private:
  static constexpr std::uint32_t kNotWritten = UINT32_MAX;

  static std::uint64_t address(std::uint32_t arena, std::uint64_t offset) {
    return (arena + 1) * kArenaSpacing + offset;
  }

  // Finds the events of each arena, the blocks live at the end and the addresses that all blocks use.
  void find_blocks() {
    std::vector<const TracedBlock*> used;
    std::vector<bool> is_live(run_.history().blocks.size(), false);
    events_.resize(run_.history().arenas.size());
    run_.for_each([&](const BlockEvent& event) {
      ++num_events_;
      events_[event.block->arena].push_back({event.time_ns, event.number, event.is_birth});
      is_live[event.number] = event.is_birth;
      if (event.is_birth) used.push_back(event.block);
    });
    for (std::size_t number = 0; number < is_live.size(); ++number)
      if (is_live[number]) live_.push_back(&run_.history().blocks[number]);
    const auto by_address = [](const TracedBlock* a, const TracedBlock* b) {
      return std::pair(a->arena, a->offset) < std::pair(b->arena, b->offset);
    };
    std::sort(live_.begin(), live_.end(), by_address);
    std::sort(used.begin(), used.end(), by_address);
    for (const TracedBlock* block : used) {
      const std::uint64_t end = block->offset + block->size;
      if (stretches_.empty() || stretches_.back().arena != block->arena ||
          block->offset > stretches_.back().end + kJoinedGap)
        stretches_.push_back({block->arena, block->offset, end});
      stretches_.back().end = std::max(stretches_.back().end, end);
    }
  }

  // Each label's list is written once, innermost first, then repeated by number.
  void write_frames(std::uint32_t label_number) {
    if (frames_[label_number] != kNotWritten) return pickle_.recall(frames_[label_number]);
    const TracedLabel& label = run_.history().labels[label_number];
    const std::vector<std::string> names = run_.frames(label);
    const ExportedRun::Site site = run_.site(label);
    pickle_.open_list();
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
      pickle_.open_map();
      pickle_.entry("name", *name);
      pickle_.entry("filename", site.file);
      pickle_.entry("line", site.line);
      pickle_.close_map();
    }
    pickle_.close_list();
    frames_[label_number] = pickle_.remember();
    details_[label_number] = run_.details(label);
  }

  void begin_entry(const char* action, std::uint64_t where, std::uint64_t size, std::int64_t time_ns) {
    pickle_.open_map();
    pickle_.entry("action", action);
    pickle_.entry("addr", where);
    pickle_.entry("size", size);
    pickle_.entry("stream", 0);
    pickle_.entry("time_us",
                  static_cast<std::uint64_t>(std::max<std::int64_t>(run_.history().start_unix_ns + time_ns, 0)) / 1000);
  }

  void end_entry() {
    pickle_.close_map();
    if (++entries_ % kFlushItems == 0) pickle_.flush_list();
  }

  void write_event(const char* action, const ArenaEvent& event) {
    const TracedBlock& block = run_.history().blocks[event.block];
    begin_entry(action, address(block.arena, block.offset), block.size, event.time_ns);
    pickle_.text("frames");
    write_frames(block.label);
    pickle_.entry("category", category_name(run_.history().labels[block.label].category));
    if (const std::string& details = details_[block.label]; !details.empty()) pickle_.entry("user_metadata", details);
    end_entry();
  }

  void write_refusal(const TracedMark& mark) {
    pickle_.open_map();
    pickle_.entry("action", "oom");
    pickle_.entry("device_free", 0);
    pickle_.entry("size", mark.number);
    pickle_.entry("stream", 0);
    pickle_.entry(
        "time_us",
        static_cast<std::uint64_t>(std::max<std::int64_t>(run_.history().start_unix_ns + mark.time_ns, 0)) / 1000);
    pickle_.text("frames");
    pickle_.open_list();
    pickle_.close_list();
    end_entry();
  }

  std::uint64_t write_trace(std::uint32_t arena) {
    pickle_.open_list();
    entries_ = 0;
    for (const Stretch& stretch : stretches_) {
      if (stretch.arena != arena) continue;
      begin_entry("segment_alloc", address(arena, stretch.begin), stretch.end - stretch.begin, run_.begin_ns());
      pickle_.text("frames");
      pickle_.open_list();
      pickle_.close_list();
      pickle_.entry("category", "unknown");
      end_entry();
    }
    std::uint64_t births = 0;
    auto mark = run_.history().marks.begin();
    const auto write_refusals_until = [&](std::int64_t time_ns) {
      for (; mark != run_.history().marks.end() && mark->time_ns <= time_ns; ++mark)
        if (mark->kind == MarkKind::kRefused && mark->arena == arena && run_.is_exported(*mark)) write_refusal(*mark);
    };
    for (const ArenaEvent& event : events_[arena]) {
      write_refusals_until(event.time_ns);
      births += event.is_birth;
      if (event.is_birth) {
        write_event("alloc", event);
      } else {
        write_event("free_requested", event);
        write_event("free_completed", event);
      }
      if (num_written_++ % 8192 == 0)
        run_.report_progress(static_cast<double>(num_written_) / static_cast<double>(num_events_));
    }
    write_refusals_until(INT64_MAX);
    pickle_.close_list();
    return births;
  }

  void write_block(std::uint64_t where, std::uint64_t size, std::uint64_t requested, const TracedBlock* block) {
    pickle_.open_map();
    pickle_.entry("address", where);
    pickle_.entry("size", size);
    pickle_.entry("requested_size", requested);
    pickle_.entry("state", block ? "active_allocated" : "inactive");
    pickle_.text("frames");
    if (block) {
      write_frames(block->label);
    } else {
      pickle_.open_list();
      pickle_.close_list();
    }
    pickle_.close_map();
  }

  // Its blocks, live or not, have no gaps between them.
  void write_segment(const Stretch& stretch) {
    const auto inside = [&](const TracedBlock* block) {
      return block->arena == stretch.arena && block->offset >= stretch.begin && block->offset < stretch.end;
    };
    const auto first = live_.begin() + static_cast<std::ptrdiff_t>(next_live_);
    auto last = first;
    std::uint64_t used = 0, requested = 0;
    for (; last != live_.end() && inside(*last); ++last) {
      used += (*last)->size;
      requested += (*last)->requested;
    }
    pickle_.open_map();
    pickle_.entry("device", stretch.arena);
    pickle_.entry("address", address(stretch.arena, stretch.begin));
    pickle_.entry("total_size", stretch.end - stretch.begin);
    pickle_.entry("allocated_size", used);
    pickle_.entry("active_size", used);
    pickle_.entry("requested_size", requested);
    pickle_.entry("stream", 0);
    pickle_.entry("segment_type", "large");
    pickle_.text("segment_pool_id");
    pickle_.pair(0, 0);
    pickle_.text("is_expandable");
    pickle_.boolean(false);
    pickle_.text("frames");
    pickle_.open_list();
    pickle_.close_list();
    pickle_.text("blocks");
    pickle_.open_list();
    std::uint64_t at = stretch.begin;
    for (auto block = first; block != last; ++block) {
      if ((*block)->offset > at) write_block(address(stretch.arena, at), (*block)->offset - at, 0, nullptr);
      write_block(address(stretch.arena, (*block)->offset), (*block)->size, (*block)->requested, *block);
      at = (*block)->offset + (*block)->size;
    }
    if (at < stretch.end) write_block(address(stretch.arena, at), stretch.end - at, 0, nullptr);
    next_live_ = static_cast<std::size_t>(last - live_.begin());
    pickle_.close_list();
    pickle_.close_map();
  }

  const ExportedRun& run_;
  Pickle pickle_;
  std::vector<std::uint32_t> frames_;            // By label.
  std::vector<std::string> details_;             // By label; known once its frames are written.
  std::vector<std::vector<ArenaEvent>> events_;  // By arena.
  std::vector<const TracedBlock*> live_;         // At the end, by address.
  std::vector<Stretch> stretches_;
  std::size_t next_live_ = 0;  // The first of live_ that is in no segment yet.
  std::size_t entries_ = 0;
  std::size_t num_events_ = 0, num_written_ = 0;
};

}  // namespace

std::uint64_t export_pytorch(const ExportedRun& run, std::uint32_t, ExportFile& file) {
  return Snapshot(run, file).write();
}

}  // namespace plimsoll::internal
