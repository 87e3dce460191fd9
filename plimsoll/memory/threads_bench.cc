// Pairs of allocate and deallocate per second, by one thread and by two at once.
//
//   threads_bench run      (nothing without an argument: tools/bench_memory runs it)
//
// Rounds with one and with two threads alternate; each thread keeps to one processor. A round in which a thread lost
// its processor to something else (its CPU time is less than its wall time) tells nothing about us and is left out.
#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <thread>

#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/bench_testing.h"
#include "plimsoll/memory/bfc/bfc_resource.h"
#include "plimsoll/memory/pages/host_page_source.h"

namespace plimsoll {
namespace {

constexpr int kPairs = 8'000;
constexpr int kRounds = 1'000;

// The calling thread and a helper that run pairs together when told to; alone, the caller has the machine to itself.
template <class Memory>
class Pairs {
 public:
  Pairs(Memory& memory, std::size_t bytes) : memory_(memory), bytes_(bytes), helper_([this] { help(); }) {
    run_on_processor(0);
  }
  ~Pairs() {
    start(-1);
    helper_.join();
  }

  // Wall nanoseconds per pair.
  double alone() {
    pairs(100);
    const Times times = timed();
    return (times.end - times.begin) / kPairs;
  }
  double together() {
    start(round_ + 1);
    const Times mine = meet();
    while (!helped_.exchange(false)) {
    }
    return (std::max(mine.end, helpers_.end) - std::min(mine.begin, helpers_.begin)) / (2.0 * kPairs);
  }

 private:
  struct Times {
    double begin = 0, end = 0;
  };

  void pairs(int count) {
    for (int i = 0; i < count; ++i) memory_.deallocate(memory_.allocate(bytes_));
  }
  Times timed() {
    Times times;
    times.begin = wall_ns();
    pairs(kPairs);
    times.end = wall_ns();
    return times;
  }
  void start(int round) {
    waiting_ = 0;
    round_ = round;
    round_.notify_one();
  }
  Times meet() {
    pairs(100);
    ++waiting_;
    while (waiting_ < 2) {
    }
    return timed();
  }
  void help() {
    run_on_processor(1);
    for (int seen = 0;;) {
      round_.wait(seen);
      seen = round_;
      if (seen < 0) return;
      helpers_ = meet();
      helped_ = true;
    }
  }

  Memory& memory_;
  const std::size_t bytes_;
  std::atomic<int> round_{0}, waiting_{0};
  std::atomic<bool> helped_{false};
  Times helpers_;
  std::thread helper_;
};

struct Scaling {
  std::vector<double> one, two;  // Nanoseconds per pair of each round, sorted.
  double factor() const { return one.front() / two.front(); }
  double median_factor() const { return one[kRounds / 2] / two[kRounds / 2]; }
};

template <class Memory>
Scaling measure(Memory& memory, std::size_t bytes) {
  Pairs<Memory> pairs(memory, bytes);
  Scaling result;
  for (int round = 0; round < kRounds; ++round) {
    result.one.push_back(pairs.alone());
    result.two.push_back(pairs.together());
  }
  std::sort(result.one.begin(), result.one.end());
  std::sort(result.two.begin(), result.two.end());
  return result;
}

void print_row(const char* who, std::size_t bytes, const Scaling& scaling) {
  std::printf("| %s | %s | %.1f (%.1f) | %.1f (%.1f) | %.2f |\n", who, format_bytes(bytes).c_str(), scaling.one.front(),
              scaling.one[kRounds / 2], scaling.two.front(), scaling.two[kRounds / 2], scaling.factor());
}

int run() {
  std::printf("\nPairs of allocate and deallocate: wall ns per pair over all threads, best (median) of %d rounds\n\n",
              kRounds);
  std::printf("| resource | block | 1 thread | 2 threads | pairs/s, two against one |\n|---|--:|--:|--:|--:|\n");
  std::vector<std::pair<std::size_t, Scaling>> arena_rows;
  for (const std::size_t bytes : {4_KiB, 1_MiB}) {
    HostPageSource pages;
    Arena arena(pages, {.limit = 1_GiB});
    arena_rows.emplace_back(bytes, measure(arena, bytes));
    print_row("arena", bytes, arena_rows.back().second);
    BfcResource bfc({.limit = 1_GiB, .growth = true});
    print_row("bfc", bytes, measure(bfc, bytes));
  }
  std::printf("\n");
  for (const auto& [bytes, scaling] : arena_rows)
    report_target(
        scaling.factor() >= 1.8,
        fmt::format(
            "two threads do {:.2f} x the pairs of one by best round, {:.2f} by median, blocks of {} (target 1.8)",
            scaling.factor(), scaling.median_factor(), format_bytes(bytes)));
  return 0;
}

}  // namespace
}  // namespace plimsoll

int main(int count, char**) {
  if (count > 1) return plimsoll::run();
  std::printf("threads_bench: run by tools/bench_memory; alone: threads_bench run\n");
}
