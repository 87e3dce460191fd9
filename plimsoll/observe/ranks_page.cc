#include "plimsoll/observe/ranks_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/text.h"
#include "plimsoll/observe/report_page.h"

namespace plimsoll::internal {
namespace {

// An iframe is filled when its row is chosen, so that browsers lay out only one page.
constexpr const char* kHead =
    R"(<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Plimsoll: {0} ranks</title><style>
body{{font:15px/1.4 system-ui,sans-serif;margin:0;display:flex;flex-direction:column;height:100vh}}
header{{padding:12px 16px}}h1{{font-size:18px;margin:0 0 8px}}table{{border-collapse:collapse}}
td,th{{padding:3px 12px 3px 0;text-align:right;font-variant-numeric:tabular-nums}}td:first-child,th:first-child{{text-align:left}}
button{{font:inherit;border:0;background:none;color:#0645ad;cursor:pointer;padding:0}}tr.now button{{font-weight:bold}}
iframe{{flex:1;border:0;border-top:1px solid #ccc;width:100%}}</style></head><body><header><h1>{0} ranks: the fullest took {1}</h1>
<table><tr><th>rank</th><th>peak</th><th>reserved</th><th>steps</th><th>refusals</th><th>findings</th></tr>
)";
constexpr const char* kTail = R"(</table></header><iframe title="rank"></iframe><script>
const rows=[...document.querySelectorAll('tr[data-rank]')],frame=document.querySelector('iframe');
function show(row){rows.forEach(r=>r.classList.toggle('now',r===row));frame.srcdoc=document.getElementById('rank'+row.dataset.rank).value}
rows.forEach(r=>r.querySelector('button').addEventListener('click',()=>show(r)));show(rows[0]);
</script></body></html>
)";

}  // namespace

RankTrace read_rank_trace(const std::string& path) {
  RankTrace rank;
  rank.name = std::filesystem::path(path).filename().string();
  rank.history = read_trace_history(path);
  rank.summary = summarize(rank.history);
  rank.findings = diagnose(rank.history, rank.summary);
  return rank;
}

std::string ranks_page(const std::vector<RankTrace>& ranks) {
  if (ranks.empty()) throw InvalidArgument("report: there are no traces; give one for each rank");
  std::uint64_t most = 0;
  for (const RankTrace& rank : ranks) most = std::max(most, rank.summary.peak_bytes);
  std::string page = fmt::format(fmt::runtime(kHead), ranks.size(), format_bytes(most));
  std::string pages;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const RankTrace& rank = ranks[i];
    page += fmt::format(
        "<tr data-rank=\"{0}\"><td><button>{0}: {1}</button></td><td>{2}</td><td>{3}</td><td>{4}</td><td>{5}</td>"
        "<td>{6}</td></tr>\n",
        i, escape_xml(rank.name), format_bytes(rank.summary.peak_bytes), format_bytes(rank.summary.peak_reserved_bytes),
        rank.summary.steps.size(), rank.summary.refusals, rank.findings.size());
    pages += fmt::format("<textarea id=\"rank{}\" hidden>\n{}</textarea>\n", i,
                         escape_document(report_page(rank.history, rank.summary, rank.findings, rank.name)));
  }
  std::string tail = kTail;
  tail.insert(tail.find("<script>"), pages);
  return page + tail;
}

}  // namespace plimsoll::internal
