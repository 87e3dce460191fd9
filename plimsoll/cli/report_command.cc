#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/observe/ranks_page.h"
#include "plimsoll/observe/report_json.h"
#include "plimsoll/observe/report_page.h"

namespace plimsoll {
namespace {

struct Arguments {
  std::vector<std::string> traces;
  std::string out;
  bool json = false;
};

// A table of ranks, and the page of each.
void run_ranks(const Arguments& arguments) {
  std::vector<RankTrace> ranks;
  for (const std::string& trace : arguments.traces) ranks.push_back(read_rank_trace(trace));
  std::string out = arguments.out;
  if (out.empty() && !arguments.json)
    out = std::filesystem::path(arguments.traces[0]).replace_extension(".html").string();
  if (!out.empty()) {
    const std::string page = ranks_page(ranks);
    AtomicFile file(out);
    file.write(page);
    file.commit();
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

void run(const Arguments& arguments) {
  if (arguments.traces.size() > 1) return run_ranks(arguments);
  const std::string& trace = arguments.traces.at(0);
  const TraceHistory history = make_trace_history(read_trace_file(trace));
  const RunSummary summary = summarize(history);
  const std::vector<Finding> findings = diagnose(history, summary);
  std::string out = arguments.out;
  if (out.empty() && !arguments.json) out = std::filesystem::path(trace).replace_extension(".html").string();
  if (!out.empty()) {
    const std::string page = report_page(history, summary, findings, std::filesystem::path(trace).filename().string());
    AtomicFile file(out);
    file.write(page);
    file.commit();
    if (!arguments.json)
      std::printf("%s: %s of %zu events, peak %s, %zu findings. Open it in a browser.\n", out.c_str(),
                  format_bytes(page.size()).c_str(), static_cast<std::size_t>(history.events),
                  format_bytes(summary.peak_bytes).c_str(), findings.size());
  }
  if (arguments.json) std::printf("%s\n", report_json(history, summary, findings).c_str());
  std::fflush(stdout);
}

}  // namespace

void add_report_command(CommandLine& line) {
  auto arguments = std::make_shared<Arguments>();
  Command command(line, "report", "Turn a recorded trace into one offline HTML page");
  command
      .option("TRACE", arguments->traces, "Trace file written by a TraceRecorder; of a job, those of all its processes")
      .required()
      .value("");
  command.option("-o,--out", arguments->out, "The page to write; by default TRACE with .html (none with --json)")
      .value("FILE");
  command.flag("--json", arguments->json, "Print the page's numbers as one JSON document and nothing else");
  command.notes("Record a trace: pl::TraceRecorder recorder({.path = \"run.trace\"}); or try it: plimsoll demo");
  command.run([arguments] { run(*arguments); });
}

}  // namespace plimsoll
