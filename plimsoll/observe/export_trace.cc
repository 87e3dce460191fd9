#include "plimsoll/observe/export_trace.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/observe/internal/exporters.h"

namespace plimsoll {
namespace {

constexpr std::size_t kMostPlanned = 1'500'000;  // Moments inside plans; beyond that only every n-th run is expanded.

struct Exporter {
  const char* name;
  std::uint64_t (*write)(const ExportedRun& run, std::uint32_t end, ExportFile& file);
  bool shows_a_moment;
};

constexpr Exporter kExporters[] = {
    {"pytorch", export_pytorch, false},
    {"perfetto", export_perfetto, true},
    {"pprof", export_pprof, true},
    {"heaptrack", export_heaptrack, false},
};

const Exporter& exporter_of(const std::string& format) {
  std::string all;
  for (const Exporter& exporter : kExporters) {
    if (format == exporter.name) return exporter;
    all += fmt::format("{}{}", all.empty() ? "" : ", ", exporter.name);
  }
  throw InvalidArgument(fmt::format("export: unknown format \"{}\"; use one of {}", format, all));
}

}  // namespace

std::vector<LabelTotals> internal::totals_by_label(const ExportedRun& run, std::uint32_t end) {
  std::vector<LabelTotals> totals(run.history().labels.size());
  run.for_each_before(end, [&](const BlockEvent& event) {
    LabelTotals& label = totals[event.block->label];
    if (event.is_birth) {
      ++label.births;
      label.born_bytes += event.block->size;
    } else {
      ++label.deaths;
      label.dead_bytes += event.block->size;
    }
  });
  return totals;
}

void check_export_options(const ExportOptions& options) {
  if (!options.at.empty() && !exporter_of(options.format).shows_a_moment)
    throw InvalidArgument(
        fmt::format("export: at \"{}\" chooses a moment, and the format {} shows the whole run; leave it out, or use "
                    "pprof or perfetto",
                    options.at, options.format));
  exporter_of(options.format);
  if (!options.steps.empty()) parse_exported_steps(options.steps);
  parse_exported_moment(options.at);
}

ExportResult export_trace(const TraceHistory& history, const std::filesystem::path& out, const ExportOptions& options) {
  check_export_options(options);
  const Exporter& exporter = exporter_of(options.format);
  ExportedRun run(history, options.steps);
  const std::uint32_t end = run.end_at(options.at);
  run.on_progress(options.progress);
  ExportFile file(out);
  ExportResult result{.peak_bytes = run.peak_bytes(), .allocations = exporter.write(run, end, file)};
  file.commit();
  result.file_bytes = file.bytes_written();
  return result;
}

ExportResult export_trace(const std::filesystem::path& trace, const std::filesystem::path& out,
                          const ExportOptions& options) {
  check_export_options(options);  // Before a large file is read.
  return export_trace(read_trace_history(trace, kMostPlanned), out, options);
}

}  // namespace plimsoll
