// The output of `plimsoll replay`: a table, a picture of memory at its fullest, a comparison; or JSON.
#pragma once

#include <string>

#include "plimsoll/cli/replay/replay.h"

namespace plimsoll::internal {

// The same trace under TensorFlow's policy.
struct BfcComparison {
  std::size_t grown = 0;          // Bytes it reserves when it may grow without a limit.
  std::size_t smallest_pool = 0;  // Bytes of the smallest fixed pool that serves every request; 0 when not searched.
  std::size_t refusals = 0;       // Under the same limit; 0 without one.
};
BfcComparison compare_with_bfc(const Trace& trace, const ReplayOptions& options);

std::string replay_table(const Trace& trace, const ReplayOptions& options, const ReplayResult& result);
std::string comparison_text(const Trace& trace, const ReplayOptions& options, const BfcComparison& bfc);

// The document of --json, without a newline at its end.
std::string replay_json(const Trace& trace, const ReplayOptions& options, const ReplayResult& result);

// Whether standard output shows block characters: a terminal whose locale is UTF-8.
bool output_shows_unicode();

}  // namespace plimsoll::internal
