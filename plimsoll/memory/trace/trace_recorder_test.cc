#include "plimsoll/memory/trace/trace_recorder.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "plimsoll/base/call_site.h"
#include "plimsoll/base/log.h"
#include "plimsoll/memory/arena_testing.h"
#include "plimsoll/memory/bfc/bfc_resource.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/budget_hold.h"
#include "plimsoll/memory/refusal.h"
#include "plimsoll/memory/trace/trace_file.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TraceRecorderTest : public testing::Test {
 protected:
  TraceRecorderTest()
      : path_(std::filesystem::path(testing::TempDir()) / ("plimsoll_trace_" + std::to_string(getpid()))) {}
  ~TraceRecorderTest() override {
    for (const char* ending : {"", ".partial", ".saved"}) std::filesystem::remove(path_.string() + ending);
  }
  const std::filesystem::path path_;
};

std::vector<TraceEventKind> kinds_of(const TraceFile& file) {
  std::vector<TraceEventKind> kinds;
  for (const TraceEvent& event : file.events) kinds.push_back(event.kind);
  return kinds;
}

std::vector<TraceEvent> of_kind(const TraceFile& file, TraceEventKind kind) {
  std::vector<TraceEvent> events;
  for (const TraceEvent& event : file.events)
    if (event.kind == kind) events.push_back(event);
  return events;
}

BlockLabel full_label() {
  BlockLabel label;
  label.op = "conv2d";
  label.scope = "encoder/block1";
  label.name = "kernel";
  label.step = 12;
  label.site = site_number({"src/train.cc", 99});
  label.category = Category::kGradients;
  label.dtype = 3;
  label.rank = 2;
  label.has_shape = 1;
  label.sizes[0] = 70'000;
  label.sizes[1] = 3;
  return label;
}

