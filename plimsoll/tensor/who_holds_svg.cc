#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "plimsoll/base/text.h"
#include "plimsoll/tensor/who_holds.h"

namespace plimsoll {
namespace {

constexpr double kMargin = 24, kHeading = 52;                     // Around the boxes, and above them.
constexpr double kBoxHeight = 44, kRowGap = 14, kColumnGap = 72;  // Between boxes.
constexpr double kTitleLetter = 7.6, kDetailLetter = 6.2, kPadding = 28;
constexpr std::size_t kLongest = 56;    // Characters of a line; the rest is cut off.
constexpr std::size_t kMostDrawn = 40;  // Holders of one node; the others are counted.
constexpr std::size_t kColumns = 3;

struct Colours {
  const char* fill;
  const char* line;
};
Colours colours_of(Holders::Kind kind) {
  switch (kind) {
    case Holders::Kind::kBuffer:
      return {"#dce9f0", "#22678f"};
    case Holders::Kind::kTensor:
      return {"#eaf4e6", "#4a8a3c"};
    case Holders::Kind::kHolder:
      return {"#fbefd9", "#b57a1c"};
    case Holders::Kind::kHandles:
      return {"#f1f1f3", "#77777f"};
    case Holders::Kind::kScope:
      break;
  }
  return {"#f3e8f5", "#8a4a97"};
}

std::size_t count_letters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string shortened(const std::string& text) {
  if (count_letters(text) <= kLongest) return text;
  std::size_t end = 0;
  for (std::size_t letters = 0; letters < kLongest; ++end)
    if ((static_cast<unsigned char>(text[end]) & 0xc0) != 0x80) ++letters;
  return text.substr(0, end - 1) + "...";
}

// Columns from the buffer on the left to the handles on the right; each box is centred on its holders.
class Picture {
 public:
  explicit Picture(const std::vector<Holders::Node>& nodes) {
    std::vector<std::vector<std::size_t>> holders(nodes.size());
    for (std::size_t i = 1; i < nodes.size(); ++i) holders[nodes[i].held].push_back(i);
    place(nodes, holders, 0, 0, 0);
    double left = kMargin;
    for (std::size_t column = 0; column < kColumns; ++column) {
      lefts_[column] = left;
      if (widths_[column] > 0) left += widths_[column] + kColumnGap;
    }
    width_ = std::max(left - kColumnGap + kMargin, 420.0);
    height_ = kHeading + std::max(next_, kBoxHeight + kRowGap) - kRowGap + kMargin;
  }

  std::string draw(const std::string& heading) {
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" "
        "font-family=\"sans-serif\">\n<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"#ffffff\"/>\n",
        width_, height_);
    add("<defs><marker id=\"holds\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" "
        "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#8a949a\"/></marker></defs>\n");
    add("<text x=\"{}\" y=\"32\" font-size=\"17\" fill=\"#16323f\">{}</text>\n", kMargin,
        escape_xml(shortened(heading)));
    for (std::size_t i = 1; i < boxes_.size(); ++i) arrow(boxes_[i], boxes_[boxes_[i].held]);
    for (const Box& box : boxes_) draw_box(box);
    return out_ + "</svg>\n";
  }

 private:
  struct Box {
    Holders::Kind kind;
    std::string title, detail;
    std::size_t held, column;
    double top;
    bool asked;
  };

  template <typename... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
  }

  std::size_t place(const std::vector<Holders::Node>& nodes, const std::vector<std::vector<std::size_t>>& holders,
                    std::size_t node, std::size_t held, std::size_t column) {
    const Holders::Node& shown = nodes[node];
    const std::size_t box = put({shown.kind, shown.title, shown.detail, held, column, next_, shown.asked});
    const auto& list = holders[node];
    std::vector<std::size_t> placed;
    for (std::size_t i = 0; i < std::min(list.size(), kMostDrawn); ++i)
      placed.push_back(place(nodes, holders, list[i], box, column + 1));
    if (list.size() > kMostDrawn) {
      const std::string more = fmt::format("and {} more", list.size() - kMostDrawn);
      placed.push_back(put({Holders::Kind::kHandles, more, "", box, column + 1, next_, false}));
      next_ += kBoxHeight + kRowGap;
    }
    if (placed.empty())
      next_ += kBoxHeight + kRowGap;
    else
      boxes_[box].top = (boxes_[placed.front()].top + boxes_[placed.back()].top) / 2;
    return box;
  }

  std::size_t put(Box box) {
    const double letters = std::max(static_cast<double>(count_letters(shortened(box.title))) * kTitleLetter,
                                    static_cast<double>(count_letters(shortened(box.detail))) * kDetailLetter);
    widths_[box.column] = std::max(widths_[box.column], letters + kPadding);
    boxes_.push_back(std::move(box));
    return boxes_.size() - 1;
  }

  double y(const Box& box) const { return kHeading + box.top; }

  void arrow(const Box& holder, const Box& held) {
    const double from = lefts_[holder.column], to = lefts_[held.column] + widths_[held.column];
    const double start = y(holder) + kBoxHeight / 2, end = y(held) + kBoxHeight / 2, half = (from + to) / 2;
    add("<path d=\"M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" stroke=\"#8a949a\" "
        "stroke-width=\"1.4\" marker-end=\"url(#holds)\"/>\n",
        from, start, half, start, half, end, to + 2, end);
  }

  void draw_box(const Box& box) {
    const Colours colours = colours_of(box.kind);
    const double left = lefts_[box.column], top = y(box);
    const bool two_lines = !box.detail.empty();
    add("<g><title>{}{}{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" rx=\"7\" fill=\"{}\" "
        "stroke=\"{}\" stroke-width=\"{}\"/>",
        escape_xml(box.title), two_lines ? ": " : "", escape_xml(box.detail), left, top, widths_[box.column],
        kBoxHeight, colours.fill, colours.line, box.asked ? 3 : 1.2);
    add("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"13.5\" font-weight=\"bold\" fill=\"#16323f\">{}</text>", left + 12,
        top + (two_lines ? 19 : 27), escape_xml(shortened(box.title)));
    if (two_lines)
      add("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"11.5\" fill=\"#45555d\">{}</text>", left + 12, top + 35,
          escape_xml(shortened(box.detail)));
    add("</g>\n");
  }

  std::vector<Box> boxes_;
  std::array<double, kColumns> widths_{}, lefts_{};
  double next_ = 0, width_ = 0, height_ = 0;
  std::string out_;
};

}  // namespace

std::string Holders::to_svg() const { return Picture(nodes_).draw("who holds " + nodes_[asked()].title); }

}  // namespace plimsoll
