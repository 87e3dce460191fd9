// Standard containers in a device's memory: limited, counted, charged to budgets, refused with an error that explains.
#include <plimsoll/plimsoll.h>

#include <iostream>
#include <memory_resource>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include "check.h"

namespace pl = plimsoll;
using namespace pl::literals;

int main() {
  pl::config::set_logical_device_configuration(pl::config::list_physical_devices("CPU").at(0),
                                               {{.memory_limit = 8_MiB}});
  std::pmr::memory_resource& memory = pl::memory_resource("CPU:0");
  {
    std::pmr::vector<float> values(1'000'000, &memory);
    check(pl::memory_stats().bytes_in_use == 4'000'000, "every byte is counted");
    try {
      values.reserve(3'000'000);
      check(false, "12 MB do not fit into 8 MiB");
    } catch (const std::bad_alloc& error) {  // A pl::PmrOutOfMemory, whose refusal() has the numbers.
      std::cout << error.what() << "\n";
    }
    check(values.size() == 1'000'000, "the vector is unchanged");
  }
  {
    std::pmr::unsynchronized_pool_resource nodes(&memory);  // Many small nodes share blocks.
    std::pmr::unordered_map<int, std::pmr::string> names(&nodes);
    for (int i = 0; i < 10'000; ++i) names.emplace(i, "number " + std::to_string(i) + ", written out at some length");
    std::cout << names.size() << " names in " << pl::format_bytes(pl::memory_stats().bytes_in_use) << " and "
              << pl::format_bytes(pl::memory_overhead()) << " of records\n";
  }
  int foreign = 0;
  try {
    memory.deallocate(&foreign, sizeof(foreign));
    check(false, "a pointer that is not ours is refused");
  } catch (const pl::InvalidArgument& error) {
    std::cout << error.what() << "\n";
  }
  check(pl::memory_stats().bytes_in_use == 0, "nothing is left");
  return 0;
}
