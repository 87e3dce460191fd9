// Any trace file that can be read yields a history, a summary and findings.
#include "plimsoll/base/error.h"
#include "plimsoll/observe/findings.h"
#include "plimsoll/observe/run_summary.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  plimsoll::TraceLimits limits;
  limits.max_events = 10'000;
  limits.max_names = 10'000;
  limits.max_arenas = 1000;
  limits.verify_checksums = false;  // Otherwise nothing behind them would be reached.
  try {
    const plimsoll::TraceFile file = plimsoll::parse_trace(std::as_bytes(std::span(data, size)), limits);
    const plimsoll::TraceHistory history = plimsoll::make_trace_history(file, 10'000);
    for (const plimsoll::TracedMark& mark : history.marks)
      if (mark.moment > history.times.size()) __builtin_trap();
    plimsoll::diagnose(history, plimsoll::summarize(history));
  } catch (const plimsoll::Corruption&) {
  }
  return 0;
}
