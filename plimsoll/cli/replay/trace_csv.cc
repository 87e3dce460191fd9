#include "plimsoll/cli/replay/trace_csv.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "plimsoll/cli/gzip_text.h"
#include "plimsoll/cli/replay/recorded_trace.h"

namespace plimsoll::internal {

TraceParser::TraceParser(std::string name) : lines_("trace", name, kMaxLineBytes) { trace_.name = std::move(name); }

void TraceParser::fail(const std::string& reason) const { lines_.fail(reason); }

void TraceParser::feed(std::string_view text) {
  lines_.feed(text, [&](std::string_view each) { line(each); });
}

Trace TraceParser::finish() {
  lines_.finish([&](std::string_view each) { line(each); });
  trace_.never_freed = live_.size();
  return std::move(trace_);
}

void TraceParser::line(std::string_view text) {
  if (text.empty() || text.front() == '#') return;
  const std::size_t comma = text.find(',');
  const std::string_view kind = text.substr(0, comma);
  if (kind != "a" && kind != "f")
    fail(fmt::format("\"{}\" is neither \"a,<id>,<bytes>\" nor \"f,<id>\" nor a comment", shown(text)));
  if (comma == std::string_view::npos) fail(fmt::format("no id after \"{}\"", kind));
  const std::string_view fields = text.substr(comma + 1);
  const std::size_t second = fields.find(',');
  const std::uint64_t id = lines_.number(fields.substr(0, second), "id");
  if (kind == "f") {
    if (second != std::string_view::npos) fail(fmt::format("more than an id in \"{}\"", shown(text)));
    free(id);
  } else {
    if (second == std::string_view::npos) fail(fmt::format("no size after id {}", id));
    allocate(id, lines_.number(fields.substr(second + 1), "size"));
  }
}

void TraceParser::allocate(std::uint64_t id, std::uint64_t bytes) {
  if (bytes > SIZE_MAX - live_bytes_)
    fail(fmt::format("with these {} bytes more is live than 64 bits can count", bytes));
  if (trace_.slots == UINT32_MAX && spare_slots_.empty()) fail("more blocks live at once than 32 bits can count");
  const auto [place, is_new] = live_.try_emplace(id);
  if (!is_new) fail(fmt::format("id {} is allocated a second time while it is live", id));
  std::uint32_t slot = static_cast<std::uint32_t>(trace_.slots);
  if (spare_slots_.empty()) {
    ++trace_.slots;
  } else {
    slot = spare_slots_.back();
    spare_slots_.pop_back();
  }
  place->second = {.slot = slot, .bytes = bytes};
  trace_.operations.push_back({.bytes = bytes, .slot = slot, .is_allocation = true});
  ++trace_.allocations;
  live_bytes_ += bytes;
  if (live_bytes_ > trace_.peak_live) {
    trace_.peak_live = live_bytes_;
    trace_.peak_at = trace_.operations.size() - 1;
  }
}

void TraceParser::free(std::uint64_t id) {
  const auto place = live_.find(id);
  if (place == live_.end()) fail(fmt::format("free of id {}, which is not live", id));
  const Live block = place->second;
  live_.erase(place);
  live_bytes_ -= block.bytes;
  spare_slots_.push_back(block.slot);
  trace_.operations.push_back({.bytes = block.bytes, .slot = block.slot});
}

Trace read_trace(const std::string& path) {
  if (is_recorded_trace(path)) return read_recorded_trace(path);
  TraceParser parser(std::filesystem::path(path).filename().string());
  read_gzip_text(
      "trace", path, [&](std::string_view piece) { parser.feed(piece); }, [&] { return parser.lines(); });
  return parser.finish();
}

}  // namespace plimsoll::internal
