// Traces: what the memory did, written to a file while the program runs and read back.
#include <plimsoll/plimsoll.h>

#include <cstdio>
#include <iostream>

#include "check.h"

namespace pl = plimsoll;
using namespace pl::literals;

int main() {
  const char* path = "06_memory_trace.trace";
  pl::TraceRecorder recorder({.path = path});
  for (std::uint64_t step = 0; step < 3; ++step) {
    pl::trace_step(step);
    const pl::OwnedBlock activations(1_MiB, {.tag = "activations"});
  }
  recorder.finish();

  const pl::TraceFile trace = pl::read_trace_file(path);
  std::remove(path);
  std::cout << trace.events.size() << " events\n";
  check(trace.events.size() >= 9, "three steps, three allocations, three frees");
  return 0;
}
