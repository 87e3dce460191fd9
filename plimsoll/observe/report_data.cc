// What the page reads: a head in JSON and columns of numbers, each in its own element.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "plimsoll/base/dtype.h"
#include "plimsoll/base/json.h"
#include "plimsoll/observe/address_stretches.h"
#include "plimsoll/observe/internal/report_document.h"
#include "plimsoll/observe/report_columns.h"
#include "plimsoll/observe/report_page.h"

namespace plimsoll {
namespace {

using Json = nlohmann::ordered_json;
using Column = std::vector<std::uint32_t>;

constexpr std::uint64_t kUnit = 64;              // Sizes and offsets are counted in these.
constexpr std::size_t kPieceBytes = 512 * 1024;  // A browser unpacks one in a few milliseconds.

std::uint32_t clipped(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

class Writer {
 public:
  void head(const Json& json) { element("head", 0, 0, pack_bytes(json_text(json))); }
  // In pieces of at most kPieceBytes, so that none keeps a browser busy.
  void column(const char* name, const Column& numbers) {
    constexpr std::size_t kNumbers = kPieceBytes / 4;
    for (std::size_t at = 0; at < numbers.size(); at += kNumbers) {
      const std::span piece = std::span(numbers).subspan(at, std::min(kNumbers, numbers.size() - at));
      const std::size_t planes = planes_of(piece);
      element(name, piece.size(), planes, pack_column(piece, planes));
    }
  }
  std::string text() && { return std::move(text_); }

 private:
  void element(const char* name, std::size_t count, std::size_t planes, const std::string& packed) {
    text_ +=
        fmt::format("<script type=\"text/plain\" data-column=\"{}\" data-count=\"{}\" data-planes=\"{}\">{}</script>\n",
                    name, count, planes, packed);
  }
  std::string text_;
};

// Numbers the texts of marks.
class Texts {
 public:
  std::uint32_t number(const std::string& text) {
    const auto [place, is_new] = numbers_.try_emplace(text, static_cast<std::uint32_t>(all_.size()));
    if (is_new) all_.push_back(text);
    return place->second;
  }
  const Json& all() const { return all_; }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  Json all_ = Json::array();
};

Json labels_of(const TraceHistory& history) {
  Json labels = Json::array();
  for (const TracedLabel& label : history.labels) {
    const bool known = label.has_shape && label.dtype < kNumDTypes;
    labels.push_back({label.op, label.scope, label.name, label.budget, label.site, static_cast<int>(label.category),
                      shape_text(label), known ? dtype_name(static_cast<DType>(label.dtype)) : "",
                      label.is_unused ? 1 : 0});
  }
  return labels;
}

// Times are written as steps of `tick` nanoseconds: 1, unless something waited for more than four seconds.
std::int64_t tick_of(const TraceHistory& history) {
  std::int64_t longest = 0, before = 0;
  for (const std::int64_t time : history.times) longest = std::max(longest, time - std::exchange(before, time));
  before = 0;
  for (const TracedMark& mark : history.marks)
    longest = std::max(longest, mark.time_ns - std::exchange(before, mark.time_ns));
  return longest / std::numeric_limits<std::uint32_t>::max() + 1;
}

// Differences of ticks since time 0, so that rounding does not add up.
class Ticks {
 public:
  explicit Ticks(std::int64_t tick) : tick_(tick) {}
  std::uint32_t next(std::int64_t time_ns) {
    const std::int64_t now = std::max(time_ns / tick_, before_);
    return static_cast<std::uint32_t>(now - std::exchange(before_, now));
  }

 private:
  std::int64_t tick_, before_ = 0;
};

void write_blocks(const TraceHistory& history, const std::vector<AddressStretch>& stretches, Writer& out) {
  Column born, life, size, slack, offset, label, arena, thread;
  std::uint32_t before = 0;
  for (const TracedBlock& block : history.blocks) {
    born.push_back(block.born - std::exchange(before, block.born));
    life.push_back(block.died == TracedBlock::kNever ? 0 : block.died - block.born);
    size.push_back(clipped(block.size / kUnit));
    slack.push_back(clipped(block.size - block.requested));
    offset.push_back(clipped(place_in_map(stretches, block.arena, block.offset) / kUnit));
    label.push_back(block.label);
    arena.push_back(block.arena);
    thread.push_back(block.thread);
  }
  out.column("born", born);
  out.column("life", life);
  out.column("size", size);
  out.column("slack", slack);
  out.column("offset", offset);
  out.column("label", label);
  if (history.arenas.size() > 1) out.column("arena", arena);
  if (std::any_of(thread.begin(), thread.end(), [&](auto t) { return t != thread[0]; })) out.column("thread", thread);
}

void write_marks(const TraceHistory& history, std::int64_t tick, Writer& out, Texts& texts) {
  Column kind, moment, time, number, text;
  Ticks ticks(tick);
  for (const TracedMark& mark : history.marks) {
    kind.push_back(static_cast<std::uint32_t>(mark.kind));
    moment.push_back(mark.moment);
    time.push_back(ticks.next(mark.time_ns));
    number.push_back(clipped(mark.number));
    std::string said = mark.text;
    if (mark.kind == MarkKind::kRefused && said.empty()) {  // From an older recorder.
      said = "requested by " + history.names[mark.op];
      if (mark.scope != 0) said += " in " + history.names[mark.scope];
    }
    text.push_back(texts.number(said));
  }
  out.column("mark_kind", kind);
  out.column("mark_moment", moment);
  out.column("mark_time", time);
  out.column("mark_number", number);
  out.column("mark_text", text);
}

void write_commits(const TraceHistory& history, Writer& out) {
  Column moment, arena, bytes;
  for (const TracedCommit& commit : history.commits) {
    moment.push_back(commit.moment);
    arena.push_back(commit.arena);
    bytes.push_back(clipped(commit.bytes / kUnit));
  }
  out.column("commit_moment", moment);
  out.column("commit_arena", arena);
  out.column("commit_bytes", bytes);
}

}  // namespace

std::string report_data(const TraceHistory& history, const RunSummary& run, const std::vector<Finding>& findings,
                        const std::string& title) {
  Writer columns;
  Texts texts;
  const std::int64_t tick = tick_of(history);
  Column times;
  times.reserve(history.times.size());
  Ticks ticks(tick);
  for (const std::int64_t time : history.times) times.push_back(ticks.next(time));
  columns.column("times", times);
  const std::vector<AddressStretch> stretches = address_stretches(history);
  write_blocks(history, stretches, columns);
  write_commits(history, columns);
  write_marks(history, tick, columns, texts);

  Json head{{"title", title}, {"unit", kUnit}, {"tick_ns", tick}};
  head["summary"] = report_document(history, run, findings);
  head["names"] = history.names;
  head["labels"] = labels_of(history);
  head["texts"] = texts.all();
  head["stretches"] = Json::array();
  for (const AddressStretch& stretch : stretches)
    head["stretches"].push_back({stretch.arena, stretch.from / kUnit, stretch.size / kUnit, stretch.at / kUnit});
  head["categories"] = Json::array();
  for (std::size_t i = 0; i < kCategories; ++i) head["categories"].push_back(category_name(static_cast<Category>(i)));
  Writer out;
  out.head(head);
  return std::move(out).text() + std::move(columns).text();
}

}  // namespace plimsoll
