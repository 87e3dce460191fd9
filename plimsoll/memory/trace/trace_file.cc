#include "plimsoll/memory/trace/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <numeric>
#include <utility>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/trace/trace_format.h"

namespace plimsoll {
namespace {

using namespace trace_format;

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 56;  // Sums of sizes and offsets cannot overflow.

constexpr std::string_view kWhere = "trace: ";  // Callers add the name of the file.

constexpr const char* kNoTrace = "this is not a trace file; TraceRecorder writes them";

[[noreturn]] void corrupt(std::size_t offset, const std::string& reason) {
  throw Corruption(fmt::format("{}{} (offset {})", kWhere, reason, offset));
}

// Reads numbers and text off a payload; every step is checked.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, std::size_t file_offset) : bytes_(bytes), file_offset_(file_offset) {}

  bool at_end() const noexcept { return at_ == bytes_.size(); }
  std::size_t offset() const noexcept { return file_offset_ + at_; }

  std::uint8_t byte() {
    if (at_end()) corrupt(offset(), "a block ends in the middle of an item");
    return std::to_integer<std::uint8_t>(bytes_[at_++]);
  }
  std::uint64_t number(std::uint64_t most = UINT64_MAX) {
    const std::size_t start = offset();
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint64_t next = byte();
      if (shift == 63 && next > 1) corrupt(start, "a number has more than 64 bits");
      value |= (next & 0x7F) << shift;
      if ((next & 0x80) == 0) break;
    }
    if (value > most) corrupt(start, fmt::format("a number is {}, at most {} is possible", value, most));
    return value;
  }
  std::uint32_t number32() { return static_cast<std::uint32_t>(number(UINT32_MAX)); }
  std::string text(std::size_t most) {
    const auto length = static_cast<std::size_t>(number(most));
    if (length > bytes_.size() - at_) corrupt(offset(), "text reaches beyond its block");
    const auto* start = reinterpret_cast<const char*>(bytes_.data() + at_);
    at_ += length;
    return {start, length};
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t file_offset_, at_ = 0;
};

class Scanner {
 public:
  Scanner(std::span<const std::byte> bytes, const TraceLimits& limits,
          const std::function<void(const TraceFile&, TraceEvent&&)>& on_event)
      : bytes_(bytes), limits_(limits), on_event_(on_event) {}

  TraceFile scan() {
    read_header();
    file_.names.emplace_back();
    while (!file_.complete && read_block()) {
    }
    if (file_.complete && at_ != bytes_.size()) corrupt(at_, "there are bytes after the end");
    file_.readable_bytes = at_;
    return std::move(file_);
  }

 private:
  void read_header() {
    if (bytes_.size() < kHeaderBytes || std::memcmp(bytes_.data(), kMagic, sizeof(kMagic)) != 0) corrupt(0, kNoTrace);
    const std::byte* at = bytes_.data();
    if (limits_.verify_checksums && get_fixed<std::uint32_t>(at + 32) != header_checksum(at))
      corrupt(32, "the header's checksum is wrong");
    version_ = get_fixed<std::uint32_t>(at + 8);
    if (version_ < 1 || version_ > kVersion)
      corrupt(8, fmt::format("version {} is not known here (only up to {})", version_, kVersion));
    const auto mode = get_fixed<std::uint32_t>(at + 12);
    if (mode > 1) corrupt(12, fmt::format("mode {} is not known", mode));
    file_.ring = mode == 1;
    file_.start_unix_ns = get_fixed<std::int64_t>(at + 16);
    file_.process = get_fixed<std::uint32_t>(at + 24);
    granularity_ = get_fixed<std::uint32_t>(at + 28);
    if (granularity_ == 0 || granularity_ > 4096)
      corrupt(28, fmt::format("a granularity of {} is not possible", granularity_));
    at_ = kHeaderBytes;
  }

