#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/json.h"
#include "plimsoll/base/terminal.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/failure_checks.h"
#include "plimsoll/cli/print_document.h"
#include "plimsoll/cli/table.h"
#include "plimsoll/observe/report_json.h"

namespace plimsoll::internal {
namespace {

struct DoctorArguments {
  std::string trace;
  std::vector<std::string> fail_on;
  bool json = false, markdown = false;
};

// `text`, in lines of at most 100 characters that begin with `indent` spaces; the first one begins with `first`.
std::string wrapped(const std::string& text, const std::string& first, std::size_t indent) {
  constexpr std::size_t kWidth = 100;
  std::string result = first + std::string(indent - std::min(indent, first.size()), ' ');
  std::size_t column = indent, at = 0;
  while (at < text.size()) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::size_t length = space - at;
    if (column > indent && column + 1 + length > kWidth) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += ' ';
      ++column;
    }
    result += text.substr(at, length);
    column += length;
    at = space + 1;
  }
  return result + '\n';
}

void print_finding(const Finding& finding, bool color) {
  constexpr const char* kColors[] = {"\033[1;31m", "\033[1;33m", "\033[36m"};
  const std::string level = finding_level_name(finding.level);
  std::string title = wrapped(finding.title, level + ":", 9);
  if (color)
    title = kColors[static_cast<std::size_t>(finding.level)] + title.substr(0, level.size() + 1) + "\033[0m" +
            title.substr(level.size() + 1);
  std::printf("%s", title.c_str());
  if (!finding.evidence.empty()) std::printf("%s", wrapped(finding.evidence, "", 9).c_str());
  if (!finding.remedy.empty()) std::printf("%s", wrapped(finding.remedy, "      ->", 9).c_str());
  std::printf("\n");
}

void print_findings(const RunSummary& summary, const std::vector<Finding>& findings) {
  bool trouble = false;
  for (const Finding& finding : findings) {
    print_finding(finding, shows_color(STDOUT_FILENO));
    trouble |= finding.level != FindingLevel::kNote;
  }
  if (trouble) return;
  if (summary.steps.size() >= 4)
    std::printf("Nothing grows from step to step and nothing was refused.\n");
  else
    std::printf(
        "Nothing was refused. Growth per step is unknown: the trace has %zu steps (mark them with trace_step(n)).\n",
        summary.steps.size());
}

void print_markdown(const std::string& title, const std::vector<Finding>& findings,
                    const std::vector<std::string>& failed) {
  std::printf("### %s\n\n", title.c_str());
  for (const std::string& failure : failed) std::printf("- **failed**: %s\n", failure.c_str());
  if (!failed.empty()) std::printf("\n");
  Table table({"level", "", "", "what to do"});
  for (const Finding& finding : findings)
    table.add({finding_level_name(finding.level), finding.title, finding.evidence, finding.remedy});
  std::printf("%s", findings.empty() ? "No findings.\n" : table.markdown().c_str());
}

void run(const DoctorArguments& arguments) {
  const std::vector<FailureCheck> checks = parse_failure_checks(arguments.fail_on);
  const TraceHistory history = read_trace_history(arguments.trace);
  const RunSummary summary = summarize(history);
  const std::vector<Finding> findings = diagnose(history, summary);
  const std::vector<std::string> failed = failures_of(checks, summary, findings);
  const std::string title =
      fmt::format("{}: {} events, {} steps, {:.2f} s, peak {}", arguments.trace, history.events, summary.steps.size(),
                  static_cast<double>(history.duration_ns) * 1e-9, format_bytes(summary.peak_bytes));
  if (arguments.json) {
    nlohmann::ordered_json document = parse_ordered_json(report_json(history, summary, findings));
    if (!checks.empty()) document["failed"] = failed;
    print_document(document);
  } else if (arguments.markdown) {
    print_markdown(title, findings, failed);
  } else {
    std::printf("%s\n\n", title.c_str());
    print_findings(summary, findings);
    for (const std::string& failure : failed) std::printf("failed: %s\n", failure.c_str());
  }
  std::fflush(stdout);
  if (!failed.empty()) throw Exit{1};
}

}  // namespace

void add_doctor_command(CommandLine& line) {
  auto arguments = std::make_shared<DoctorArguments>();
  Command command(line, "doctor", "Explain what a recorded trace shows: refusals, growth, leaks, the peak");
  command.option("TRACE", arguments->trace, "Trace file written by a TraceRecorder").required().value("");
  command.flag("--json", arguments->json, "Print one JSON document and nothing else");
  command.flag("--markdown", arguments->markdown, "Print Markdown, for a comment or a summary of a build");
  command
      .option(
          "--fail-on", arguments->fail_on,
          "End with exit code 1 when found: growth, leak, refusal, peak:SIZE (a peak above SIZE); separated by commas")
      .delimiter(',')
      .check(failure_check())
      .value("WHAT");
  command.notes(
      "The same findings are at the top of the page that plimsoll report writes.\n"
      "In a build:\n"
      "  plimsoll doctor run.trace --fail-on growth,leak,refusal,peak:64MiB --markdown");
  command.run([arguments] { run(*arguments); });
}

}  // namespace plimsoll::internal
