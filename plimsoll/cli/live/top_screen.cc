#include "plimsoll/cli/live/top_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "plimsoll/base/bytes.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kBar = 12;
constexpr const char *kPlain = "\033[0m", *kBold = "\033[1m", *kReverse = "\033[7m", *kDim = "\033[2m";
constexpr const char *kRed = "\033[31m", *kYellow = "\033[33m", *kGreen = "\033[32m";

// Lines with or without colors; widths count characters of what is visible.
class Lines {
 public:
  explicit Lines(const TopView& view) : view_(view) {}

  void add(const std::string& text, const char* style = "") {
    std::string line = cut(text);
    if (view_.color && *style) {
      const std::size_t shown = letters(line);
      if (style == kReverse && shown < view_.width) line += std::string(view_.width - shown, ' ');
      line = style + line + kPlain;
    }
    lines_.push_back(std::move(line));
  }
  // The same with a bar at [at, at + size) in a color of its own.
  void add_with_bar(const std::string& before, const std::string& bar, const std::string& after, const char* color,
                    bool chosen) {
    if (!view_.color || chosen) return add(before + bar + after, chosen ? kReverse : "");
    const std::string cut_after =
        letters(before + bar) >= view_.width ? "" : cut(after, view_.width - letters(before + bar));
    if (letters(before) + letters(bar) > view_.width) return add(before);
    lines_.push_back(before + color + bar + kPlain + cut_after);
  }
  // At most `height` lines; the last one stays.
  std::string text() const {
    std::string all;
    std::size_t skip_from = lines_.size(), skip_to = lines_.size();
    if (view_.height > 0 && lines_.size() > view_.height) {
      skip_from = view_.height - 1;
      skip_to = lines_.size() - 1;
    }
    for (std::size_t i = 0; i < lines_.size(); ++i)
      if (i < skip_from || i >= skip_to) all += lines_[i] + '\n';
    return all;
  }
  std::size_t count() const { return lines_.size(); }

  static std::size_t letters(const std::string& text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
  }
  std::string cut(const std::string& text) const { return cut(text, view_.width); }
  static std::string cut(const std::string& text, std::size_t width) {
    std::size_t seen = 0;
    for (std::size_t i = 0; i < text.size(); ++i)
      if ((text[i] & 0xC0) != 0x80 && seen++ == width) return text.substr(0, i);
    return text;
  }

 private:
  const TopView& view_;
  std::vector<std::string> lines_;
};

std::string padded(const std::string& text, std::size_t width) {
  const std::string cut = Lines::cut(text, width);
  return cut + std::string(width - Lines::letters(cut), ' ');
}

std::string right(const std::string& text, std::size_t width) {
  const std::size_t letters = Lines::letters(text);
  return std::string(width - std::min(width, letters), ' ') + text;
}

std::string bar_of(double share, bool unicode, std::size_t width = kBar) {
  const double full = std::clamp(share, 0.0, 1.0) * static_cast<double>(width);
  const auto whole = static_cast<std::size_t>(full);
  std::string bar;
  if (!unicode) {
    const auto marks = static_cast<std::size_t>(std::lround(full));
    return "[" + std::string(marks, '#') + std::string(width - marks, '.') + "]";
  }
  constexpr const char* kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  for (std::size_t i = 0; i < whole; ++i) bar += "█";
  const std::string part = kParts[static_cast<std::size_t>((full - static_cast<double>(whole)) * 8)];
  bar += part;
  for (std::size_t i = whole + (part.empty() ? 0 : 1); i < width; ++i) bar += "·";
  return bar;
}

const char* color_of(double share) { return share > 0.9 ? kRed : share > 0.7 ? kYellow : kGreen; }

std::string percent(double share) { return fmt::format("{:3.0f}%", 100 * share); }

std::size_t name_width(const std::vector<LiveCounters>& processes) {
  std::size_t width = 4;
  for (const LiveCounters& process : processes) width = std::max(width, Lines::letters(text_of(process.name)));
  return std::min<std::size_t>(width, 24);
}

bool is_late(const LiveCounters& process, std::int64_t now) {
  // A process that hardly runs publishes at every tenth interval.
  const std::int64_t patience = 3'000'000'000 + 12'000'000 * static_cast<std::int64_t>(process.interval_ms);
  return now > 0 && process.updated_unix_ns > 0 && now - process.updated_unix_ns > patience;
}

// The columns of the list that fit the width; the least important are dropped first. The bar stays longest.
struct Columns {
  std::size_t names = 4, bar = kBar, limits = 16;  // Widths of process names, of the bar, and of names of limits.
  bool of = true, reserved = true, mostly = true, peak = true, step = true, limit = true;

  std::size_t width() const {
    return 7 + 1 + names + (step ? 9 : 0) + 11 + (peak ? 11 : 0) + (reserved ? 11 : 0) + 2 + bar + 5 +
           (limit ? 13 : 0) + (of ? limits + 2 : 0) + (mostly ? 13 : 0);
  }
};

