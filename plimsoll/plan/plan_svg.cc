#include "plimsoll/plan/plan_svg.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/text.h"

namespace plimsoll::internal {
namespace {

constexpr double kWidth = 1400, kHeight = 860;                      // Of the picture.
constexpr double kLeft = 90, kRight = 20, kTop = 50, kBottom = 50;  // Margins.
constexpr double kLabelWidth = 7, kLabelHeight = 12;                // Of a letter, when boxes are labelled.
constexpr const char* kSizeColours[] = {"#d9ecf5", "#a9d3e6", "#6fb1cf", "#3f8bb3", "#22678f", "#124566"};

class Picture {
 public:
  Picture(const Lifetimes& lifetimes, const PictureOptions& options) : lifetimes_(lifetimes), options_(options) {
    const auto& buffers = lifetimes.buffers;
    PLIMSOLL_CHECK(lifetimes.offsets.size() == buffers.size());
    start_ = buffers.empty() ? 0 : std::numeric_limits<std::int64_t>::max();
    end_ = start_ == 0 ? 1 : std::numeric_limits<std::int64_t>::min();
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      start_ = std::min(start_, buffers[i].lower);
      end_ = std::max(end_, buffers[i].upper);
      peak_ = std::max(peak_, lifetimes.offsets[i] + buffers[i].size);
      largest_ = std::max(largest_, buffers[i].size);
    }
    top_ = std::max<std::size_t>({peak_, options.capacity, 1});
  }

  std::string draw() {
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" "
        "font-size=\"12\">\n",
        kWidth, kHeight);
    add("<rect width=\"{}\" height=\"{}\" fill=\"#ffffff\"/>\n", kWidth, kHeight);
    add("<text x=\"{}\" y=\"28\" font-size=\"18\" fill=\"#16323f\">{}</text>\n", kLeft, escape_xml(options_.title));
    axes();
    std::vector<std::size_t> order(lifetimes_.buffers.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    // Large boxes first, so that members of an alias set stay visible on top of it.
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return lifetimes_.buffers[a].size > lifetimes_.buffers[b].size;
    });
    for (const std::size_t i : order) box(i);
    if (options_.lower_bound > 0) line(options_.lower_bound, "#2a8f4d", "lower bound", 0);
    if (options_.capacity > 0) line(options_.capacity, "#c0392b", "capacity", 180);
    return out_ + "</svg>\n";
  }

 private:
  template <typename... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
  }

  double x(std::int64_t time) const {
    const double span = static_cast<double>(end_) - static_cast<double>(start_);
    return kLeft + (kWidth - kLeft - kRight) * (static_cast<double>(time) - static_cast<double>(start_)) / span;
  }
  double y(std::size_t address) const {
    return kHeight - kBottom - (kHeight - kTop - kBottom) * static_cast<double>(address) / static_cast<double>(top_);
  }

  void axes() {
    for (int tick = 0; tick <= 8; ++tick) {
      const std::size_t address = top_ / 8 * tick;
      add("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"#e3e8ea\"/>", kLeft, y(address), kWidth - kRight);
      add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#556\">{}</text>\n", kLeft - 8, y(address) + 4,
          format_bytes(address));
      const std::int64_t time =
          start_ + static_cast<std::int64_t>((static_cast<double>(end_) - static_cast<double>(start_)) / 8 * tick);
      add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"#556\">{}</text>\n", x(time),
          kHeight - kBottom + 18, tick == 8 ? "end" : "middle", time);
    }
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#556\">time</text>\n", kWidth / 2, kHeight - 10);
  }

  // Index into kSizeColours.
  int shade(std::size_t size) const {
    constexpr int kDarkest = static_cast<int>(std::size(kSizeColours)) - 1;
    const double smaller =
        std::log2(static_cast<double>(largest_) / static_cast<double>(std::max<std::size_t>(size, 1)));
    return std::clamp(kDarkest - static_cast<int>(smaller / 1.5), 0, kDarkest);
  }

  void rectangle(std::int64_t lower, std::int64_t upper, std::size_t low, std::size_t high, const char* style) {
    add("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" {}/>", x(lower), y(high),
        x(upper) - x(lower), y(low) - y(high), style);
  }

  void box(std::size_t i) {
    const Buffer& buffer = lifetimes_.buffers[i];
    if (buffer.size == 0) return;
    const std::size_t low = lifetimes_.offsets[i], high = low + buffer.size;
    const char* fill = kSizeColours[shade(buffer.size)];
    add("<g fill=\"{}\" stroke=\"#ffffff\" stroke-width=\"0.6\"><title>{}: {}, time {} to {}, at {}</title>", fill,
        escape_xml(lifetimes_.ids[i]), format_bytes_exactly(buffer.size), buffer.lower, buffer.upper, low);
    rectangle(buffer.lower, buffer.upper, low, high, "");
    for (const Gap& gap : buffer.gaps) {
      rectangle(gap.lower, gap.upper, low, high, "fill=\"#f4f4f4\" fill-opacity=\"0.8\"");
      if (gap.window_lower < gap.window_upper)
        rectangle(gap.lower, gap.upper, low + gap.window_lower, low + gap.window_upper, "");
    }
    label(buffer, low, high, lifetimes_.ids[i]);
    out_ += "</g>\n";
  }

  void label(const Buffer& buffer, std::size_t low, std::size_t high, const std::string& id) {
    const double width = x(buffer.upper) - x(buffer.lower), height = y(low) - y(high);
    if (height < kLabelHeight || width < kLabelWidth * static_cast<double>(id.size() + 1)) return;
    const bool dark = shade(buffer.size) >= 3;
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" stroke=\"none\" fill=\"{}\" font-size=\"11\">{}</text>",
        x(buffer.lower) + width / 2, y(high) + height / 2 + 4, dark ? "#ffffff" : "#16323f", escape_xml(id));
  }

  // A level across the picture, named above its top right corner.
  void line(std::size_t address, const char* stroke, const char* name, double from_right) {
    add("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"{}\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"/>", kLeft,
        y(address), kWidth - kRight, stroke);
    add("<text x=\"{:.1f}\" y=\"28\" text-anchor=\"end\" fill=\"{}\">- - {} {}</text>\n", kWidth - kRight - from_right,
        stroke, name, format_bytes(address));
  }

  const Lifetimes& lifetimes_;
  const PictureOptions& options_;
  std::int64_t start_ = 0;
  std::int64_t end_ = 1;
  std::size_t peak_ = 0;
  std::size_t largest_ = 1;
  std::size_t top_ = 1;
  std::string out_;
};

}  // namespace

std::string plan_svg(const Lifetimes& lifetimes, const PictureOptions& options) {
  return Picture(lifetimes, options).draw();
}

}  // namespace plimsoll::internal
