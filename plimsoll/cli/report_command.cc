#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/observe/report_json.h"
#include "plimsoll/observe/report_page.h"

namespace plimsoll {
namespace {

struct Arguments {
  std::string trace, out;
  bool json = false;
};

void run(const Arguments& arguments) {
  const TraceHistory history = make_trace_history(read_trace_file(arguments.trace));
  const RunSummary summary = summarize(history);
  const std::vector<Finding> findings = diagnose(history, summary);
  std::string out = arguments.out;
  if (out.empty() && !arguments.json) out = std::filesystem::path(arguments.trace).replace_extension(".html").string();
  if (!out.empty()) {
    const std::string page =
        report_page(history, summary, findings, std::filesystem::path(arguments.trace).filename().string());
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
  command.option("TRACE", arguments->trace, "Trace file written by a TraceRecorder").required().value("");
  command.option("-o,--out", arguments->out, "The page to write; by default TRACE with .html (none with --json)")
      .value("FILE");
  command.flag("--json", arguments->json, "Print the page's numbers as one JSON document and nothing else");
  command.notes("Record a trace: pl::TraceRecorder recorder({.path = \"run.trace\"}); or try it: plimsoll demo");
  command.run([arguments] { run(*arguments); });
}

}  // namespace plimsoll
