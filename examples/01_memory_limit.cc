// A limit that is a limit: two devices made of one processor's memory, growth and limits together, a refusal that
// explains.
#include <plimsoll/plimsoll.h>

#include <iostream>

#include "check.h"

namespace pl = plimsoll;
using namespace pl::literals;

int main() {
  const pl::PhysicalDevice cpu = pl::config::list_physical_devices("CPU").at(0);
  pl::config::set_logical_device_configuration(cpu, {{.memory_limit = 64_MiB}, {.memory_limit = 16_MiB}});
  pl::config::set_memory_growth(cpu, true);
  for (const pl::LogicalDevice& device : pl::config::list_logical_devices())
    std::cout << device.name << " may hold " << pl::format_bytes(device.memory_limit) << "\n";

  const pl::OwnedBlock table(10_MiB, {.device = "CPU:1", .tag = "lookup table"});
  try {
    const pl::OwnedBlock frames(8_MiB, {.device = "CPU:1", .tag = "frames"});
    check(false, "8 MiB more do not fit");
  } catch (const pl::OutOfMemory& error) {
    std::cout << error.what() << "\n";
    check(error.smallest_sufficient_limit() == 18_MiB, "it reports what would have been enough");
    check(error.holders().at(0).op == "lookup table", "it says who holds the memory");
  }
  const pl::OwnedBlock elsewhere(48_MiB, {.device = "CPU:0"});
  check(pl::memory_stats("CPU:0").bytes_in_use == 48_MiB, "one full device leaves the other alone");
  check(pl::memory_stats("CPU:1").peak_bytes_reserved <= 16_MiB, "the limit was never passed");

  try {
    pl::config::set_memory_growth(cpu, false);
    check(false, "settings are fixed once memory was taken");
  } catch (const pl::FailedPrecondition& error) {
    std::cout << error.what() << "\n";
  }
  return 0;
}
