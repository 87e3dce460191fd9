#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/terminal.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/observe/report_json.h"

namespace plimsoll {
namespace {

struct Arguments {
  std::string trace;
  bool json = false;
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

void run(const Arguments& arguments) {
  const TraceHistory history = make_trace_history(read_trace_file(arguments.trace));
  const RunSummary summary = summarize(history);
  const std::vector<Finding> findings = diagnose(history, summary);
  if (arguments.json) {
    std::printf("%s\n", report_json(history, summary, findings).c_str());
    std::fflush(stdout);
    return;
  }
  std::printf("%s: %zu events, %zu steps, %.2f s, peak %s\n\n", arguments.trace.c_str(),
              static_cast<std::size_t>(history.events), summary.steps.size(),
              static_cast<double>(history.duration_ns) * 1e-9, format_bytes(summary.peak_bytes).c_str());
  bool trouble = false;
  for (const Finding& finding : findings) {
    print_finding(finding, shows_color(STDOUT_FILENO));
    trouble |= finding.level != FindingLevel::kNote;
  }
  if (!trouble) {
    if (summary.steps.size() >= 4)
      std::printf("Nothing grows from step to step and nothing was refused.\n");
    else
      std::printf(
          "Nothing was refused. Growth per step is unknown: the trace has %zu steps (mark them with trace_step(n)).\n",
          summary.steps.size());
  }
  std::fflush(stdout);
}

}  // namespace

void add_doctor_command(CommandLine& line) {
  auto arguments = std::make_shared<Arguments>();
  Command command(line, "doctor", "Explain what a recorded trace shows: refusals, growth, leaks, the peak");
  command.option("TRACE", arguments->trace, "Trace file written by a TraceRecorder").required().value("");
  command.flag("--json", arguments->json, "Print one JSON document and nothing else");
  command.notes("The same findings are at the top of the page that plimsoll report writes.");
  command.run([arguments] { run(*arguments); });
}

}  // namespace plimsoll