  // False when no complete block follows.
  bool read_block() {
    if (bytes_.size() - at_ < kBlockHeaderBytes) return false;
    const BlockHeader header = get_block_header(bytes_.data() + at_);
    if (!known(header.type))
      corrupt(at_, fmt::format("block type {:#x} is not known", static_cast<std::uint32_t>(header.type)));
    if (header.payload_bytes > kMaxBlockBytes)
      corrupt(at_ + 4, fmt::format("a block of {} bytes is not possible", header.payload_bytes));
    if (bytes_.size() - at_ - kBlockHeaderBytes < header.payload_bytes) return false;
    const std::span payload = bytes_.subspan(at_ + kBlockHeaderBytes, header.payload_bytes);
    if (limits_.verify_checksums && checksum_of(bytes_.data() + at_, payload.data(), payload.size()) != header.checksum)
      corrupt(at_, "a block's checksum is wrong");
    Cursor cursor(payload, at_ + kBlockHeaderBytes);
    for (std::uint32_t i = 0; i < header.items; ++i) read_item(header, cursor);
    if (!cursor.at_end()) corrupt(cursor.offset(), "a block has bytes after its last item");
    at_ += kBlockHeaderBytes + header.payload_bytes;
    time_ = last_block_ = 0;
    started_ = false;
    return true;
  }

  static bool known(BlockType type) {
    return type == BlockType::kNames || type == BlockType::kArenas || type == BlockType::kEvents ||
           type == BlockType::kPlans || type == BlockType::kEnd;
  }

  void read_item(const BlockHeader& header, Cursor& cursor) {
    switch (header.type) {
      case BlockType::kNames:
        if (file_.names.size() > limits_.max_names)
          corrupt(cursor.offset(), fmt::format("more than {} names", limits_.max_names));
        file_.names.push_back(cursor.text(kMaxName));
        return;
      case BlockType::kArenas:
        if (file_.arenas.size() >= limits_.max_arenas)
          corrupt(cursor.offset(), fmt::format("more than {} arenas", limits_.max_arenas));
        return read_arena(cursor);
      case BlockType::kPlans:
        return read_plan(cursor);
      case BlockType::kEvents:
        if (events_++ >= limits_.max_events)
          corrupt(cursor.offset(), fmt::format("more than {} events", limits_.max_events));
        return read_event(header, cursor);
      case BlockType::kEnd:
        file_.dropped_events = cursor.number();
        file_.complete = true;
        return;
    }
  }

  void read_arena(Cursor& cursor) {
    TraceArena arena;
    arena.limit = cursor.number(kMaxBytes);
    arena.page_bytes = cursor.number(kMaxBytes);
    arena.name = cursor.text(kMaxName);
    file_.arenas.push_back(std::move(arena));
  }

  void read_plan(Cursor& cursor) {
    TracePlan plan;
    plan.steps = cursor.number32();
    const std::uint64_t values = cursor.number();
    for (std::uint64_t i = 0; i < values; ++i) {  // Each takes bytes of the block, so their number needs no limit.
      TracePlan::Value value;
      value.extent = cursor.number32();
      value.first = static_cast<std::uint32_t>(cursor.number(plan.steps));
      value.end = value.first + static_cast<std::uint32_t>(cursor.number(plan.steps - value.first));
      value.label.kind = TraceEventKind::kAllocate;
      value.label.size = cursor.number(kMaxBytes / granularity_) * granularity_;
      value.label.offset = cursor.number(kMaxBytes / granularity_) * granularity_;
      read_label(value.label, cursor);
      plan.values.push_back(std::move(value));
    }
    if (version_ >= 3) read_phases(plan, cursor);
    file_.plans.push_back(std::move(plan));
  }

  void read_phases(TracePlan& plan, Cursor& cursor) {
    const std::uint64_t phases = cursor.number(plan.steps);
    std::uint32_t first = 0;
    for (std::uint64_t i = 0; i < phases; ++i) {
      const std::size_t start = cursor.offset();
      const auto passed = static_cast<std::uint32_t>(cursor.number(plan.steps - first));
      if (i > 0 && passed == 0) corrupt(start, "two phases of a plan begin with the same step");
      first += passed;
      plan.phases.push_back({first, read_name(cursor)});
    }
  }

  void read_event(const BlockHeader& header, Cursor& cursor) {
    TraceEvent event;
    const std::size_t start = cursor.offset();
    const std::uint8_t kind = cursor.byte();
    if (kind < 1 || kind > static_cast<std::uint8_t>(TraceEventKind::kPlanSteps))
      corrupt(start, fmt::format("event kind {} is not known", kind));
    event.kind = static_cast<TraceEventKind>(kind);
    event.thread = header.thread;
    event.system_thread = header.system_thread;
    if (!started_) time_ = header.base_time_ns;
    started_ = true;
    const std::uint64_t passed = cursor.number(INT64_MAX);
    if (time_ > 0 && passed > static_cast<std::uint64_t>(INT64_MAX - time_)) corrupt(start, "the time overflows");
    time_ += static_cast<std::int64_t>(passed);
    event.time_ns = time_;
    read_fields(event, cursor);
    on_event_(file_, std::move(event));
  }

