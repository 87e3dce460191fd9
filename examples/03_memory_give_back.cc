// Memory that is no longer needed is returned to the operating system, and the numbers agree with the system's own.
#include <plimsoll/plimsoll.h>

#include <cstring>
#include <iostream>
#include <vector>

#include "check.h"

namespace pl = plimsoll;
using namespace pl::literals;

// Loads a "model" of 200 MB and drops it. Returns what trim() released.
std::size_t load_and_drop() {
  std::vector<pl::OwnedBlock> layers;
  for (int i = 0; i < 20; ++i) {
    layers.emplace_back(10'000'000, pl::AllocateOptions{.tag = "layer"});
    std::memset(layers.back().data(), 1, layers.back().size());
  }
  layers.clear();
  return pl::trim();
}

int main() {
  load_and_drop();
  const std::size_t before = pl::resident_bytes();
  for (int cycle = 0; cycle < 3; ++cycle) {
    const std::size_t given_back = load_and_drop();
    std::cout << "given back " << pl::format_bytes(given_back) << ", resident "
              << pl::format_bytes(pl::resident_bytes()) << "\n";
    check(given_back >= 190_MiB, "trim returns the bytes");
  }
  check(pl::resident_bytes() < before + 1_MiB, "resident memory is as before");
  check(pl::memory_stats("CPU:0").bytes_reserved == 0, "no page is held");
  check(pl::config::get_memory_info("CPU:0").peak >= 200'000'000, "the peak is remembered");
  pl::reset_memory_stats("CPU:0");
  check(pl::config::get_memory_info("CPU:0").peak == 0, "until it is reset");
  return 0;
}
