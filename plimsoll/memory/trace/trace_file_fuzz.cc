// Reads any bytes as a trace file: succeeds or throws Corruption, and never uses more memory than the limits allow.
#include "plimsoll/base/error.h"
#include "plimsoll/memory/trace/trace_file.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  plimsoll::TraceLimits limits;
  limits.max_events = 100'000;
  limits.max_names = 10'000;
  limits.max_arenas = 1000;
  limits.verify_checksums = false;  // Otherwise nothing behind them would be reached.
  try {
    const plimsoll::TraceFile file = plimsoll::parse_trace(std::as_bytes(std::span(data, size)), limits);
    for (const plimsoll::TraceEvent& event : file.events)
      if (event.op >= file.names.size() || event.budget >= file.names.size()) __builtin_trap();
    for (const plimsoll::TracePlan& plan : file.plans) {
      for (const plimsoll::TracePlan::Value& value : plan.values)
        if (value.label.op >= file.names.size() || value.end > plan.steps) __builtin_trap();
      for (const plimsoll::TracePlan::Phase& phase : plan.phases)
        if (phase.name >= file.names.size() || phase.first > plan.steps) __builtin_trap();
    }
  } catch (const plimsoll::Corruption&) {
  }
  return 0;
}
