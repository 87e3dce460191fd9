#include "plimsoll/cli/replay/recorded_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "plimsoll/memory/trace/trace_file.h"
#include "plimsoll/memory/trace/trace_format.h"

namespace plimsoll::internal {
namespace {

// Comments are one line.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char letter) { return letter < ' '; }, ' ');
  return text.substr(0, 200);
}

class Lines {
 public:
  explicit Lines(FunctionRef<void(std::string_view line)> f) : f_(f) {}

  void add(const TraceEvent& event) {
    switch (event.kind) {
      case TraceEventKind::kAllocate:
      case TraceEventKind::kExisting:
        if (!live_.try_emplace(event.block, event.arena).second) return;  // Recorded twice.
        ++count_.allocations;
        return f_(fmt::format("a,{},{}\n", event.block, std::max<std::uint64_t>(event.requested, 1)));
      case TraceEventKind::kFree:
        if (live_.erase(event.block) > 0) free(event.block);
        return;
      case TraceEventKind::kArenaEnded:
        return end_arena(event.arena);
      case TraceEventKind::kStep:
        return f_(fmt::format("# step {}\n", event.number));
      case TraceEventKind::kPhase:
        return f_(fmt::format("# phase {}\n", one_line(event.text)));
      default:
        return;
    }
  }
  RecordedLines count() const { return count_; }

 private:
  void free(std::uint64_t block) {
    ++count_.frees;
    f_(fmt::format("f,{}\n", block));
  }
  void end_arena(std::uint32_t arena) {
    std::vector<std::uint64_t> gone;
    for (const auto& [block, of] : live_)
      if (of == arena) gone.push_back(block);
    std::sort(gone.begin(), gone.end());
    for (const std::uint64_t block : gone) {
      live_.erase(block);
      free(block);
    }
  }

  FunctionRef<void(std::string_view line)> f_;
  std::unordered_map<std::uint64_t, std::uint32_t> live_;  // Blocks to their arenas.
  RecordedLines count_;
};

}  // namespace

bool is_recorded_trace(const std::string& path) {
  char first[sizeof(trace_format::kMagic)] = "";
  std::ifstream(path, std::ios::binary).read(first, sizeof(first));
  return std::memcmp(first, trace_format::kMagic, sizeof(first)) == 0;
}

RecordedLines for_each_recorded_line(const std::string& path, FunctionRef<void(std::string_view line)> f) {
  Lines lines(f);
  const TraceFile trace = read_trace_file(path);
  for (const TraceEvent& event : trace.events) lines.add(event);
  return lines.count();
}

Trace read_recorded_trace(const std::string& path) {
  TraceParser parser(std::filesystem::path(path).filename().string());
  for_each_recorded_line(path, [&](std::string_view line) { parser.feed(line); });
  return parser.finish();
}

}  // namespace plimsoll::internal
