#include "plimsoll/model/internal/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "plimsoll/device/device_memory.h"
#include "plimsoll/memory/meter_center.h"
#include "plimsoll/memory/thread_memory.h"

namespace plimsoll {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string seconds(double value) {
  const auto whole = static_cast<long>(value + 0.5);
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
    : options_(options), bar_(options.verbose == 1 && ::isatty(::fileno(options.to)) == 1) {}

std::string Progress::bar(std::size_t done, std::optional<std::size_t> all) {
  if (!all) return fmt::format("{}/?", done);
  constexpr std::size_t kWidth = 30;
  const std::size_t filled = *all == 0 ? kWidth : std::min(kWidth, done * kWidth / *all);
  std::string text(filled, '=');
  if (filled < kWidth) text += '>' + std::string(kWidth - filled - 1, '.');
  return fmt::format("{}/{} [{}]", done, *all, text);
}

std::string Progress::numbers(const Logs& logs) {
  std::string text;
  for (const auto& [name, value] : logs) text += fmt::format(" - {} {:.4f}", name, value);
  return text;
}

std::string Progress::gauge(std::size_t used, std::size_t limit, std::size_t peak) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  double divisor = 1;
  for (const std::size_t largest = std::max(limit, peak); static_cast<double>(largest) / divisor >= 1024 && unit < 4;) {
    ++unit;
    divisor *= 1024;
  }
  const auto in_unit = [&](std::size_t bytes) { return static_cast<double>(bytes) / divisor; };
  if (limit == 0) return fmt::format("{:.1f} {}, peak {:.1f}", in_unit(used), kUnits[unit], in_unit(peak));
  return fmt::format("{:.1f} of {:.1f} {}, peak {:.1f}", in_unit(used), in_unit(limit), kUnits[unit], in_unit(peak));
}

// Of the innermost budget; without one, of the device, whose limit is no news.
std::string Progress::memory() const {
  if (const Meter* budget = ThreadMemory::current().budget)
    return gauge(budget->center->used(), budget->center->limit(), budget->center->peak());
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
  std::string text = bar(done, options_.batches);
  if (options_.batches && done > 0)
    text += fmt::format(" - eta {}", seconds((time - begun_) / static_cast<double>(done) *
                                             static_cast<double>(std::max(*options_.batches, done) - done)));
  text += numbers(logs) + " - " + memory();
  const std::size_t shorter = width_ > text.size() ? width_ - text.size() : 0;
  width_ = text.size();
  write(options_.to, "\r" + text + std::string(shorter, ' '));
}

void Progress::end_epoch(std::size_t batches, const Logs& logs) {
  if (options_.verbose == 0) return;
  const std::string tail = fmt::format(" - {}{} - {}", seconds(now() - begun_), numbers(logs), memory());
  if (!bar_) {
    const std::string epoch = fmt::format("Epoch {}/{}", epoch_ + 1, options_.epochs);
    return write(options_.to, epoch + tail + "\n");
  }
  const std::string text = bar(batches, batches) + tail;
  const std::size_t shorter = width_ > text.size() ? width_ - text.size() : 0;
  write(options_.to, "\r" + text + std::string(shorter, ' ') + "\n");
}

}  // namespace plimsoll
