// The page that compares two runs: static HTML, so that notebooks and mail clients show it too.
#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/text.h"
#include "plimsoll/observe/compare_runs.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kShownGroups = 40;
// The colors of the report's categories (web/src/colors.js).
constexpr const char* kColors[kCategories] = {"#2f5fb3", "#e08a3c", "#7a5bb5", "#2f9c95",
                                              "#d9b23c", "#8b98a5", "#c9567f", "#9a7b62"};

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--text:#1c2430;--soft:#5a6472;--line:#d9dee5;--back:#fff;--more:#b3372b;--less:#1f7a45}
@media(prefers-color-scheme:dark){:root{--text:#e6e9ee;--soft:#a3adba;--line:#38414d;--back:#151a21;--more:#ff8a7a;--less:#6fd39a}}
body{font:15px/1.45 system-ui,sans-serif;color:var(--text);background:var(--back);max-width:70rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin:0 0 .3rem}h2{font-size:1.1rem;margin:2rem 0 .6rem}p{color:var(--soft);margin:.2rem 0}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid var(--line)}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.more{color:var(--more)}.less{color:var(--less)}
.bar{display:flex;height:1.5rem;border-radius:3px;overflow:hidden;background:var(--line);margin:.2rem 0 .8rem}.bar span{height:100%}
.key{display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;list-style:none;padding:0;margin:.3rem 0}.key i{display:inline-block;width:.8rem;height:.8rem;border-radius:2px;margin-right:.4rem;vertical-align:-.05rem}
h1,th,li{overflow-wrap:anywhere}@media(max-width:40rem){body{font-size:13px;margin:1rem auto}th,td{padding:.3rem .25rem}td.n,th.n{white-space:normal}}
)";

std::string change_cell(const ComparedFigure& figure) {
  const auto change = static_cast<std::int64_t>(figure.after) - static_cast<std::int64_t>(figure.before);
  std::string text = figure.is_bytes ? format_change(change) : fmt::format("{:+}", change);
  if (change == 0) text = "–";
  if (figure.before > 0 && change != 0 && figure.is_bytes)
    text += fmt::format(" ({:+.1f} %)", 100.0 * static_cast<double>(change) / static_cast<double>(figure.before));
  return fmt::format("<td class=\"n {}\">{}</td>", change > 0 ? "more" : change < 0 ? "less" : "", text);
}

std::string row(const std::string& name, const ComparedFigure& figure) {
  const auto shown = [&](std::uint64_t value) { return figure.is_bytes ? format_bytes(value) : std::to_string(value); };
  return fmt::format("<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td>{}</tr>\n",
                     escape_xml(name), shown(figure.before), shown(figure.after), change_cell(figure));
}

std::string bar(const RunSummary& run, std::uint64_t most, const std::string& name) {
  std::string text =
      fmt::format("<p><strong>{}</strong>: {} at the peak</p>\n<div class=\"bar\" role=\"img\" aria-label=\"{}\">",
                  escape_xml(name), format_bytes(run.peak_bytes), format_bytes(run.peak_bytes));
  for (std::size_t i = 0; i < kCategories; ++i)
    if (run.peak_by_category[i] > 0)
      text += fmt::format("<span style=\"width:{:.3f}%;background:{}\" title=\"{} {}\"></span>",
                          100.0 * static_cast<double>(run.peak_by_category[i]) / static_cast<double>(most), kColors[i],
                          category_name(static_cast<Category>(i)), format_bytes(run.peak_by_category[i]));
  return text + "</div>\n";
}

std::string key(const RunComparison& runs) {
  std::string text = "<ul class=\"key\">";
  for (std::size_t i = 0; i < kCategories; ++i)
    if (runs.before.summary.peak_by_category[i] > 0 || runs.after.summary.peak_by_category[i] > 0)
      text += fmt::format("<li><i style=\"background:{}\"></i>{}</li>", kColors[i],
                          category_name(static_cast<Category>(i)));
  return text + "</ul>\n";
}

std::string findings(const char* title, const std::vector<Finding>& all) {
  if (all.empty()) return "";
  std::string text = fmt::format("<h2>{}</h2>\n<ul>", title);
  for (const Finding& finding : all)
    text += fmt::format("<li><strong>{}</strong>: {}. {}</li>", finding_level_name(finding.level),
                        escape_xml(finding.title), escape_xml(finding.evidence));
  return text + "</ul>\n";
}

}  // namespace

std::string comparison_page(const RunComparison& runs, const std::string& before_name, const std::string& after_name) {
  const std::string a = escape_xml(before_name), b = escape_xml(after_name);
  const std::uint64_t most =
      std::max<std::uint64_t>({runs.before.summary.peak_bytes, runs.after.summary.peak_bytes, 1});
  const std::string head = fmt::format(
      "<thead><tr><td></td><th scope=\"col\" class=\"n\">{}</th><th scope=\"col\" class=\"n\">{}</th><th "
      "scope=\"col\" class=\"n\">Change</th></tr></thead>",
      a, b);
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"><title>{0} and {1}</title><link rel=\"icon\" "
      "href=\"data:,\"><style>{2}</style></head><body><main>\n<h1>{0} and {1}</h1>\n<p>Memory of two runs: {3} and {4} "
      "events, "
      "{5:.2f} and {6:.2f} s. Sizes are block sizes, including rounding.</p>\n",
      a, b, kStyle, runs.before.events, runs.after.events, static_cast<double>(runs.before.duration_ns) * 1e-9,
      static_cast<double>(runs.after.duration_ns) * 1e-9);
  page += "<h2>Peaks</h2>\n" + bar(runs.before.summary, most, before_name) + bar(runs.after.summary, most, after_name) +
          key(runs);
  page += "<h2>Figures</h2>\n<table>" + head + "<tbody>\n";
  for (const ComparedFigure& figure : compared_figures(runs)) page += row(figure.name, figure);
  page += "</tbody></table>\n" + findings("Only in the second run", runs.fresh) +
          findings("Only in the first run", runs.gone);
  page += "<h2>What changed at the peak</h2>\n<table>" + head + "<tbody>\n";
  std::size_t shown = 0;
  for (const ComparedGroup& group : runs.groups) {
    if (group.change() == 0 || shown++ == kShownGroups) break;
    page += row(fmt::format("{} ({})", group.what, category_name(group.category)),
                {.name = group.what, .before = group.before, .after = group.after});
  }
  if (shown == 0) page += "<tr><td colspan=\"4\">Nothing: the same operations hold the same bytes.</td></tr>\n";
  return page + "</tbody></table>\n</main></body></html>\n";
}

}  // namespace plimsoll::internal
