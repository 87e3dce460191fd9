#include <cstdio>
#include <memory>
#include <string>

#include "plimsoll/base/atomic_file.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/option_checks.h"
#include "plimsoll/cli/replay/recorded_trace.h"
#include "plimsoll/cli/replay/replay.h"
#include "plimsoll/cli/replay/replay_progress.h"
#include "plimsoll/cli/replay/replay_report.h"

namespace plimsoll::internal {
namespace {

struct ReplayArguments {
  std::string trace, limit, to_csv, policy = "arena";
  bool growth = false, touch = false, json = false;
  int repeat = 5;
};

void print_report(const Trace& trace, const ReplayOptions& options, const ReplayResult& result) {
  std::printf("%s\n", replay_table(trace, options, result).c_str());
  const std::string strip = occupancy_strip(result.at_peak, {.unicode = output_shows_unicode()});
  if (!strip.empty()) std::printf("Memory when most bytes were live, low addresses first:\n%s\n", strip.c_str());
  if (options.policy == ReplayPolicy::kArena)
    std::printf("%s", comparison_text(trace, options, compare_with_bfc(trace, options)).c_str());
}

void write_csv(const ReplayArguments& arguments) {
  if (!is_recorded_trace(arguments.trace))
    refuse_usage("--to-csv", "converts a trace of a TraceRecorder; \"" + arguments.trace + "\" is none");
  AtomicFile file(arguments.to_csv);
  const RecordedLines lines = for_each_recorded_line(arguments.trace, [&](std::string_view line) { file.write(line); });
  file.commit();
  std::printf("%s: %zu allocations, %zu frees of %s; replay it: plimsoll replay %s\n", arguments.to_csv.c_str(),
              lines.allocations, lines.frees, arguments.trace.c_str(), arguments.to_csv.c_str());
  std::fflush(stdout);
}

void run(const ReplayArguments& arguments) {
  if (!arguments.to_csv.empty()) return write_csv(arguments);
  const Trace trace = read_trace(arguments.trace);
  ReplayProgress progress;
  const ReplayOptions options{
      .policy = arguments.policy == "bfc" ? ReplayPolicy::kBfc : ReplayPolicy::kArena,
      .limit = arguments.limit.empty() ? 0 : parse_bytes(arguments.limit),
      .growth = arguments.growth,
      .repeat = arguments.repeat,
      .touch = arguments.touch,
      .progress = [&progress](int pass, int of) { progress.show(pass, of); },
  };
  const ReplayResult result = replay(trace, options);
  if (arguments.json) {
    std::printf("%s\n", replay_json(trace, options, result).c_str());
  } else {
    print_report(trace, options, result);
  }
  std::fflush(stdout);
  if (result.refusals > 0) throw Exit{3};
}

}  // namespace

void add_replay_command(CommandLine& line) {
  auto arguments = std::make_shared<ReplayArguments>();
  Command command(line, "replay", "Replay recorded allocations: what would they cost in memory and time?");
  command
      .option(
          "trace", arguments->trace,
          "A trace of a TraceRecorder, or lines a,<id>,<bytes> (allocate), f,<id> (free), # comment; may be gzipped")
      .required()
      .value("TRACE");
  command.option("--limit", arguments->limit, "Most bytes that may be reserved, e.g. 24MiB; no limit by default")
      .check(size_check(4096))
      .value("SIZE");
  command.flag("--growth", arguments->growth, "Take memory little by little instead of one pool of the limit's size");
  command.option("--policy", arguments->policy, "arena: Plimsoll's own; bfc: a model of TensorFlow's")
      .one_of({"arena", "bfc"})
      .show_default();
  command.option("--repeat", arguments->repeat, "Timed passes; the best and the mean are shown")
      .check(between(1, 1'000'000))
      .show_default();
  command.flag("--touch", arguments->touch,
               "Write one byte in every 4 KiB page of every block, so that pages are real");
  command.flag("--json", arguments->json, "Print one JSON document and nothing else");
  command.option("--to-csv", arguments->to_csv, "Write the recorded trace as such lines, and do not replay it")
      .value("FILE");
  command.notes(
      "peak live      most bytes asked for and not yet freed: no policy can need less\n"
      "peak reserved  most bytes taken from the system: what the policy really needs\n"
      "refusals       requests that did not fit; the replay continues without them and ends with exit code 3\n\n"
      "Blocks of a recorded trace are replayed as they were asked for; a plan's block is one block.\n\n"
      "Will my training step fit 300 MiB, and would it under TensorFlow?\n"
      "  plimsoll replay resnet18_train.csv.gz --limit 300MiB\n"
      "  plimsoll replay resnet18_train.csv.gz --limit 300MiB --policy bfc");
  command.run([arguments] { run(*arguments); });
}

}  // namespace plimsoll::internal