  void read_fields(TraceEvent& event, Cursor& cursor) {
    switch (event.kind) {
      case TraceEventKind::kAllocate:
      case TraceEventKind::kExisting:
        read_place(event, cursor);
        return read_label(event, cursor);
      case TraceEventKind::kFree:
        return read_place(event, cursor);
      case TraceEventKind::kCommitted:
        event.arena = read_arena_index(cursor);
        event.size = cursor.number(kMaxBytes);
        return;
      case TraceEventKind::kRefused:
        return version_ < 4 ? read_old_refusal(event, cursor) : read_refusal(event, cursor);
      case TraceEventKind::kStep:
        event.number = cursor.number();
        return;
      case TraceEventKind::kPhase:
      case TraceEventKind::kText:
        event.text = cursor.text(kMaxText);
        return;
      case TraceEventKind::kArenaEnded:
        event.arena = read_arena_index(cursor);
        return;
      case TraceEventKind::kPlanSteps:
        return read_plan_steps(event, cursor);
    }
  }

  void read_old_refusal(TraceEvent& event, Cursor& cursor) {
    event.arena = read_arena_index(cursor);
    event.requested = cursor.number();
    event.op = read_name(cursor);
    event.scope = read_name(cursor);
  }

  void read_refusal(TraceEvent& event, Cursor& cursor) {
    event.requested = cursor.number();
    event.size = cursor.number();
    event.offset = cursor.number();
    event.number = cursor.number();
    event.op = read_name(cursor);
    event.scope = read_name(cursor);
    event.budget = read_name(cursor);
    event.name = read_name(cursor);
    event.text = cursor.text(kMaxText);
  }

  void read_plan_steps(TraceEvent& event, Cursor& cursor) {
    event.block = read_block_id(cursor);
    const std::size_t start = cursor.offset();
    event.number = cursor.number();
    if (event.number >= file_.plans.size())
      corrupt(start, fmt::format("plan {} of {} is not there", event.number, file_.plans.size()));
    event.step = cursor.number32();
    event.size = cursor.number32();
    event.requested = cursor.number(event.size);
    if (event.requested != 0 && event.requested != event.size) corrupt(start, "only some steps have durations");
    event.offset = file_.durations.size();
    for (std::uint64_t i = 0; i < event.requested; ++i) file_.durations.push_back(cursor.number32());
  }

  std::uint64_t read_block_id(Cursor& cursor) {
    return last_block_ += static_cast<std::uint64_t>(unzigzag(cursor.number()));
  }

  void read_place(TraceEvent& event, Cursor& cursor) {
    event.arena = read_arena_index(cursor);
    event.block = read_block_id(cursor);
    event.size = cursor.number(kMaxBytes / granularity_) * granularity_;
    event.offset = cursor.number(kMaxBytes / granularity_) * granularity_;
  }

  void read_label(TraceEvent& event, Cursor& cursor) {
    const std::size_t start = cursor.offset();
    const std::uint8_t flags = cursor.byte();
    if (flags > (kHasShape | kHasSite | kHasBudget)) corrupt(start, fmt::format("flags {:#x} are not known", flags));
    event.requested = cursor.number(kMaxBytes);
    if (event.requested > event.size) corrupt(start, "more was requested than the block has");
    event.op = read_name(cursor);
    event.scope = read_name(cursor);
    event.name = read_name(cursor);
    const std::uint8_t category = cursor.byte();
    if (category >= kCategories) corrupt(start, fmt::format("category {} is not known", category));
    event.category = static_cast<Category>(category);
    event.step = cursor.number32();
    if (flags & kHasSite) event.site = read_name(cursor);
    if (flags & kHasBudget) event.budget = read_name(cursor);
    if ((flags & kHasShape) == 0) return;
    event.has_shape = true;
    event.dtype = cursor.byte();
    event.rank = cursor.byte();
    for (std::size_t i = 0; i < std::min<std::size_t>(event.rank, BlockLabel::kSizes); ++i)
      event.sizes[i] = cursor.number32();
  }

