#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/table.h"
#include "plimsoll/observe/compare_runs.h"
#include "plimsoll/observe/ranks_page.h"
#include "plimsoll/observe/report_json.h"
#include "plimsoll/observe/report_page.h"

namespace plimsoll::internal {
namespace {

struct ReportArguments {
  std::vector<std::string> traces;
  std::string out;
  bool compare = false, json = false, markdown = false;
};

void write_text(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

// A table of ranks, and the page of each.
void run_ranks(const ReportArguments& arguments) {
  std::vector<RankTrace> ranks;
  for (const std::string& trace : arguments.traces) ranks.push_back(read_rank_trace(trace));
  std::string out = arguments.out;
  if (out.empty() && !arguments.json)
    out = std::filesystem::path(arguments.traces[0]).replace_extension(".html").string();
  if (!out.empty()) {
    const std::string page = ranks_page(ranks);
    write_text(out, page);
    if (!arguments.json)
      std::printf("%s: %s of %zu ranks. Open it in a browser.\n", out.c_str(), format_bytes(page.size()).c_str(),
                  ranks.size());
  }
  if (arguments.json) {
    std::string text;
    for (const RankTrace& rank : ranks)
      text += (text.empty() ? "" : ",\n") + report_json(rank.history, rank.summary, rank.findings);
    std::printf("{\"ranks\": [%s]}\n", text.c_str());
  }
  std::fflush(stdout);
}

void run_one(const ReportArguments& arguments) {
  const std::string& trace = arguments.traces[0];
  const TraceHistory history = read_trace_history(trace);
  const RunSummary summary = summarize(history);
  const std::vector<Finding> findings = diagnose(history, summary);
  std::string out = arguments.out;
  if (out.empty() && !arguments.json) out = std::filesystem::path(trace).replace_extension(".html").string();
  if (!out.empty()) {
    const std::string page = report_page(history, summary, findings, std::filesystem::path(trace).filename().string());
    write_text(out, page);
    if (!arguments.json)
      std::printf("%s: %s of %zu events, peak %s, %zu findings. Open it in a browser.\n", out.c_str(),
                  format_bytes(page.size()).c_str(), static_cast<std::size_t>(history.events),
                  format_bytes(summary.peak_bytes).c_str(), findings.size());
  }
  if (arguments.json) std::printf("%s\n", report_json(history, summary, findings).c_str());
  std::fflush(stdout);
}

// The last part of two paths that differs: "before/run.trace" and "after/run.trace" are not both "run.trace".
std::pair<std::string, std::string> names_of(const std::string& a, const std::string& b) {
  std::pair names(std::filesystem::path(a).filename().string(), std::filesystem::path(b).filename().string());
  if (names.first == names.second) names = {a, b};
  return names;
}

std::string change_of(const ComparedFigure& figure) {
  const auto change = static_cast<std::int64_t>(figure.after) - static_cast<std::int64_t>(figure.before);
  return figure.is_bytes ? format_change(change) : fmt::format("{:+}", change);
}

void print_comparison(const RunComparison& runs, const std::string& before, const std::string& after, bool markdown) {
  const auto shown = [&](const Table& table) { return markdown ? table.markdown() : table.text(); };
  Table figures({markdown ? "figure" : "", before, after, "change"});
  for (const ComparedFigure& figure : compared_figures(runs)) {
    const auto value = [&](std::uint64_t number) {
      return figure.is_bytes ? format_bytes(number) : std::to_string(number);
    };
    figures.add({figure.name, value(figure.before), value(figure.after), change_of(figure)});
  }
  std::printf("%s%s", markdown ? fmt::format("### {} and {}\n\n", before, after).c_str() : "", shown(figures).c_str());
  Table groups({"at the peak", before, after, "change"});
  std::size_t count = 0;
  for (const ComparedGroup& group : runs.groups)
    if (group.change() != 0 && count++ < 12)
      groups.add({fmt::format("{} ({})", group.what, category_name(group.category)), format_bytes(group.before),
                  format_bytes(group.after), format_change(group.change())});
  if (count > 0)
    std::printf("\n%s", shown(groups).c_str());
  else
    std::printf("\nAt the peak the same operations hold the same bytes.\n");
  if (count > 12) std::printf("\nand %zu more; --json has all\n", count - 12);
  for (const Finding& finding : runs.fresh)
    std::printf("\n%sonly in %s: %s: %s\n", markdown ? "- " : "", after.c_str(), finding_level_name(finding.level),
                finding.title.c_str());
  for (const Finding& finding : runs.gone)
    std::printf("\n%sonly in %s: %s: %s\n", markdown ? "- " : "", before.c_str(), finding_level_name(finding.level),
                finding.title.c_str());
}

void run_both(const ReportArguments& arguments) {
  const auto [before, after] = names_of(arguments.traces[0], arguments.traces[1]);
  const TraceHistory first = read_trace_history(arguments.traces[0]);
  const RunComparison runs = compare_runs(first, read_trace_history(arguments.traces[1]));
  if (!arguments.out.empty()) write_text(arguments.out, comparison_page(runs, before, after));
  if (arguments.json)
    std::printf("%s\n", comparison_json(runs, before, after).c_str());
  else
    print_comparison(runs, before, after, arguments.markdown);
  std::fflush(stdout);
}

void run(const ReportArguments& arguments) {
  if (arguments.compare && arguments.traces.size() != 2)
    refuse_usage("--compare", "compares two traces: plimsoll report --compare A.trace B.trace");
  if (arguments.markdown && !arguments.compare) refuse_usage("--markdown", "works with --compare; see plimsoll doctor");
  if (arguments.compare) return run_both(arguments);
  arguments.traces.size() > 1 ? run_ranks(arguments) : run_one(arguments);
}

}  // namespace

void add_report_command(CommandLine& line) {
  auto arguments = std::make_shared<ReportArguments>();
  Command command(line, "report", "Turn a recorded trace into one offline HTML page; compare two");
  command
      .option("TRACE", arguments->traces,
              "Trace file written by a TraceRecorder; of a job, those of all its processes; two with --compare")
      .required()
      .value("");
  command
      .option("-o,--out", arguments->out,
              "The page to write; by default TRACE with .html (none with --json or --compare)")
      .value("FILE");
  command.flag("--compare", arguments->compare, "Show two runs side by side: peaks by category, what grew");
  command.flag("--json", arguments->json, "Print the page's numbers as one JSON document and nothing else");
  command.flag("--markdown", arguments->markdown, "Print the comparison as Markdown");
  command.notes(
      "Record a trace: pl::TraceRecorder recorder({.path = \"run.trace\"}); or try it: plimsoll demo\n"
      "What did a change cost?\n"
      "  plimsoll report --compare before.trace after.trace -o compare.html");
  command.run([arguments] { run(*arguments); });
}

}  // namespace plimsoll::internal
