// In a container: without its own limit a program may use what its control group leaves, so that it gets an error it
// can catch instead of being killed. Try it in a small one:
//   docker run --memory=256m ... 27_container        (or podman)
//   systemd-run --user --scope -p MemoryMax=256M 27_container
#include <plimsoll/plimsoll.h>

#include <cstring>
#include <iostream>
#include <vector>

#include "check.h"

namespace pl = plimsoll;
using namespace pl::literals;

int main() {
  const pl::SystemMemory system = pl::read_system_memory();
  for (const pl::MemoryGroup& group : system.groups)
    std::cout << "group " << group.name << " may hold " << pl::format_bytes(group.limit) << " and has "
              << pl::format_bytes(group.left()) << " left\n";
  const pl::DefaultLimit limit = pl::default_memory_limit(system);
  std::cout << "the default limit is " << pl::format_bytes(limit.bytes) << ", from " << limit.from << "\n";
  check(limit.bytes <= system.capacity(), "the default limit is within every limit of the system");

  // Asks for more than there is. Blocks that are never written cost nothing: they are filled only in a small group.
  const bool small = limit.bytes <= 1_GiB;
  const std::size_t bytes = pl::memory_stats().bytes_limit / 64 / 4096 * 4096;
  std::vector<pl::OwnedBlock> blocks;
  try {
    for (;;) {
      blocks.emplace_back(bytes, pl::AllocateOptions{.tag = "frames"});
      if (small) std::memset(blocks.back().data(), 1, bytes);
    }
  } catch (const pl::OutOfMemory& error) {
    std::cout << error.what() << "\n";
    check(error.holders().at(0).op == "frames", "it says who holds the memory");
  }
  check(blocks.size() >= 64, "all of the limit could be used");
  blocks.clear();
  std::cout << "still running; gave back " << pl::format_bytes(pl::trim()) << "\n";
  return 0;
}