Columns columns_for(const std::vector<LiveCounters>& processes, const TopView& view) {
  Columns columns{.names = name_width(processes), .bar = kBar + (view.unicode ? 0 : 2)};
  const std::size_t narrow = columns.limits;
  for (const LiveCounters& process : processes)
    columns.limits = std::min<std::size_t>(std::max(columns.limits, Lines::letters(nearest_limit(process).name)), 32);
  if (columns.width() > view.width) columns.limits = narrow;
  for (bool Columns::*column :
       {&Columns::of, &Columns::reserved, &Columns::mostly, &Columns::peak, &Columns::step, &Columns::limit})
    if (columns.width() > view.width) columns.*column = false;
  if (const std::size_t width = columns.width(); width > view.width)
    columns.names -= std::min(columns.names - 4, width - view.width);
  return columns;
}

void add_process(const LiveCounters& process, const Columns& columns, const TopView& view, Lines& lines) {
  const NearestLimit nearest = nearest_limit(process);
  std::string before = fmt::format("{:>7} {}", process.process, padded(text_of(process.name), columns.names));
  if (columns.step) before += right(process.has_step ? std::to_string(process.step) : "-", 9);
  before += right(format_bytes(process.used()), 11);
  if (columns.peak) before += right(format_bytes(process.peak()), 11);
  if (columns.reserved) before += right(format_bytes(process.reserved()), 11);
  const std::string bar = bar_of(nearest.share(), view.unicode);
  const int top = process.top_category();
  std::string after = " " + percent(nearest.share());
  if (columns.limit) after += fmt::format(" of {}", right(format_bytes(nearest.limit), 9));
  if (columns.of) after += "  " + padded(nearest.name, columns.limits);
  if (columns.mostly) after += "  " + (top < 0 ? "-" : padded(category_name(static_cast<Category>(top)), 11));
  if (process.refusals() > 0) after += fmt::format("  {} refused", process.refusals());
  if (process.is_recording) after += "  recording";
  if (is_late(process, view.now)) after += "  (not updating)";
  lines.add_with_bar(before + "  ", bar, after, color_of(nearest.share()), process.process == view.chosen && view.keys);
}

void add_budgets(const LiveCounters& process, const TopView& view, Lines& lines) {
  const bool peak = view.width >= 64;
  const std::size_t names =
      std::clamp<std::size_t>(view.width - std::min<std::size_t>(view.width, peak ? 54 : 43), 12, 34);
  const auto row = [&](const std::string& name, const std::string& used, const std::string& most,
                       const std::string& limit) {
    return padded(name, names) + right(used, 11) + (peak ? right(most, 11) : "") + right(limit, 11);
  };
  lines.add(row("BUDGET", "USED", "PEAK", "LIMIT"), kBold);
  if (process.num_budgets == 0) lines.add("  none");
  const auto add = [&](const auto& self, std::int32_t parent, std::size_t depth) -> void {
    for (std::size_t i = 0; i < process.num_budgets; ++i) {
      const LiveBudget& budget = process.budgets[i];
      if (budget.parent != parent) continue;
      const double share = budget.limit == 0 ? 0 : static_cast<double>(budget.used) / static_cast<double>(budget.limit);
      const std::string name = std::string(2 * std::min<std::size_t>(depth, 8) + 2, ' ') + text_of(budget.name);
      lines.add_with_bar(
          row(name, format_bytes(budget.used), format_bytes(budget.peak), format_bytes(budget.limit)) + "  ",
          bar_of(share, view.unicode), " " + percent(share), color_of(share), false);
      self(self, static_cast<std::int32_t>(i), depth + 1);
    }
  };
  add(add, -1, 0);
  if (process.all_budgets > process.num_budgets)
    lines.add(fmt::format("  and {} more", process.all_budgets - process.num_budgets), kDim);
}

