#include "plimsoll/model/training/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/terminal.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/memory/meter_center.h"
#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/model/training/step_budget.h"

namespace plimsoll::internal {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string seconds(double value) {
  const auto whole = std::lround(value);
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}:{:02d}", whole / 60, whole % 60);
  return fmt::format("{}:{:02d}:{:02d}", whole / 3600, whole / 60 % 60, whole % 60);
}

void write(std::FILE* to, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
}

}  // namespace

Progress::Progress(const ProgressOptions& options)
    : options_(options), bar_(options.verbose == 1 && rewrites_lines(::fileno(options.to))) {}

std::string Progress::bar(std::size_t done, std::optional<std::size_t> all, std::size_t width) {
  if (!all) return fmt::format("{}/?", done);
  const std::size_t filled = *all == 0 ? width : std::min(width, done * width / *all);
  std::string text(filled, '=');
  if (filled < width) text += '>' + std::string(width - filled - 1, '.');
  return fmt::format("{}/{} [{}]", done, *all, text);
}

std::string Progress::line(std::size_t done, std::optional<std::size_t> all, const std::string& text,
                           std::size_t columns) {
  constexpr std::size_t kShortest = 5, kLongest = 30;
  const std::size_t rest = bar(done, all, 0).size() + text.size();
  const std::size_t width = columns > rest ? std::clamp(columns - rest, kShortest, kLongest) : kShortest;
  std::string line = bar(done, all, width) + text;
  if (line.size() > columns) line.resize(columns);
  return line;
}

std::size_t Progress::columns() const noexcept {
  constexpr std::size_t kUsual = 80;
  winsize size = {};
  const bool is_known = ::ioctl(::fileno(options_.to), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col - 1u : kUsual - 1;  // Writing in the last column would start a new line.
}

// Replaces the previous line.
void Progress::show(const std::string& line, const char* end) {
  const std::size_t shorter = width_ > line.size() ? width_ - line.size() : 0;
  width_ = line.size();
  write(options_.to, "\r" + line + std::string(shorter, ' ') + end);
}

std::string Progress::numbers(const Logs& logs) {
  std::string text;
  for (const auto& [name, value] : logs) text += fmt::format(" - {} {:.4f}", name, value);
  return text;
}

std::string Progress::gauge(std::size_t used, std::size_t limit, std::size_t peak) {
  // Each in its own unit, printed once where they share it.
  const std::string all = format_bytes(limit == 0 ? used : limit);
  const std::string unit = all.substr(all.find(' '));
  const auto short_text = [&](std::size_t bytes) {
    std::string text = format_bytes(bytes);
    if (text.ends_with(unit)) text.resize(text.size() - unit.size());
    return text;
  };
  if (limit == 0) return fmt::format("{}, peak {}", all, short_text(peak));
  return fmt::format("{} of {}, peak {}", short_text(used), all, short_text(peak));
}

std::string Progress::recomputing(double fraction) {
  if (!(fraction > 0)) return "";
  const double percent = 100 * fraction;
  return percent < 1 ? ", recomputing less than 1 %" : fmt::format(", recomputing {:.0f} %", percent);
}

std::string Progress::spilled(std::size_t step_bytes) {
  return step_bytes == 0 ? "" : fmt::format(", spilled {}", format_bytes(step_bytes));
}

void Progress::show_slowdown(double predicted) {
  if (options_.verbose == 0 || !(predicted > 1) || !options_.budget) return;
  write(options_.to, fmt::format("Within {} a step is predicted to take {:.2f} times as long as without a budget.\n",
                                 format_bytes(options_.budget->limit().value_or(0)), predicted));
}

// Of the fit's own budget, or the innermost one; without one, of the fit, as History::peak_bytes() counts it. A
// device's limit is not shown.
std::string Progress::memory() const {
  const Meter* const around = ThreadMemory::current().budget;
  if (around && !(options_.budget && options_.budget->limit()))
    return gauge(around->center->used(), around->center->limit(), around->center->peak());
  if (options_.budget)
    return gauge(options_.budget->used_bytes(), options_.budget->limit().value_or(0), options_.budget->peak_bytes()) +
           recomputing(options_.budget->last_recomputed()) + spilled(options_.budget->last_spilled()) +
           (ranks_ > 1 ? fmt::format(", {} ranks {}", ranks_, format_bytes(used_by_ranks_)) : "");
  const MemoryStats stats = memory_stats(options_.device);
  return gauge(stats.bytes_in_use, 0, stats.peak_bytes_in_use);
}

void Progress::begin_epoch(int epoch) {
  epoch_ = epoch;
  begun_ = now();
  shown_ = width_ = 0;
  if (bar_) write(options_.to, fmt::format("Epoch {}/{}\n", epoch + 1, options_.epochs));
}

void Progress::batch_ended(std::size_t done, const Logs& logs) {
  const double time = now();
  if (!bar_ || time - shown_ < 0.05) return;
  shown_ = time;
  std::string text;
  if (options_.batches && done > 0)
    text += fmt::format(" - eta {}", seconds((time - begun_) / static_cast<double>(done) *
                                             static_cast<double>(std::max(*options_.batches, done) - done)));
  show(line(done, options_.batches, text + numbers(logs) + " - " + memory(), columns()), "");
}

void Progress::end_epoch(std::size_t batches, const Logs& logs) {
  if (options_.verbose == 0) return;
  const std::string tail = fmt::format(" - {}{} - {}", seconds(now() - begun_), numbers(logs), memory());
  if (!bar_) {
    const std::string epoch = fmt::format("Epoch {}/{}", epoch_ + 1, options_.epochs);
    return write(options_.to, epoch + tail + "\n");
  }
  // This line stays: complete, with as much of a bar as fits.
  show(line(batches, batches, tail, std::max(columns(), bar(batches, batches, 5).size() + tail.size())), "\n");
}

}  // namespace plimsoll::internal
