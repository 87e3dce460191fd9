#include "plimsoll/cli/train/forecast_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/text.h"

namespace plimsoll::internal {
namespace {

constexpr double kWidth = 900, kHeight = 480;                       // Of the picture.
constexpr double kLeft = 70, kRight = 30, kTop = 60, kBottom = 60;  // Margins.
constexpr int kTicks = 6;

class Picture {
 public:
  Picture(const MemoryForecast& forecast, const ForecastPicture& options) : forecast_(forecast), options_(options) {
    slowest_ = forecast.front.empty() ? 1 : forecast.front.back().slowdown;
    slowest_ = 1 + std::max(0.1, (slowest_ - 1) * 1.1);
    widest_ = static_cast<double>(std::max<std::size_t>(forecast.peak_bytes, 1)) * 1.05;
  }

  std::string draw() {
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" "
        "font-size=\"12\">\n<rect width=\"{}\" height=\"{}\" fill=\"#ffffff\"/>\n",
        kWidth, kHeight, kWidth, kHeight);
    add("<text x=\"{}\" y=\"28\" font-size=\"18\" fill=\"#16323f\">{}</text>\n", kLeft, escape_xml(options_.title));
    axes();
    mark(forecast_.floor_bytes, "#2a8f4d", "floor");
    mark(forecast_.smallest_budget, "#c0392b", "smallest budget");
    if (options_.budget && static_cast<double>(*options_.budget) < widest_) mark(*options_.budget, "#7a5cc0", "budget");
    front();
    return out_ + "</svg>\n";
  }

 private:
  template <typename... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
  }
  double x(double bytes) const { return kLeft + (kWidth - kLeft - kRight) * bytes / widest_; }
  double y(double slowdown) const {
    return kHeight - kBottom - (kHeight - kTop - kBottom) * (slowdown - 1) / (slowest_ - 1);
  }

  void axes() {
    for (int tick = 0; tick <= kTicks; ++tick) {
      const double share = static_cast<double>(tick) / kTicks, slowdown = 1 + (slowest_ - 1) * share;
      add("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"#e3e8ea\"/>", kLeft, y(slowdown), kWidth - kRight);
      add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#556\">{:.2f} ×</text>\n", kLeft - 8,
          y(slowdown) + 4, slowdown);
      add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#556\">{}</text>\n", x(widest_ * share),
          kHeight - kBottom + 18, format_bytes(static_cast<std::size_t>(widest_ * share)));
    }
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"#16323f\">budget</text>\n",
        (kLeft + kWidth - kRight) / 2, kHeight - 14);
    add("<text x=\"{}\" y=\"{:.1f}\" fill=\"#16323f\">predicted time of a step</text>\n", kLeft, kTop - 12);
  }

  void mark(std::size_t bytes, const char* colour, const char* name) {
    const double at = x(static_cast<double>(bytes));
    add("<path d=\"M{:.1f} {:.1f}V{:.1f}\" stroke=\"{}\" stroke-dasharray=\"5 4\"/>", at, kTop, kHeight - kBottom,
        colour);
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\">{}</text>\n", at + 4, kTop + 12 + 16 * marks_++, colour, name);
  }

  // A budget between two points runs like the smaller one.
  void front() {
    add("<path fill=\"none\" stroke=\"#22678f\" stroke-width=\"2\" d=\"M{:.1f} {:.1f}", x(widest_), y(1));
    for (const BudgetPoint& point : forecast_.front)
      add("V{:.1f}H{:.1f}", y(point.slowdown), x(static_cast<double>(point.bytes)));
    add("\"/>\n");
    for (const BudgetPoint& point : forecast_.front)
      add("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"#22678f\"><title>{}: {:.3f} ×</title></circle>\n",
          x(static_cast<double>(point.bytes)), y(point.slowdown), format_bytes_exactly(point.bytes), point.slowdown);
  }

  const MemoryForecast& forecast_;
  const ForecastPicture& options_;
  double slowest_ = 1, widest_ = 1;
  int marks_ = 0;
  std::string out_;
};

}  // namespace

std::string forecast_svg(const MemoryForecast& forecast, const ForecastPicture& options) {
  return Picture(forecast, options).draw();
}

}  // namespace plimsoll::internal
