#include "plimsoll/base/clock.h"

#include <ctime>

namespace plimsoll {
namespace {

std::int64_t read(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

}  // namespace

std::int64_t monotonic_ns() noexcept { return read(CLOCK_MONOTONIC); }
std::int64_t thread_cpu_ns() noexcept { return read(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace plimsoll