  std::uint32_t read_name(Cursor& cursor) {
    const std::size_t start = cursor.offset();
    const std::uint64_t index = cursor.number();
    if (index >= file_.names.size())
      corrupt(start, fmt::format("name {} of {} is not there", index, file_.names.size()));
    return static_cast<std::uint32_t>(index);
  }
  std::uint32_t read_arena_index(Cursor& cursor) {
    const std::size_t start = cursor.offset();
    const std::uint64_t index = cursor.number();
    if (index >= file_.arenas.size())
      corrupt(start, fmt::format("arena {} of {} is not there", index, file_.arenas.size()));
    return static_cast<std::uint32_t>(index);
  }

  const std::span<const std::byte> bytes_;
  const TraceLimits limits_;
  const std::function<void(const TraceFile&, TraceEvent&&)>& on_event_;
  TraceFile file_;
  std::size_t at_ = 0;
  std::uint32_t version_ = 0, granularity_ = 64;
  std::size_t events_ = 0;
  bool started_ = false;  // An event of this block was read; the two below are its values.
  std::int64_t time_ = 0;
  std::uint64_t last_block_ = 0;
};

}  // namespace

TraceFile scan_trace(std::span<const std::byte> bytes, const TraceLimits& limits,
                     const std::function<void(const TraceFile&, TraceEvent&&)>& on_event) {
  return Scanner(bytes, limits, on_event).scan();
}

namespace {

// How many events the blocks' headers promise, as far as their bytes can hold them.
std::size_t count_events(std::span<const std::byte> bytes) {
  std::size_t count = 0;
  for (std::size_t at = kHeaderBytes; at <= bytes.size() && bytes.size() - at >= kBlockHeaderBytes;) {
    const BlockHeader header = get_block_header(bytes.data() + at);
    at += kBlockHeaderBytes;
    if (header.payload_bytes > bytes.size() - at) break;
    if (header.type == BlockType::kEvents) count += std::min<std::size_t>(header.items, header.payload_bytes);
    at += header.payload_bytes;
  }
  return count;
}

// Stable sort by time, in place: events are large, and there are millions.
void sort_events(std::vector<TraceEvent>& events) {
  const auto earlier = [](const TraceEvent& a, const TraceEvent& b) { return a.time_ns < b.time_ns; };
  if (std::is_sorted(events.begin(), events.end(), earlier)) return;
  std::vector<std::uint32_t> order(events.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return earlier(events[a], events[b]); });
  for (std::uint32_t start = 0; start < order.size(); ++start) {  // Cycle by cycle.
    if (order[start] == start) continue;
    TraceEvent first = std::move(events[start]);
    std::uint32_t to = start;
    for (std::uint32_t from = order[to]; from != start; from = order[to]) {
      events[to] = std::move(events[from]);
      order[to] = to;
      to = from;
    }
    events[to] = std::move(first);
    order[to] = to;
  }
}

}  // namespace

TraceFile parse_trace(std::span<const std::byte> bytes, const TraceLimits& limits) {
  std::vector<TraceEvent> events;
  events.reserve(std::min(count_events(bytes), limits.max_events));
  TraceFile file =
      scan_trace(bytes, limits, [&](const TraceFile&, TraceEvent&& event) { events.push_back(std::move(event)); });
  sort_events(events);
  file.events = std::move(events);
  return file;
}

namespace {

// Only for files that can be opened a second time, which a pipe cannot.
bool begins_otherwise(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_fifo(path, error) || std::filesystem::is_socket(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  char start[sizeof(kMagic)];
  return file.read(start, sizeof(start)) && std::memcmp(start, kMagic, sizeof(kMagic)) != 0;
}

}  // namespace

TraceFile read_trace_file(const std::filesystem::path& path, const TraceLimits& limits) {
  try {
    if (begins_otherwise(path)) corrupt(0, kNoTrace);  // Checked before reading it all: it may be large, or endless.
    const std::string bytes = read_file(path, limits.max_file_bytes);
    return parse_trace(std::as_bytes(std::span(bytes)), limits);
  } catch (const Corruption& error) {
    std::string_view what = error.what();
    if (what.starts_with(kWhere)) what.remove_prefix(kWhere.size());
    throw Corruption(fmt::format("trace \"{}\": {}", path.string(), what));
  }
}

}  // namespace plimsoll