void add_holders(const LiveCounters& process, const TopView& view, Lines& lines) {
  lines.add(fmt::format("{:>12}{:>9}  {:<12} {:<24} {}", "BYTES", "BLOCKS", "CATEGORY", "OPERATION", "SCOPE"), kBold);
  if (process.num_holders == 0) lines.add("  nothing is live");
  for (std::size_t i = 0; i < process.num_holders; ++i) {
    const LiveHolder& holder = process.holders[i];
    lines.add(fmt::format("{}{:>9}  {} {} {}", right(format_bytes(holder.bytes), 12), holder.blocks,
                          padded(category_name(static_cast<Category>(holder.category)), 12),
                          padded(text_of(holder.op), 24), text_of(holder.scope)));
  }
  if (view.now > 0 && process.counted_unix_ns > 0 && view.now - process.counted_unix_ns > 10'000'000'000)
    lines.add(fmt::format("  counted {} s ago", (view.now - process.counted_unix_ns) / 1'000'000'000), kDim);
}

void add_devices(const LiveCounters& process, const TopView& view, Lines& lines) {
  const bool counts = view.width >= 104;
  const auto row = [&](const std::string& name, const std::string& used, const std::string& peak,
                       const std::string& reserved, const std::string& limit, const std::string& allocations,
                       const std::string& refusals) {
    return padded(name, 14) + right(used, 11) + right(peak, 11) + right(reserved, 11) + right(limit, 11) +
           (counts ? right(allocations, 14) + right(refusals, 10) : "");
  };
  lines.add(row("DEVICE", "USED", "PEAK", "RESERVED", "LIMIT", "ALLOCATIONS", "REFUSALS"), kBold);
  for (std::size_t i = 0; i < process.num_devices; ++i) {
    const LiveDevice& device = process.devices[i];
    const double share = device.limit == 0 ? 0 : static_cast<double>(device.used) / static_cast<double>(device.limit);
    lines.add_with_bar(row("  " + text_of(device.name), format_bytes(device.used), format_bytes(device.peak),
                           format_bytes(device.reserved), format_bytes(device.limit),
                           std::to_string(device.allocations), std::to_string(device.refusals)) +
                           "  ",
                       bar_of(share, view.unicode), " " + percent(share), color_of(share), false);
  }
  std::string resident = fmt::format("  process: {} resident, at most {}", format_bytes(process.resident),
                                     format_bytes(process.peak_resident));
  if (process.process_cpu_ns > 0)
    resident += fmt::format(
        "; publishing took {:.3f} % of its processor time",
        100.0 * static_cast<double>(process.publisher_cpu_ns) / static_cast<double>(process.process_cpu_ns));
  lines.add(resident, kDim);
}

void add_section(const LiveCounters& process, TopSection section, const TopView& view, Lines& lines) {
  switch (section) {
    case TopSection::kProcesses:
      return;
    case TopSection::kBudgets:
      return add_budgets(process, view, lines);
    case TopSection::kHolders:
      return add_holders(process, view, lines);
    case TopSection::kDevices:
      return add_devices(process, view, lines);
  }
}

void add_list(const std::vector<LiveCounters>& processes, const TopView& view, Lines& lines) {
  const Columns columns = columns_for(processes, view);
  std::string head = fmt::format("{:>7} {}", "PID", padded("NAME", columns.names));
  if (columns.step) head += right("STEP", 9);
  head += right("USED", 11);
  if (columns.peak) head += right("PEAK", 11);
  if (columns.reserved) head += right("RESERVED", 11);
  head += "  " + padded("NEAREST LIMIT", columns.bar + 5 + (columns.limit ? 13 : 0));
  if (columns.of) head += "  " + padded("OF", columns.limits);
  if (columns.mostly) head += "  MOSTLY";
  lines.add(head, kBold);
  for (const LiveCounters& process : processes) add_process(process, columns, view, lines);
}

const char* keys_for(std::size_t width) {
  constexpr const char* kTexts[] = {"up/down choose  b budgets  h holders  d devices  p processes  t trim  q quit",
                                    "b budgets  h holders  d devices  t trim  q quit", "b h d p t  q quit"};
  for (const char* text : kTexts)
    if (std::string_view(text).size() <= width) return text;
  return "q";
}

}  // namespace

std::string top_screen(const std::vector<LiveCounters>& processes, const TopView& view) {
  Lines lines(view);
  if (processes.empty()) {
    lines.add("No process publishes its memory. Start one with PLIMSOLL_LIVE=1, or make a pl::LiveView in it.");
  } else {
    std::uint64_t used = 0;
    for (const LiveCounters& process : processes) used += process.used();
    if (view.keys)
      lines.add(fmt::format("plimsoll top: {}, {} in use",
                            fmt::format("{} process{}", processes.size(), processes.size() == 1 ? "" : "es"),
                            format_bytes(used)),
                kBold);
    add_list(processes, view, lines);
    for (const LiveCounters& process : processes) {
      if (process.process != view.chosen || view.section == TopSection::kProcesses) continue;
      lines.add("");
      add_section(process, view.section, view, lines);
    }
  }
  if (view.keys) {
    if (view.height > 0)
      while (lines.count() + 1 < view.height) lines.add("");
    lines.add(!view.note.empty() ? view.note : keys_for(view.width), kDim);
  }
  return lines.text();
}

std::string top_details(const LiveCounters& process, const TopView& view) {
  Lines lines(view);
  add_list({process}, view, lines);
  for (const TopSection section : {TopSection::kBudgets, TopSection::kHolders, TopSection::kDevices}) {
    lines.add("");
    add_section(process, section, view, lines);
  }
  return lines.text();
}

}  // namespace plimsoll::internal
