// export_trace: writes a recorded trace as a file for existing viewers.
//
//   export_trace("run.trace", "run.pickle", {.format = "pytorch"});        // pytorch.org/memory_viz
//   export_trace("run.trace", "run.pftrace", {.format = "perfetto"});      // ui.perfetto.dev
//   export_trace("run.trace", "peak.pb.gz", {.format = "pprof"});          // go tool pprof, speedscope
//   export_trace("run.trace", "run.heaptrack", {.format = "heaptrack"});   // heaptrack_gui, heaptrack_print
//
// Sizes are block bytes, rounding included, as `plimsoll doctor` counts them. Planned blocks are written as the values
// inside them. A stack is the name scopes, outermost first, then the operation; category, budget, shape and name are
// labels. Blocks that were live when recording (or the first exported step) began are written as allocations. Thread
// safety: plain functions. Cost: memory is that of a TraceHistory; the file is written as it is produced.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "plimsoll/base/api.h"
#include "plimsoll/observe/trace_history.h"

namespace plimsoll {

struct ExportOptions {
  std::string format = "pytorch";  // pytorch, perfetto, pprof or heaptrack.
  // The moment whose live blocks pprof and Perfetto's flame graph show: "peak" (also when empty), "end",
  // "step:N" (as step N begins) or seconds since recording began ("1.5").
  std::string at = {};
  std::string steps = {};  // "A:B": only from the beginning of step A to the end of step B, as far as they exist.
  std::function<void(double fraction)> progress = {};
};

struct ExportResult {
  std::uint64_t peak_bytes = 0;   // In the exported part, all devices together.
  std::uint64_t allocations = 0;  // Written.
  std::uint64_t file_bytes = 0;
};

// A file whose name ends in .gz is compressed. Throws InvalidArgument for wrong options: what check_export_options()
// throws, and moments and steps that are not in the trace ("export: at ..." or "export: steps ...", listing those that
// are); what read_trace_file() throws; Error when the file cannot be written; the old file is then unchanged.
PLIMSOLL_API ExportResult export_trace(const std::filesystem::path& trace, const std::filesystem::path& out,
                                       const ExportOptions& options = {});
PLIMSOLL_API ExportResult export_trace(const TraceHistory& history, const std::filesystem::path& out,
                                       const ExportOptions& options = {});

// Throws InvalidArgument for what is wrong with any trace: an unknown format, `at` with a format that shows no moment,
// text that is not a moment or a range of steps.
PLIMSOLL_API void check_export_options(const ExportOptions& options);

}  // namespace plimsoll
