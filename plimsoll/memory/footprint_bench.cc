// What the process really holds: after trim(), after a thousand loads, and with a million live blocks.
//
//   footprint_bench run      (nothing without an argument: tools/bench_memory runs it)
#include <fmt/format.h>

#include <cstdlib>
#include <random>

#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/bench_testing.h"
#include "plimsoll/memory/pages/host_page_source.h"

namespace plimsoll {
namespace {

void touch(const Block& block) {
  for (std::size_t at = 0; at < block.size(); at += 4096) static_cast<volatile char*>(block.data())[at] = 1;
}

double mib(double bytes) { return bytes / 1048576; }

void trim_is_true() {
  HostPageSource pages;
  Arena arena(pages, {.limit = 2_GiB});
  std::mt19937 random(1);
  std::vector<Block> live, gone;
  for (int i = 0; i < 2000; ++i) {
    const Block block = arena.allocate(1 + random() % 500'000);
    touch(block);
    (i % 3 == 0 ? live : gone).push_back(block);
  }
  for (const Block& block : gone) arena.deallocate(block);
  std::size_t extents = 0;
  for (const ArenaExtent& extent : arena.extents())
    if (extent.state == ExtentState::kUsed) ++extents;
  const std::size_t before = resident_bytes();
  const std::size_t given_back = arena.trim();
  const std::size_t after = resident_bytes();
  const double off =
      std::abs(static_cast<double>(before) - static_cast<double>(after) - static_cast<double>(given_back));
  std::printf("\ntrim(): said %.1f MiB, smaps_rollup shows %.1f MiB gone, %zu live extents; off by %.1f KiB\n",
              mib(static_cast<double>(given_back)), mib(static_cast<double>(before) - static_cast<double>(after)),
              extents, off / 1024);
  report_target(off <= 4096.0 * static_cast<double>(extents) && given_back > 100_MiB,
                fmt::format("trim() tells the truth: off by {:.0f} KiB, a page per live extent is {} KiB", off / 1024,
                            extents * 4));
  for (const Block& block : live) arena.deallocate(block);
}

void load_and_free(Arena& arena, std::mt19937& random) {
  std::vector<Block> blocks;
  for (std::size_t loaded = 0; loaded < 200'000'000;) {
    blocks.push_back(arena.allocate(1'000'000 + random() % 8'000'000));
    touch(blocks.back());
    loaded += blocks.back().size();
  }
  for (const Block& block : blocks) arena.deallocate(block);
}

void loads_leave_nothing() {
  HostPageSource pages;
  const std::size_t start = resident_bytes();
  Arena arena(pages, {.limit = 2_GiB, .growth = true});
  std::mt19937 random(2);
  for (int cycle = 0; cycle < 10; ++cycle) load_and_free(arena, random);
  const std::size_t early = resident_bytes();
  for (int cycle = 10; cycle < 1000; ++cycle) load_and_free(arena, random);
  const std::size_t late = resident_bytes();
  arena.trim();
  const std::size_t trimmed = resident_bytes();
  std::printf(
      "\nA thousand loads of 200 MB: resident after 10 %.1f MiB, after 1000 %.1f MiB, after trim() %.1f MiB, before "
      "all %.1f MiB\n",
      mib(static_cast<double>(early)), mib(static_cast<double>(late)), mib(static_cast<double>(trimmed)),
      mib(static_cast<double>(start)));
  report_target(late <= early + 16_MiB && trimmed <= start + 4_MiB,
                fmt::format("a thousand load/free cycles of 200 MB: {:+.1f} MiB since the tenth, {:+.1f} MiB above the "
                            "start after trim()",
                            mib(static_cast<double>(late) - static_cast<double>(early)),
                            mib(static_cast<double>(trimmed) - static_cast<double>(start))));
}

struct Crowd {
  double ns = 0;        // Per operation.
  double metadata = 0;  // Bytes per live block.
};

Crowd crowd(std::size_t count) {
  HostPageSource pages;
  Arena arena(pages, {.limit = 8_GiB});
  std::mt19937 random(3);
  std::vector<std::size_t> sizes(count);
  for (std::size_t& size : sizes) size = 1 + random() % (random() % 8 == 0 ? 16'384 : 1'024);
  std::vector<Block> blocks(count);
  double begin = cpu_ns();
  for (std::size_t i = 0; i < count; ++i) blocks[i] = arena.allocate(sizes[i]);
  double spent = cpu_ns() - begin;
  const double metadata = static_cast<double>(arena.overhead_bytes()) / static_cast<double>(count);
  std::shuffle(blocks.begin(), blocks.end(), random);
  begin = cpu_ns();
  for (const Block& block : blocks) arena.deallocate(block);
  spent += cpu_ns() - begin;
  return {spent / (2.0 * static_cast<double>(count)), metadata};
}

void a_million_blocks() {
  std::printf("\n| live blocks | CPU ns per operation | metadata bytes per block |\n|--:|--:|--:|\n");
  std::vector<Crowd> rows;
  for (const std::size_t count : {std::size_t{10'000}, std::size_t{100'000}, std::size_t{1'000'000}}) {
    rows.push_back(crowd(count));
    std::printf("| %zu | %.1f | %.1f |\n", count, rows.back().ns, rows.back().metadata);
  }
  std::printf("\n");
  report_target(
      rows[2].ns <= 3 * rows[1].ns && rows[2].metadata <= 1.2 * rows[1].metadata,
      fmt::format("a million live blocks: {:.1f} ns per operation ({:.1f} with 100,000), {:.0f} bytes of metadata each",
                  rows[2].ns, rows[1].ns, rows[2].metadata));
}

int run() {
  trim_is_true();
  loads_leave_nothing();
  a_million_blocks();
  return 0;
}

}  // namespace
}  // namespace plimsoll

int main(int count, char**) {
  if (count > 1) return plimsoll::run();
  std::printf("footprint_bench: run by tools/bench_memory; alone: footprint_bench run\n");
}
