// What the memory benchmarks share: clocks, the process's size, and the lines that say whether a target is met.
//
//   report_target(ratio <= 0.9, fmt::format("time without a limit: {:.2f} x tcmalloc (target 0.9)", ratio));
//
// `tools/bench_memory` collects these lines at its end.
#pragma once

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace plimsoll {

inline void report_target(bool met, const std::string& text) {
  std::printf("target: %s: %s\n", met ? "met" : "NOT MET", text.c_str());
  std::fflush(stdout);
}

inline double clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}
inline double cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }
inline double wall_ns() { return clock_ns(CLOCK_MONOTONIC); }

inline double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return values.empty() ? 0 : std::exp(sum / static_cast<double>(values.size()));
}

// Bytes of this process that are in memory, as /proc/self/smaps_rollup has them.
inline std::size_t resident_bytes() {
  std::size_t kib = 0;
  if (std::FILE* file = std::fopen("/proc/self/smaps_rollup", "r")) {
    char line[256];
    while (std::fgets(line, sizeof line, file) != nullptr)
      if (std::sscanf(line, "Rss: %zu kB", &kib) == 1) break;
    std::fclose(file);
  }
  return kib * 1024;
}

// Keeps the calling thread on one processor, when there are that many.
inline void run_on_processor(int number) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(number), &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace plimsoll
