#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/share_progress.h"
#include "plimsoll/observe/export_trace.h"

namespace plimsoll::internal {
namespace {

struct ExportArguments {
  std::string trace, out;
  ExportOptions options;
};

const char* viewer_of(const std::string& format) {
  if (format == "pytorch") return "open it at pytorch.org/memory_viz";
  if (format == "perfetto") return "open it at ui.perfetto.dev";
  if (format == "pprof") return "view it with: go tool pprof -http=: FILE, or speedscope";
  return "view it with: heaptrack_gui FILE, or heaptrack_print FILE";
}

// A wrong option is wrong usage, even when only the trace shows it.
ExportResult export_or_refuse(const ExportArguments& arguments) try {
  return export_trace(arguments.trace, arguments.out, arguments.options);
} catch (const InvalidArgument& error) {
  const std::string_view what = error.what();
  for (const std::string_view option : {"at", "steps"}) {
    const std::string begin = fmt::format("export: {} ", option);
    if (what.starts_with(begin)) refuse_usage(fmt::format("--{}", option), std::string(what.substr(begin.size())));
  }
  throw;
}

void run(ExportArguments& arguments) {
  ShareProgress progress("export");
  arguments.options.progress = [&](double share) { progress.show(share); };
  const ExportResult result = export_or_refuse(arguments);
  // Only the file itself is written to a pipe.
  std::FILE* const told = std::filesystem::is_regular_file(arguments.out) ? stdout : stderr;
  std::fprintf(told, "%s: %s, %zu allocations, peak %s (%zu bytes); %s\n", arguments.out.c_str(),
               format_bytes(result.file_bytes).c_str(), static_cast<std::size_t>(result.allocations),
               format_bytes(result.peak_bytes).c_str(), static_cast<std::size_t>(result.peak_bytes),
               viewer_of(arguments.options.format));
  std::fflush(told);
}

}  // namespace

void add_export_command(CommandLine& line) {
  auto arguments = std::make_shared<ExportArguments>();
  ExportOptions& options = arguments->options;
  options.format.clear();
  Command command(line, "export", "Write a recorded trace for PyTorch's viewer, Perfetto, pprof or heaptrack");
  command.option("TRACE", arguments->trace, "Trace file written by a TraceRecorder").required().value("");
  command.option("--format", options.format, "The viewer's format")
      .required()
      .one_of({"pytorch", "perfetto", "pprof", "heaptrack"});
  command.option("-o,--out", arguments->out, "The file to write; compressed when its name ends in .gz")
      .required()
      .value("FILE");
  command
      .option("--at", options.at,
              "Moment that pprof and Perfetto's flame graph show: peak (the default), end, step:N (as it begins) or "
              "seconds")
      .value("WHEN");
  command.option("--steps", options.steps, "Only these steps, both included, as far as the trace has them")
      .value("A:B");
  command.notes(
      "What grew between step 10 and the peak?\n"
      "  plimsoll demo --out demo\n"
      "  plimsoll export demo/run.trace --format pprof --at step:10 -o early.pb.gz\n"
      "  plimsoll export demo/run.trace --format pprof -o peak.pb.gz\n"
      "  go tool pprof -top -diff_base=early.pb.gz peak.pb.gz");
  command.run([arguments] { run(*arguments); });
}

}  // namespace plimsoll::internal
