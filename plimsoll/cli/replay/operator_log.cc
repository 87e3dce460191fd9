#include "plimsoll/cli/replay/operator_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <utility>

#include "plimsoll/cli/gzip_text.h"

namespace plimsoll::internal {
namespace {

constexpr int kNoValue = StepProgram::kNone;
constexpr std::uint64_t kMost = std::uint64_t{1} << 56;  // Total bytes or nanoseconds: programs multiply them.
constexpr std::size_t kMostValues = 1u << 30;

// "aten.relu_.default" works in place; "aten.relu.default" does not.
bool works_in_place(std::string_view name) {
  if (const std::size_t dot = name.find('.'); dot != std::string_view::npos) name.remove_prefix(dot + 1);
  return name.substr(0, name.find('.')).ends_with('_');
}

bool contains(const std::vector<std::uint64_t>& ids, std::uint64_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

OperatorLogParser::OperatorLogParser(std::string name) : lines_("operator log", name, kMaxLineBytes) {
  log_.name = std::move(name);
}

void OperatorLogParser::fail(const std::string& reason) const { lines_.fail(reason); }

void OperatorLogParser::feed(std::string_view text) {
  lines_.feed(text, [&](std::string_view each) { line(each); });
}

void OperatorLogParser::line(std::string_view text) {
  if (text.empty()) return;
  if (text.front() == '#') return comment(text);
  if (!text.starts_with("a,") && !text.starts_with("f,"))
    fail(fmt::format("\"{}\" is neither \"a,<id>,<bytes>\" nor \"f,<id>\" nor a comment", shown(text)));
  const std::string_view fields = text.substr(2);
  const std::size_t comma = fields.find(',');
  const std::uint64_t id = lines_.number(fields.substr(0, comma), "id");
  if (text.front() == 'a') {
    if (comma == std::string_view::npos) fail(fmt::format("no size after id {}", id));
    allocate(id, lines_.number(fields.substr(comma + 1), "size"));
  } else {
    if (comma != std::string_view::npos) fail(fmt::format("more than an id in \"{}\"", shown(text)));
    free(id);
  }
}

void OperatorLogParser::allocate(std::uint64_t id, std::uint64_t bytes) {
  if (bytes > kMost || live_bytes_ + bytes > kMost) fail(fmt::format("with these {} bytes too much is live", bytes));
  if (!storages_.try_emplace(id, Storage{.bytes = bytes, .is_new = true}).second)
    fail(fmt::format("id {} is allocated a second time while it is live", id));
  freed_.erase(id);
  window_.push_back(id);
  live_bytes_ += bytes;
  window_bytes_ += bytes;
  window_peak_ = std::max(window_peak_, window_bytes_);
  log_.peak_bytes = std::max(log_.peak_bytes, live_bytes_);
}

void OperatorLogParser::free(std::uint64_t id) {
  const auto place = storages_.find(id);
  if (place == storages_.end()) fail(fmt::format("free of id {}, which is not live", id));
  const Storage freed = place->second;
  storages_.erase(place);
  live_bytes_ -= freed.bytes;
  if (freed.is_new) window_bytes_ -= freed.bytes;
  if (freed.value != kNoValue) freed_before_[freed.value] = static_cast<int>(log_.program.steps.size());
  freed_[id] = freed;
}

void OperatorLogParser::comment(std::string_view text) {
  if (text.starts_with("# phase ")) {
    const std::string_view name = text.substr(8);
    phase_ = name == "forward"    ? Phase::kForward
             : name == "backward" ? Phase::kBackward
             : name == "data"     ? Phase::kData
                                  : Phase::kOther;
  } else if (text.starts_with("# step ")) {
    const std::uint64_t step = lines_.number(text.substr(7), "step");
    if (step < static_cast<std::uint64_t>(round_) || step > INT32_MAX)
      fail(fmt::format("step {} comes after step {}", step, round_));
    round_ = static_cast<int>(step);
  } else if (text.starts_with("# op ")) {
    run(parse_operator(text.substr(5)));
  }
}

std::vector<std::uint64_t> OperatorLogParser::ids(std::string_view text) const {
  std::vector<std::uint64_t> result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) result.push_back(lines_.number(text.substr(0, end), "id"));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::vector<std::uint64_t> once;  // In order, without repeats.
  for (const std::uint64_t id : result)
    if (!contains(once, id)) once.push_back(id);
  return once;
}

OperatorLogParser::Operator OperatorLogParser::parse_operator(std::string_view text) const {
  const std::size_t in = text.find(" in="), out = text.find(" out="), us = text.rfind(" us=");
  if (in == std::string_view::npos || out == std::string_view::npos || us == std::string_view::npos || out < in ||
      us < out)
    fail(fmt::format("operator \"{}\" is not \"<name> in=<ids> out=<ids> us=<microseconds>\"", shown(text)));
  Operator op{.name = text.substr(0, in),
              .in = ids(text.substr(in + 4, out - in - 4)),
              .out = ids(text.substr(out + 5, us - out - 5))};
  const std::string_view time = text.substr(us + 4);
  double microseconds = 0;
  const auto read = std::from_chars(time.data(), time.data() + time.size(), microseconds);
  if (read.ec != std::errc() || read.ptr != time.data() + time.size() || !(microseconds >= 0) || microseconds > 1e12)
    fail(fmt::format("time \"{}\" is not a number of microseconds", shown(time)));
  op.nanoseconds = static_cast<std::uint64_t>(std::llround(microseconds * 1000));
  return op;
}

const OperatorLogParser::Storage& OperatorLogParser::storage(std::uint64_t id) const {
  if (const auto live = storages_.find(id); live != storages_.end()) return live->second;
  const auto freed = freed_.find(id);
  if (freed == freed_.end()) fail(fmt::format("operator names id {}, which is not live", id));
  return freed->second;
}

int OperatorLogParser::add_value(std::size_t bytes, bool is_pinned) {
  total_bytes_ += bytes;
  if (total_bytes_ > kMost * 8 || before_.size() >= kMostValues) fail("more values than can be counted");
  log_.program.values.push_back({.bytes = bytes, .is_pinned = is_pinned, .may_spill = true});
  before_.push_back(kNoValue);
  freed_before_.push_back(INT32_MAX);
  return static_cast<int>(before_.size()) - 1;
}

void OperatorLogParser::add_step(StepProgram::Step step, std::string name) {
  nanoseconds_ += step.cost;
  total_bytes_ += step.scratch_bytes;
  if (nanoseconds_ > kMost || total_bytes_ > kMost * 8) fail("more time or bytes than can be counted");
  log_.program.steps.push_back(std::move(step));
  log_.round.push_back(round_);
  log_.operators.push_back(std::move(name));
  phases_.push_back(phase_);
}

// Memory allocated since the last operator but not by this one becomes a separate step that never repeats.
void OperatorLogParser::add_allocated_elsewhere(const Operator& op, bool is_view) {
  StepProgram::Step step{.may_repeat = false};
  for (const std::uint64_t id : window_) {
    const auto place = storages_.find(id);
    if (place == storages_.end() || place->second.value != kNoValue || place->second.bytes == 0) continue;
    if (!is_view && contains(op.out, id) && !contains(op.in, id)) continue;
    place->second.value = add_value(place->second.bytes, true);
    step.writes.push_back(place->second.value);
  }
  if (!step.writes.empty()) add_step(std::move(step), "");
}

void OperatorLogParser::write(const Operator& op, StepProgram::Step& step) {
  const bool in_place = works_in_place(op.name);
  for (const std::uint64_t id : op.out) {
    const auto place = storages_.find(id);
    if (place == storages_.end() || place->second.bytes == 0) continue;  // Freed at once: it counts as scratch.
    if (contains(op.in, id) && !in_place) continue;                      // A view of an input.
    const int before = place->second.value;
    const bool changes_state = before != kNoValue && log_.program.values[before].is_pinned;
    if (changes_state) step.may_repeat = false;
    place->second.value = add_value(place->second.bytes, false);
    before_.back() = before;
    step.writes.push_back(place->second.value);
    step.takes_over.push_back(before);
  }
  if (step.may_repeat) return;
  for (const int value : step.writes) log_.program.values[value].is_pinned = true;
}

void OperatorLogParser::run(const Operator& op) {
  for (const std::uint64_t id : op.in) storage(id);
  for (const std::uint64_t id : op.out)
    if (!freed_.contains(id)) storages_.try_emplace(id);  // Outputs that no line allocates have no bytes.
  const bool in_place = works_in_place(op.name);
  const bool is_view = !in_place && !op.out.empty() &&
                       std::all_of(op.out.begin(), op.out.end(), [&](std::uint64_t id) { return contains(op.in, id); });
  add_allocated_elsewhere(op, is_view);
  StepProgram::Step step{.scratch_bytes = window_peak_ - window_bytes_,
                         .cost = op.nanoseconds,
                         .may_repeat = phase_ == Phase::kForward || phase_ == Phase::kBackward,
                         .is_gradient = phase_ == Phase::kBackward};
  if (!is_view) {
    for (const std::uint64_t id : op.in)
      if (const Storage& read = storage(id); read.bytes > 0 && read.value != kNoValue) step.reads.push_back(read.value);
    write(op, step);
  }
  add_step(std::move(step), std::string(op.name));
  for (const std::uint64_t id : window_)
    if (const auto place = storages_.find(id); place != storages_.end()) place->second.is_new = false;
  window_.clear();
  freed_.clear();
  window_bytes_ = window_peak_ = 0;
}

// Pins values that are read outside forward and backward, or held beyond their step, with their earlier versions.
void OperatorLogParser::pin() {
  StepProgram& program = log_.program;
  const int steps = static_cast<int>(program.steps.size());
  std::vector<int> maker(program.values.size(), kNoValue), next(maker);
  for (int step = 0; step < steps; ++step) {
    for (const int value : program.steps[step].writes) maker[value] = step;
    if (phases_[step] == Phase::kForward || phases_[step] == Phase::kBackward) continue;
    for (const int value : program.steps[step].reads) program.values[value].is_pinned = true;
  }
  for (int value = 0; value < static_cast<int>(before_.size()); ++value)
    if (before_[value] != kNoValue) next[before_[value]] = value;
  for (int value = static_cast<int>(before_.size()) - 1; value >= 0; --value) {
    StepProgram::Value& v = program.values[value];
    const int freed = freed_before_[value];
    if (next[value] == kNoValue && freed == INT32_MAX) v.is_kept = true;
    if (next[value] == kNoValue && freed < steps) {
      v.last_held = freed - 1;
      const bool by_next_batch = phases_[freed] == Phase::kData || phases_[freed] == Phase::kForward;
      if (log_.round[freed] != log_.round[maker[value]] && !by_next_batch) v.is_pinned = true;
    }
    if (before_[value] != kNoValue && (v.is_pinned || v.is_kept)) program.values[before_[value]].is_pinned = true;
  }
}

OperatorLog OperatorLogParser::finish() {
  lines_.finish([&](std::string_view each) { line(each); });
  if (log_.program.steps.empty()) fail("there is no \"# op\" line; this is not an operator log");
  pin();
  return std::move(log_);
}

OperatorLog read_operator_log(const std::string& path) {
  OperatorLogParser parser(std::filesystem::path(path).filename().string());
  read_gzip_text(
      "operator log", path, [&](std::string_view piece) { parser.feed(piece); }, [&] { return parser.lines(); });
  return parser.finish();
}

}  // namespace plimsoll::internal
