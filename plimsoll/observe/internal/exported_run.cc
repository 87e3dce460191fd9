#include "plimsoll/observe/internal/exported_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
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

ExportedRun::ExportedRun(const TraceHistory& history, const std::string& steps)
    : history_(history),
      steps_(summarize(history).steps),
      end_(static_cast<std::uint32_t>(history.times.size())),
      end_ns_(history.duration_ns) {
  if (!steps.empty()) select_steps(steps);
  find_peak();
}

void ExportedRun::select_steps(const std::string& steps) {
  const std::size_t colon = steps.find(':');
  const auto from = number_in<std::uint64_t>(std::string_view(steps).substr(0, colon));
  const auto to =
      colon == std::string::npos ? from : number_in<std::uint64_t>(std::string_view(steps).substr(colon + 1));
  if (!from || !to || *from > *to)
    throw InvalidArgument(
        fmt::format("export: steps \"{}\" are not A:B with A <= B; write 3:5 for steps 3, 4 and 5", steps));
  if (steps_.empty()) throw InvalidArgument("export: the trace has no steps; leave the steps out");
  std::erase_if(steps_, [&, first = steps_.front().number, last = steps_.back().number](const StepSummary& step) {
    if (*from > last || *to < first)
      throw InvalidArgument(fmt::format("export: steps {} are not in the trace; it has {}:{}", steps, first, last));
    return step.number < *from || step.number > *to;
  });
  if (steps_.empty()) throw InvalidArgument(fmt::format("export: steps {} are not in the trace", steps));
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
  if (at.empty() || at == "peak") return peak_end_;
  if (at == "end") return end_;
  if (at.starts_with("step:")) {
    const auto number = number_in<std::uint64_t>(std::string_view(at).substr(5));
    const auto step =
        std::find_if(steps_.begin(), steps_.end(), [&](const StepSummary& one) { return number == one.number; });
    if (step != steps_.end()) return step->first_moment;
    const std::string there =
        steps_.empty() ? "there are none" : fmt::format("it has {} to {}", steps_.front().number, steps_.back().number);
    throw InvalidArgument(fmt::format("export: \"{}\" is not an exported step; {}", at, there));
  }
  const auto seconds = number_in<double>(at);
  if (!seconds)
    throw InvalidArgument(fmt::format("export: \"{}\" is not a moment; use peak, end, step:N or seconds", at));
  const double time_ns = *seconds * 1e9;
  if (!(time_ns >= static_cast<double>(begin_ns_) && time_ns <= static_cast<double>(end_ns_)))
    throw InvalidArgument(fmt::format("export: {} s is outside the exported part, {:.3f} to {:.3f} s", at,
                                      static_cast<double>(begin_ns_) / 1e9, static_cast<double>(end_ns_) / 1e9));
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
  add("name", name(label.name));
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
