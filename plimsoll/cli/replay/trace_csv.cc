#include "plimsoll/cli/replay/trace_csv.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/cli/gzip_text.h"

namespace plimsoll {
namespace {

// `text` fit to be shown: short, and without control characters.
std::string shown(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, 40)) result += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > 40 ? result + "..." : result;
}

}  // namespace

TraceParser::TraceParser(std::string name) { trace_.name = std::move(name); }

void TraceParser::fail(const std::string& reason) const {
  throw Corruption(fmt::format("trace \"{}\": line {}: {}", trace_.name, line_number_, reason));
}

void TraceParser::feed(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view piece = text.substr(0, end);
    if (partial_.size() + piece.size() > kMaxLineBytes) {
      ++line_number_;
      fail(fmt::format("longer than {} bytes; this is not a trace", kMaxLineBytes));
    }
    if (end == std::string_view::npos) {
      partial_ += piece;
      return;
    }
    if (partial_.empty()) {
      line(piece);
    } else {
      partial_ += piece;
      line(partial_);
      partial_.clear();
    }
    text.remove_prefix(end + 1);
  }
}

Trace TraceParser::finish() {
  if (!partial_.empty()) line(partial_);
  partial_.clear();
  trace_.never_freed = live_.size();
  return std::move(trace_);
}

void TraceParser::line(std::string_view text) {
  ++line_number_;
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (text.empty() || text.front() == '#') return;
  const std::size_t comma = text.find(',');
  const std::string_view kind = text.substr(0, comma);
  if (kind != "a" && kind != "f")
    fail(fmt::format("\"{}\" is neither \"a,<id>,<bytes>\" nor \"f,<id>\" nor a comment", shown(text)));
  if (comma == std::string_view::npos) fail(fmt::format("no id after \"{}\"", kind));
  const std::string_view fields = text.substr(comma + 1);
  const std::size_t second = fields.find(',');
  const std::uint64_t id = number(fields.substr(0, second), "id");
  if (kind == "f") {
    if (second != std::string_view::npos) fail(fmt::format("more than an id in \"{}\"", shown(text)));
    free(id);
  } else {
    if (second == std::string_view::npos) fail(fmt::format("no size after id {}", id));
    allocate(id, number(fields.substr(second + 1), "size"));
  }
}

std::uint64_t TraceParser::number(std::string_view text, const char* what) const {
  if (text.empty()) fail(fmt::format("the {} is missing", what));
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec == std::errc::result_out_of_range) fail(fmt::format("{} \"{}\" does not fit 64 bits", what, shown(text)));
  if (read.ec != std::errc() || read.ptr != text.data() + text.size())
    fail(fmt::format("{} \"{}\" is not a whole number", what, shown(text)));
  return value;
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
  TraceParser parser(std::filesystem::path(path).filename().string());
  read_gzip_text(
      "trace", path, [&](std::string_view piece) { parser.feed(piece); }, [&] { return parser.lines(); });
  return parser.finish();
}

}  // namespace plimsoll
