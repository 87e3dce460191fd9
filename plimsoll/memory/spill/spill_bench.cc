// Megabytes per second that spill files store and load: past the page cache from aligned memory and from memory that is
// staged, and through the page cache.
//
//   spill_bench DIRECTORY      (nothing without an argument)
//
// Each way has a file of its own with 128 MiB in slots of one size; rounds of the ways alternate. The first round, over
// fresh space, is shown apart: later ones are the median of five.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/crc32c.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/memory/spill/spill_file.h"
#include "plimsoll/memory/spill/spill_io.h"

namespace plimsoll {
namespace {

constexpr std::size_t kTotalBytes = 128_MiB;
constexpr int kRounds = 6;

struct CachedIo : SpillIo {
  int open(const char* path, int flags, mode_t mode) override {
    return (flags & O_DIRECT) != 0 ? (errno = EINVAL, -1) : SpillIo::open(path, flags, mode);
  }
};

struct Free {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, Free>;

Memory random_memory(std::size_t bytes) {
  Memory memory(static_cast<std::byte*>(std::aligned_alloc(kSpillAlignment, bytes)));
  std::uint64_t state = 88172645463325252ull;
  for (std::size_t at = 0; at < bytes; at += sizeof(state)) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(memory.get() + at, &state, sizeof(state));
  }
  return memory;
}

// One way to transfer, with its file.
struct Way {
  const char* name;
  SpillFile file;
  std::size_t shift;
  std::vector<SpillSlot> slots{};
  std::vector<double> stored{}, loaded{};  // MB/s by round.
};

double megabytes_per_second(const Stopwatch& watch) { return static_cast<double>(kTotalBytes) / 1e6 / watch.seconds(); }

// All slots from, then to, the same memory.
void run_round(Way& way, std::byte* memory, std::size_t bytes) {
  const std::span<std::byte> part(memory + way.shift, bytes);
  const Stopwatch storing;
  for (SpillSlot& slot : way.slots) slot.store(part);
  for (SpillSlot& slot : way.slots) slot.wait();
  way.stored.push_back(megabytes_per_second(storing));
  const Stopwatch loading;
  for (SpillSlot& slot : way.slots) slot.load(part);
  for (SpillSlot& slot : way.slots) slot.wait();
  way.loaded.push_back(megabytes_per_second(loading));
}

double median_of_later(std::vector<double> values) {
  values.erase(values.begin());
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(const char* directory, std::size_t bytes) {
  static CachedIo cached;
  const Memory memory = random_memory(bytes + kSpillAlignment), staging = random_memory(SpillFile::staging_bytes());
  const std::span<std::byte> block(staging.get(), SpillFile::staging_bytes());
  std::vector<Way> ways;
  ways.push_back({"direct, aligned", SpillFile({.directory = directory}), 0});
  ways.push_back({"direct, staged", SpillFile({.directory = directory, .staging = block}), 64});
  ways.push_back({"page cache", SpillFile({.directory = directory, .io = &cached}), 64});
  for (Way& way : ways)
    for (std::size_t at = 0; at < kTotalBytes; at += bytes) way.slots.push_back(way.file.reserve(bytes));
  for (int round = 0; round < kRounds; ++round)
    for (Way& way : ways) run_round(way, memory.get(), bytes);
  for (const Way& way : ways)
    fmt::print("| {} | {} | {:.0f} | {:.0f} | {:.0f} |\n", format_bytes(bytes), way.name, way.stored[0],
               median_of_later(way.stored), median_of_later(way.loaded));
}

int run(const char* directory) {
  set_log_level(LogLevel::error);
  const Memory memory = random_memory(16_MiB);
  const Stopwatch watch;
  std::uint32_t crc = 0;
  for (int i = 0; i < 16; ++i) crc = crc32c(std::span<const std::byte>(memory.get(), 16_MiB), crc);
  fmt::print("checksum: {:.0f} MB/s (crc {:08x})\n", 16.0 * 16_MiB / 1e6 / watch.seconds(), crc);
  SpillFile file({.directory = directory});
  const Stopwatch measuring;
  const SpillBandwidth first = file.bandwidth();
  fmt::print("bandwidth(): stores {:.0f} MB/s, loads {:.0f} MB/s, found in {:.2f} s; direct: {}, addresses at {}\n\n",
             first.store / 1e6, first.load / 1e6, measuring.seconds(), file.is_direct() ? "yes" : "no",
             file.address_alignment());
  fmt::print("| slot | way | first stores, MB/s | stores | loads |\n|---|---|--:|--:|--:|\n");
  for (const std::size_t bytes : {std::size_t{64_KiB}, std::size_t{1_MiB}, std::size_t{16_MiB}})
    measure(directory, bytes);
  return 0;
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) try {
  return argc == 2 ? plimsoll::run(argv[1]) : 0;
} catch (const plimsoll::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