TEST_F(TraceRecorderTest, KeepsEverythingThatIsKnownOfABlock) {
  HostArena host({.name = "CPU:5", .limit = 16_MiB});
  const Budget budget("train", 8_MiB);
  TraceRecorder recorder({.path = path_});
  Block block;
  std::size_t offset = 0;
  {
    const BudgetScope scope(budget);
    block = host->allocate(840'001, 64, full_label());
  }
  host->for_each_live([&](const Chunk& chunk) { offset = chunk.offset; });
  host->deallocate(block);
  recorder.finish();
  const TraceFile file = read_trace_file(path_);
  EXPECT_TRUE(file.complete);
  EXPECT_FALSE(file.ring);
  EXPECT_EQ(file.process, static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(file.dropped_events, 0u);
  EXPECT_EQ(file.readable_bytes, std::filesystem::file_size(path_));
  ASSERT_THAT(kinds_of(file), ElementsAre(TraceEventKind::kText, TraceEventKind::kCommitted, TraceEventKind::kAllocate,
                                          TraceEventKind::kFree));
  const TraceEvent& event = file.events[2];
  EXPECT_EQ(file.arenas[event.arena].name, "CPU:5");
  EXPECT_EQ(file.arenas[event.arena].limit, 16_MiB);
  EXPECT_EQ(file.arenas[event.arena].page_bytes, 4096u);
  EXPECT_EQ(event.requested, 840'001u);
  EXPECT_EQ(event.size, LiveBlocks::rounded(840'001));
  EXPECT_EQ(event.offset, offset);
  EXPECT_EQ(file.names[event.op], "conv2d");
  EXPECT_EQ(file.names[event.scope], "encoder/block1");
  EXPECT_EQ(file.names[event.name], "kernel");
  EXPECT_EQ(file.names[event.budget], "train");
  EXPECT_EQ(event.step, 12u);
  EXPECT_EQ(file.names[event.site], "src/train.cc:99");
  EXPECT_EQ(event.category, Category::kGradients);
  EXPECT_TRUE(event.has_shape);
  EXPECT_EQ(event.dtype, 3);
  EXPECT_EQ(event.rank, 2);
  EXPECT_EQ(event.sizes[0], 70'000u);
  EXPECT_EQ(event.sizes[1], 3u);
  EXPECT_EQ(event.system_thread, static_cast<std::uint32_t>(gettid()));
  EXPECT_GE(event.time_ns, 0);
  EXPECT_EQ(file.events[1].size, host->stats().bytes_reserved);
  EXPECT_EQ(file.events[3].block, event.block);
  EXPECT_EQ(file.events[3].size, event.size);
  EXPECT_EQ(file.events[3].offset, event.offset);
  EXPECT_GE(file.events[3].time_ns, event.time_ns);
}

TEST_F(TraceRecorderTest, PutsMarkersBetweenTheEventsTheyStandBetween) {
  HostArena host({.limit = 16_MiB});
  trace_step(1);  // Nobody records: nothing happens.
  TraceRecorder recorder({.path = path_});
  trace_step(7);
  trace_phase("forward");
  host->deallocate(host->allocate(64));
  trace_text(std::string(5000, 'x'));
  trace_text({});
  recorder.finish();
  trace_step(8);
  const TraceFile file = read_trace_file(path_);
  ASSERT_THAT(kinds_of(file), ElementsAre(TraceEventKind::kStep, TraceEventKind::kPhase, TraceEventKind::kCommitted,
                                          TraceEventKind::kAllocate, TraceEventKind::kFree, TraceEventKind::kText,
                                          TraceEventKind::kText));
  EXPECT_EQ(file.events[0].number, 7u);
  EXPECT_EQ(file.events[1].text, "forward");
  EXPECT_EQ(file.events[5].text, std::string(1024, 'x'));
  EXPECT_EQ(file.events[6].text, "");
}

TEST_F(TraceRecorderTest, RecordsWhatIsLiveAlreadyRefusalsAndTheEndOfAnArena) {
  auto host = std::make_unique<HostArena>(ArenaOptions{.name = "CPU:9", .limit = 1_MiB});
  static_cast<void>((*host)->allocate(1000, 64, full_label()));
  TraceRecorder recorder({.path = path_});
  EXPECT_THROW(static_cast<void>((*host)->allocate(2_MiB, 64, full_label())), OutOfMemory);
  host.reset();
  HostArena late({.name = "CPU:10", .limit = 1_MiB});
  late->deallocate(late->allocate(64));
  recorder.finish();
  const TraceFile file = read_trace_file(path_);
  const auto existing = of_kind(file, TraceEventKind::kExisting);
  ASSERT_EQ(existing.size(), 1u);
  EXPECT_EQ(existing[0].requested, 1000u);
  EXPECT_EQ(file.names[existing[0].op], "conv2d");
  const auto refused = of_kind(file, TraceEventKind::kRefused);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].requested, 2_MiB);
  EXPECT_EQ(file.names[refused[0].op], "conv2d");
  EXPECT_EQ(file.names[refused[0].scope], "encoder/block1");
  EXPECT_EQ(file.names[refused[0].name], "CPU:9");
  EXPECT_EQ(refused[0].budget, 0u);
  EXPECT_EQ(refused[0].size, 1_MiB);
  EXPECT_THAT(refused[0].text, testing::StartsWith("\"CPU:9\": cannot allocate 2.0 MiB"));
  const auto ended = of_kind(file, TraceEventKind::kArenaEnded);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(file.arenas[ended[0].arena].name, "CPU:9");
  ASSERT_EQ(of_kind(file, TraceEventKind::kAllocate).size(), 1u);
  EXPECT_EQ(file.arenas[of_kind(file, TraceEventKind::kAllocate)[0].arena].name, "CPU:10");
}

TEST_F(TraceRecorderTest, RecordsEveryWayToRefuseWithItsText) {
  HostArena host({.name = "CPU:9", .limit = 1_MiB});
  BfcResource bfc({.name = "pool", .limit = 1_MiB});
  const Budget budget("ten", 10_KiB);
  TraceRecorder recorder({.path = path_});
  std::vector<std::string> said;
  const auto refuse = [&](auto&& ask) {
    try {
      ask();
      ADD_FAILURE() << "not refused";
    } catch (const OutOfMemory& error) {
      said.emplace_back(error.what());
    }
  };
  refuse([&] { const BudgetHold hold(budget, 20_KiB); });
  refuse([&] {
    const BudgetScope scope(budget);
    static_cast<void>(host->allocate(30_KiB, 64, full_label()));
  });
  refuse([&] { static_cast<void>(bfc.allocate(2_MiB, 64)); });
  refuse([&] { throw_refusal({.what = std::string(2000, 'x'), .requested = SIZE_MAX}, {.budget = "gate"}); });
  recorder.finish();
  const TraceFile file = read_trace_file(path_);
  const auto refused = of_kind(file, TraceEventKind::kRefused);
  ASSERT_EQ(refused.size(), 4u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(refused[i].text, said[i]);
  EXPECT_EQ(refused[3].text, std::string(1024, 'x'));
  EXPECT_EQ(refused[3].requested, SIZE_MAX);
  EXPECT_EQ(file.names[refused[0].budget], "ten");
  EXPECT_EQ(refused[0].size, 10_KiB);
  EXPECT_EQ(refused[0].number, 20_KiB);
  EXPECT_EQ(file.names[refused[1].budget], "ten");
  EXPECT_EQ(file.names[refused[2].budget], "");
  EXPECT_EQ(file.names[refused[2].name], "pool");
  EXPECT_EQ(file.names[refused[3].budget], "gate");
}

// Replays a trace and checks that blocks never overlap and that every free has its allocation.
void expect_consistent(const TraceFile& file, std::size_t allocations) {
  std::map<std::uint64_t, TraceEvent> live;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> places;  // Arena and offset: end.
  std::size_t allocated = 0;
  for (const TraceEvent& event : file.events) {
    if (event.kind == TraceEventKind::kAllocate) {
      ++allocated;
      ASSERT_TRUE(live.emplace(event.block, event).second) << "an id twice";
      const auto next = places.lower_bound({event.arena, event.offset});
      ASSERT_TRUE(next == places.end() || next->first.first != event.arena ||
                  next->first.second >= event.offset + event.size);
      ASSERT_TRUE(next == places.begin() || std::prev(next)->first.first != event.arena ||
                  std::prev(next)->second <= event.offset);
      places.emplace(std::pair(event.arena, event.offset), event.offset + event.size);
    } else if (event.kind == TraceEventKind::kFree) {
      const auto block = live.find(event.block);
      ASSERT_NE(block, live.end()) << "freed but never allocated";
      ASSERT_EQ(block->second.offset, event.offset);
      places.erase({event.arena, event.offset});
      live.erase(block);
    }
  }
  EXPECT_EQ(allocated, allocations);
  EXPECT_TRUE(live.empty());
}

void churn(Arena& arena, unsigned seed, int rounds) {
  static constexpr const char* kOps[] = {"matmul", "relu", "softmax", "adam"};
  std::mt19937 random(seed);
  std::vector<Block> blocks;
  for (int i = 0; i < rounds; ++i) {
    BlockLabel label;
    label.op = kOps[random() % 4];
    label.step = static_cast<std::uint32_t>(i);
    blocks.push_back(arena.allocate(1 + random() % 20'000, 64, label));
    if (blocks.size() > 20) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      arena.deallocate(blocks.back());
      blocks.pop_back();
    }
  }
  for (const Block& block : blocks) arena.deallocate(block);
}

TEST_F(TraceRecorderTest, GivesAConsistentStoryOfManyThreads) {
  HostArena host({.limit = 64_MiB});
  TraceRecorder recorder({.path = path_});
  std::vector<std::thread> threads;
  constexpr int kRounds = 4000;
  for (unsigned t = 0; t < 4; ++t) threads.emplace_back([&, t] { churn(*host, t, kRounds); });
  for (std::thread& thread : threads) thread.join();
  const TraceCounters counters = recorder.counters();
  EXPECT_GE(counters.events, 4u * 2 * kRounds);
  EXPECT_EQ(counters.dropped_events, 0u);
  recorder.finish();
  const TraceFile file = read_trace_file(path_);
  EXPECT_EQ(file.events.size(), counters.events);
  expect_consistent(file, std::size_t{4} * kRounds);
  std::set<std::uint32_t> seen;
  for (const TraceEvent& event : file.events) seen.insert(event.system_thread);
  EXPECT_GE(seen.size(), 4u);
  EXPECT_LT(std::filesystem::file_size(path_), file.events.size() * 24) << "compact";
}

TEST_F(TraceRecorderTest, HoldsOneBufferPerThreadThatIsAlive) {
  HostArena host({.limit = 64_MiB});
  TraceRecorder recorder({.path = path_});
  for (int i = 0; i < 100; ++i) std::thread([&] { host->deallocate(host->allocate(100)); }).join();
  EXPECT_LT(recorder.counters().buffered_bytes, 3 * 80_KiB);
  recorder.finish();
  EXPECT_EQ(of_kind(read_trace_file(path_), TraceEventKind::kAllocate).size(), 100u)
      << "nothing is lost when threads end";
}

TEST_F(TraceRecorderTest, LeavesAReadablePrefixWhenTheProcessDies) {
  const pid_t child = fork();
  if (child == 0) {
    HostArena host({.limit = 64_MiB});
    auto* recorder = new TraceRecorder({.path = path_});
    churn(*host, 1, 20'000);
    static_cast<void>(recorder);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_FALSE(std::filesystem::exists(path_));
  const TraceFile file = read_trace_file(path_.string() + ".partial");
  EXPECT_FALSE(file.complete);
  EXPECT_GT(file.events.size(), 10'000u);
  EXPECT_EQ(file.names[of_kind(file, TraceEventKind::kAllocate)[0].op].empty(), false);
}

TEST_F(TraceRecorderTest, IsOffInAForkedChild) {
  HostArena host({.limit = 64_MiB});
  TraceRecorder recorder({.path = path_});
  const Block block = host->allocate(100);
  const pid_t child = fork();
  if (child == 0) {
    churn(*host, 1, 20'000);
    recorder.finish();
    _exit(std::filesystem::exists(path_) ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  host->deallocate(block);
  recorder.finish();
  expect_consistent(read_trace_file(path_), 1);
}

TEST_F(TraceRecorderTest, ARingKeepsTheLastEventsWithinItsBytes) {
  HostArena host({.limit = 64_MiB});
  TraceRecorder recorder({.path = path_, .mode = TraceMode::kRing, .max_bytes = 200_KiB});
  churn(*host, 1, 30'000);
  trace_text("the end");
  EXPECT_LE(recorder.counters().file_bytes, 200_KiB);
  EXPECT_LE(recorder.counters().buffered_bytes, 200_KiB + 80_KiB + 4_KiB);
  recorder.save(path_.string() + ".saved");
  const TraceFile saved = read_trace_file(path_.string() + ".saved");
  EXPECT_TRUE(saved.ring);
  EXPECT_GT(saved.dropped_events, 10'000u);
  EXPECT_EQ(saved.events.back().text, "the end");
  trace_text("really");
  EXPECT_FALSE(std::filesystem::exists(path_));
  recorder.finish();
  const TraceFile file = read_trace_file(path_);
  EXPECT_EQ(file.events.back().text, "really");
  EXPECT_LE(std::filesystem::file_size(path_), 200_KiB + 2_KiB);
  EXPECT_EQ(file.events.size() + file.dropped_events, recorder.counters().events);
  for (const TraceEvent& event : of_kind(file, TraceEventKind::kAllocate))
    ASSERT_FALSE(file.names[event.op].empty()) << "names outlive their events";
}

TEST_F(TraceRecorderTest, AStreamStopsAtItsMaximumAndCountsWhatItDropped) {
  HostArena host({.limit = 64_MiB});
  TraceRecorder recorder({.path = path_, .max_bytes = 256_KiB});
  churn(*host, 1, 30'000);
  recorder.finish();
  EXPECT_LE(std::filesystem::file_size(path_), 256_KiB);
  const TraceFile file = read_trace_file(path_);
  EXPECT_TRUE(file.complete);
  EXPECT_GT(file.dropped_events, 10'000u);
  EXPECT_EQ(file.events.size() + file.dropped_events, recorder.counters().events);
}

TEST_F(TraceRecorderTest, RefusesWhatItCannotDo) {
  EXPECT_THROW(TraceRecorder({.path = path_, .max_bytes = 1000}), InvalidArgument);
  EXPECT_THROW(TraceRecorder({.path = path_ / "no" / "such" / "folder"}), NotFound);
  TraceRecorder recorder({.path = path_});
  EXPECT_THROW(TraceRecorder({.path = path_.string() + ".saved"}), FailedPrecondition);
  EXPECT_THROW(recorder.save(path_.string() + ".saved"), FailedPrecondition);
  recorder.finish();
  EXPECT_NO_THROW(recorder.finish()) << "a second time does nothing";
  EXPECT_NO_THROW(TraceRecorder({.path = path_.string() + ".saved"})) << "the next may record now";
}

TEST_F(TraceRecorderTest, TellsAtTheEndThatTheDiskWasFull) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
  std::filesystem::create_symlink("/dev/full", path_.string() + ".partial");
  HostArena host({.limit = 64_MiB});
  TraceRecorder recorder({.path = path_});
  churn(*host, 1, 10'000);
  EXPECT_GT(recorder.counters().dropped_events, 0u);
  try {
    recorder.finish();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot write"));
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(TraceRecorderTest, MayStartAndStopWhileThreadsAllocateAndEnd) {
  HostArena host({.limit = 64_MiB});
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      while (!done) churn(*host, t, 200);
    });
  threads.emplace_back([&] {
    while (!done) std::thread([&] { churn(*host, 9, 10); }).join();
  });
  for (int i = 0; i < 30; ++i) {
    TraceRecorder recorder({.path = path_, .mode = i % 2 ? TraceMode::kRing : TraceMode::kStream});
    trace_step(static_cast<std::uint64_t>(i));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (i % 2) recorder.save(path_.string() + ".saved");
    recorder.finish();
    const TraceFile file = read_trace_file(path_);
    EXPECT_TRUE(file.complete);
    EXPECT_EQ(of_kind(file, TraceEventKind::kStep).size(), 1u);
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace plimsoll
