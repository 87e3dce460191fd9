// Converts a TraceRecorder's trace to the lines of a replay: blocks as they were requested, not the values inside
// plans.
//
//   for_each_recorded_line("run.trace", [&](std::string_view line) { file.write(line); });   // "a,17,4096\n"
//   Trace trace = read_recorded_trace("run.trace");
//
// Blocks that were live when recording began are allocated first. Frees of blocks whose allocation was not recorded are
// dropped; blocks of an arena that ended are freed. Steps and phases become comments.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "plimsoll/base/function_ref.h"
#include "plimsoll/cli/replay/trace_csv.h"

namespace plimsoll::internal {

bool is_recorded_trace(const std::string& path);  // By its first bytes; false when it cannot be read.

struct RecordedLines {
  std::size_t allocations = 0, frees = 0;
};
// Throws what read_trace_file() throws.
RecordedLines for_each_recorded_line(const std::string& path, FunctionRef<void(std::string_view line)> f);

Trace read_recorded_trace(const std::string& path);

}  // namespace plimsoll::internal
