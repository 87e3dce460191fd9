#include "plimsoll/observe/internal/exported_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "plimsoll/base/error.h"
#include "plimsoll/base/text.h"

namespace plimsoll::internal {
namespace {

template <class T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

ExportedSteps parse_exported_steps(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto first = number_in<std::uint64_t>(std::string_view(text).substr(0, colon));
  const auto last =
      colon == std::string::npos ? first : number_in<std::uint64_t>(std::string_view(text).substr(colon + 1));
  if (!first || !last || *first > *last)
    throw InvalidArgument(
        fmt::format("export: steps \"{}\" are not A:B with A <= B; write 3:5 for steps 3, 4 and 5", text));
  return {*first, *last};
}

ExportedMoment parse_exported_moment(const std::string& text) {
  using Kind = ExportedMoment::Kind;
  if (text.empty() || text == "peak") return {.kind = Kind::kPeak};
  if (text == "end") return {.kind = Kind::kEnd};
  if (text.starts_with("step:")) {
    if (const auto number = number_in<std::uint64_t>(std::string_view(text).substr(5)))
      return {.kind = Kind::kStep, .step = *number};
  } else if (const auto seconds = number_in<double>(text); seconds && *seconds >= 0) {
    return {.kind = Kind::kSeconds, .seconds = *seconds};
  }
  throw InvalidArgument(
      fmt::format("export: at \"{}\" is not a moment; use peak, end, step:N or seconds since the beginning", text));
}

ExportedRun::ExportedRun(const TraceHistory& history, const std::string& steps)
    : history_(history),
      steps_(summarize(history).steps),
      end_(static_cast<std::uint32_t>(history.times.size())),
      end_ns_(history.duration_ns) {
  if (!steps.empty()) select_steps(steps);
  find_peak();
}

void ExportedRun::select_steps(const std::string& steps) {
  const ExportedSteps wanted = parse_exported_steps(steps);
  if (steps_.empty()) throw InvalidArgument("export: steps cannot be chosen: the trace has none; leave them out");
  const std::uint64_t first = steps_.front().number, last = steps_.back().number;
  std::erase_if(steps_,
                [&](const StepSummary& step) { return step.number < wanted.first || step.number > wanted.last; });
  if (steps_.empty())
    throw InvalidArgument(fmt::format("export: steps {} are not in the trace; it has {}:{}", steps, first, last));
  first_ = steps_.front().first_moment;
  end_ = steps_.back().end_moment;
  begin_ns_ = steps_.front().begin_ns;
  end_ns_ = steps_.back().end_ns;
}

void ExportedRun::for_each_before(std::uint32_t end, FunctionRef<void(const BlockEvent&)> f) const {
  const std::vector<TracedBlock>& blocks = history_.blocks;
  for (std::uint32_t number = 0; number < blocks.size() && blocks[number].born < first_; ++number)
    if (blocks[number].died >= first_) f({&blocks[number], number, begin_ns_, true, first_});
  end = std::min(end, end_);
  for (std::uint32_t at = first_; at < end; ++at) {
    const std::uint32_t number = history_.owner[at];
    f({&blocks[number], number, history_.times[at], history_.is_birth(at), at + 1});
    if (progress_ && (at - first_) % 8192 == 0) progress_(static_cast<double>(at - first_) / (end - first_));
  }
}

void ExportedRun::for_each(FunctionRef<void(const BlockEvent&)> f) const { for_each_before(end_, f); }

void ExportedRun::find_peak() {
  std::uint64_t live = 0;
  for_each([&](const BlockEvent& event) {
    live = event.is_birth ? live + event.block->size : live - event.block->size;
    if (live <= peak_bytes_) return;
    peak_bytes_ = live;
    peak_end_ = event.end;
  });
}

std::uint32_t ExportedRun::end_at(const std::string& at) const {
  const ExportedMoment moment = parse_exported_moment(at);
  if (moment.kind == ExportedMoment::Kind::kPeak) return peak_end_;
  if (moment.kind == ExportedMoment::Kind::kEnd) return end_;
  if (moment.kind == ExportedMoment::Kind::kStep) {
    const auto step =
        std::find_if(steps_.begin(), steps_.end(), [&](const StepSummary& one) { return moment.step == one.number; });
    if (step != steps_.end()) return step->first_moment;
    throw InvalidArgument(
        steps_.empty()
            ? fmt::format("export: at \"{}\" is not there: no step is exported; use peak, end or seconds", at)
            : fmt::format("export: at \"{}\" is not an exported step; use step:{} to step:{}", at,
                          steps_.front().number, steps_.back().number));
  }
  const double time_ns = moment.seconds * 1e9;
  if (!(time_ns >= static_cast<double>(begin_ns_) && time_ns <= static_cast<double>(end_ns_)))
    throw InvalidArgument(fmt::format("export: at \"{}\" is outside of what is exported; use {} to {} seconds", at,
                                      std::ceil(static_cast<double>(begin_ns_) / 1e3) / 1e6,
                                      std::floor(static_cast<double>(end_ns_) / 1e3) / 1e6));
  const auto begin = history_.times.begin();
  return static_cast<std::uint32_t>(std::upper_bound(begin + first_, begin + end_, static_cast<std::int64_t>(time_ns)) -
                                    begin);
}

std::string ExportedRun::name(std::uint32_t number) const {
  std::string text = valid_utf8(history_.names[number]);
  std::replace_if(
      text.begin(), text.end(), [](unsigned char letter) { return letter < ' '; }, ' ');
  return text;
}

std::vector<std::string> ExportedRun::frames(const TracedLabel& label) const {
  std::vector<std::string> frames;
  const std::string scope = name(label.scope);
  for (std::size_t begin = 0; begin < scope.size();) {
    const std::size_t end = std::min(scope.find('/', begin), scope.size());
    if (end > begin) frames.push_back(scope.substr(begin, end - begin));
    begin = end + 1;
  }
  frames.push_back(label.is_unused ? "unused part of a plan" : name(label.op).empty() ? "block" : name(label.op));
  return frames;
}

std::string ExportedRun::details(const TracedLabel& label) const {
  std::string text;
  const auto add = [&](const char* what, const std::string& value) {
    if (!value.empty()) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, value);
  };
  if (!label.is_unused) add("name", name(label.name));
  add("shape", shape_text(label));
  add("budget", name(label.budget));
  return text;
}

ExportedRun::Site ExportedRun::site(const TracedLabel& label) const {
  const std::string text = name(label.site);
  const std::size_t colon = text.rfind(':');
  if (text.empty()) return {};
  if (colon == std::string::npos) return {text, 0};
  return {text.substr(0, colon), number_in<std::uint32_t>(std::string_view(text).substr(colon + 1)).value_or(0)};
}

}  // namespace plimsoll::internal
