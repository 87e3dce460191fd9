// The exporters: each writes an ExportedRun in one viewer's format. To add one: write export_<format>.cc and give it a
// row in export_trace.cc.
#pragma once

#include <cstdint>
#include <string>

#include "plimsoll/observe/internal/export_file.h"
#include "plimsoll/observe/internal/exported_run.h"

namespace plimsoll::internal {

// `end`: the moment after the one whose live blocks are shown, for formats that show one. They return how many
// allocations they wrote.
std::uint64_t export_pytorch(const ExportedRun& run, std::uint32_t end, ExportFile& file);
std::uint64_t export_perfetto(const ExportedRun& run, std::uint32_t end, ExportFile& file);
std::uint64_t export_pprof(const ExportedRun& run, std::uint32_t end, ExportFile& file);
std::uint64_t export_heaptrack(const ExportedRun& run, std::uint32_t end, ExportFile& file);

// Allocated and freed up to a moment, for each label of the history.
struct LabelTotals {
  std::uint64_t births = 0, born_bytes = 0, deaths = 0, dead_bytes = 0;
};
std::vector<LabelTotals> totals_by_label(const ExportedRun& run, std::uint32_t end);

}  // namespace plimsoll::internal
