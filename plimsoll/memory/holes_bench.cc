// Time per operation with many free holes that are too small, each held apart by a small live block.
//
//   holes_bench run      (nothing without an argument: tools/bench_memory runs it)
//
// BFC walks over all holes of the request's bin; a good search does not notice them.
#include <fmt/format.h>

#include <memory>

#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/bench_testing.h"
#include "plimsoll/memory/bfc/bfc_resource.h"
#include "plimsoll/memory/pages/host_page_source.h"

namespace plimsoll {
namespace {

constexpr int kPairs = 4000;
constexpr int kRepeats = 5;

// CPU ns per operation of pairs of 400 KiB and more, with `holes` holes of 300 KiB. `step` sets the sizes apart, so
// that no cache by size can serve them.
template <class Memory>
double measure(Memory& memory, int holes, std::size_t step) {
  std::vector<Block> free, pins;
  for (int i = 0; i < holes; ++i) {
    free.push_back(memory.allocate(300_KiB));
    pins.push_back(memory.allocate(256));
  }
  for (const Block& block : free) memory.deallocate(block);
  double best = 1e300;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const double begin = cpu_ns();
    for (int i = 0; i < kPairs; ++i)
      memory.deallocate(memory.allocate(400_KiB + static_cast<std::size_t>(repeat * kPairs + i) * step));
    best = std::min(best, (cpu_ns() - begin) / (2.0 * kPairs));
  }
  for (const Block& block : pins) memory.deallocate(block);
  return best;
}

double arena_ns(int holes, std::size_t step) {
  HostPageSource pages;
  Arena arena(pages, {.limit = 16_GiB});
  return measure(arena, holes, step);
}

double bfc_ns(int holes) {
  BfcResource bfc({.limit = 16_GiB});
  return measure(bfc, holes, 0);
}

int run() {
  const std::vector<int> counts = {100, 1'000, 10'000};
  std::printf("\nPinned holes of 300 KiB, requests of 400 KiB: CPU ns per operation, best of %d\n\n", kRepeats);
  std::printf("| holes | arena, one size | arena, every size different | bfc |\n|--:|--:|--:|--:|\n");
  std::vector<double> same, different;
  for (const int holes : counts) {
    same.push_back(arena_ns(holes, 0));
    different.push_back(arena_ns(holes, 64));
    std::printf("| %d | %.1f | %.1f | %.1f |\n", holes, same.back(), different.back(), bfc_ns(holes));
  }
  std::printf("\n");
  const double growth = std::max(same.back() / same.front(), different.back() / different.front());
  report_target(growth <= 1.5,
                fmt::format("10,000 pinned holes: {:.2f} x the time of 100 (flat: at most 1.5)", growth));
  return 0;
}

}  // namespace
}  // namespace plimsoll

int main(int count, char**) {
  if (count > 1) return plimsoll::run();
  std::printf("holes_bench: run by tools/bench_memory; alone: holes_bench run\n");
}
