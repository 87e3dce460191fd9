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
#include "plimsoll/memory/bfc_resource.h"
#include "plimsoll/memory/host_page_source.h"

namespace plimsoll {
namespace {

constexpr int kPairs = 20'000;
constexpr int kRounds = 300;

// Two threads that run pairs together or apart when told to.
template <class Memory>
class Pairs {
 public:
  Pairs(Memory& memory, std::size_t bytes) : memory_(memory), bytes_(bytes) {
    for (int number = 0; number < 2; ++number) threads_[number] = std::thread([this, number] { serve(number); });
  }
  ~Pairs() {
    round_ = -1;
    for (std::thread& thread : threads_) thread.join();
  }

  // Wall nanoseconds per pair over `count` threads together.
  double run(int count) {
    wanted_ = count;
    waiting_ = 0;
    done_ = 0;
    ++round_;
    while (done_ < count) std::this_thread::sleep_for(std::chrono::microseconds(50));
    double begin = times_[0].begin, end = times_[0].end;
    for (int number = 1; number < count; ++number) {
      begin = std::min(begin, times_[number].begin);
      end = std::max(end, times_[number].end);
    }
    return (end - begin) / (static_cast<double>(kPairs) * count);
  }

 private:
  struct Times {
    double begin = 0, end = 0;
  };

  void pairs(int count) {
    for (int i = 0; i < count; ++i) memory_.deallocate(memory_.allocate(bytes_));
  }

  void serve(int number) {
    run_on_processor(number);
    for (int seen = 0;;) {
      const int round = round_;
      if (round < 0) return;
      if (round == seen || number >= wanted_) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
        seen = round;
        continue;
      }
      seen = round;
      pairs(1000);
      ++waiting_;
      while (waiting_ < wanted_) {
      }
      times_[number].begin = wall_ns();
      pairs(kPairs);
      times_[number].end = wall_ns();
      ++done_;
    }
  }

  Memory& memory_;
  const std::size_t bytes_;
  std::atomic<int> round_{0}, wanted_{0}, waiting_{0}, done_{0};
  Times times_[2];
  std::thread threads_[2];
};

struct Scaling {
  std::vector<double> one, two;  // Nanoseconds per pair of each round, sorted.
  double factor() const { return one.front() / two.front(); }
};

template <class Memory>
Scaling measure(Memory& memory, std::size_t bytes) {
  Pairs<Memory> pairs(memory, bytes);
  Scaling result;
  for (int round = 0; round < kRounds; ++round) {
    result.one.push_back(pairs.run(1));
    result.two.push_back(pairs.run(2));
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
    report_target(scaling.factor() >= 1.8,
                  fmt::format("two threads do {:.2f} x the pairs of one, blocks of {} (target 1.8)", scaling.factor(),
                              format_bytes(bytes)));
  return 0;
}

}  // namespace
}  // namespace plimsoll

int main(int count, char**) {
  if (count > 1) return plimsoll::run();
  std::printf("threads_bench: run by tools/bench_memory; alone: threads_bench run\n");
}
