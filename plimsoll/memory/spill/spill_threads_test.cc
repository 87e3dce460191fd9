// Spill files among threads, forks and signals that end the process.
#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/child_testing.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/spill/spill_testing.h"

namespace plimsoll {
namespace {

template <class Kind, class F>
bool throws(F&& f) {
  try {
    f();
  } catch (const Kind&) {
    return true;
  } catch (...) {
  }
  return false;
}

TEST(SpillThreads, StoreAndLoadAtOnce) {
  const SpillFolder folder;
  const PatternMemory staging(SpillFile::staging_bytes(), 0);
  FaultyIo io;
  SpillFile file({.directory = folder.path(), .staging = staging.span(), .io = &io});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::uint32_t round = 0; round < 15; ++round) {
        const std::size_t bytes = 1000 + 70'001 * ((t + round) % 7);
        SpillSlot a = file.reserve(bytes), b = file.reserve(2 * bytes);
        const PatternMemory source(bytes, 10 * t + round, t), twice(2 * bytes, t + 50 * round), target(bytes, 0, 8);
        const PatternMemory second(2 * bytes, 0);
        a.store(source.span());
        b.store(twice.span());
        a.load(target.span());
        b.load(second.span());
        a.wait();
        b.wait();
        if (!(target == source) || !(second == twice)) ++wrong;
        static_cast<void>(file.stats());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(file.stats().reserved_bytes, 0u);
  EXPECT_EQ(file.stats().stores, 120u);
  EXPECT_EQ(file.stats().loads, 120u);
}

TEST(SpillThreads, LeaveAChildOnlyTheRightToEnd) {
  const SpillFolder folder;
  FaultyIo io;
  auto file = std::make_unique<SpillFile>(SpillOptions{.directory = folder.path(), .io = &io});
  auto slot = std::make_unique<SpillSlot>(file->reserve(8192)),
       busy = std::make_unique<SpillSlot>(file->reserve(8_MiB));
  const PatternMemory source(8192, 1), target(8192, 2), large(8_MiB, 3), back(8_MiB, 4);
  slot->store(source.span());
  slot->wait();
  busy->store(large.span());
  const int code = run_in_child([&] {
    if (!throws<FailedPrecondition>([&] { static_cast<void>(file->reserve(1)); })) return 1;
    if (!throws<FailedPrecondition>([&] { slot->store(source.span()); })) return 2;
    if (!throws<FailedPrecondition>([&] { slot->load(target.span()); })) return 3;
    if (!throws<FailedPrecondition>([&] { busy->wait(); })) return 4;
    if (!throws<FailedPrecondition>([&] { file->bandwidth(); })) return 5;
    if (busy->is_busy()) return 6;
    slot.reset();
    busy.reset();
    file.reset();
#if !defined(__SANITIZE_THREAD__)  // Which lets no child start threads.
    FaultyIo own;
    SpillFile another({.directory = folder.path(), .io = &own});  // One of its own it may use.
    SpillSlot room = another.reserve(8192);
    room.store(source.span());
    room.load(target.span());
    room.wait();
    if (!(target == source)) return 7;
#endif
    return 0;
  });
  EXPECT_EQ(code, 0) << "-1: hung or crashed";
  busy->load(back.span());
  slot->load(target.span());
  slot->wait();
  busy->wait();
  EXPECT_TRUE(target == source) << "the parent's file is unharmed";
  EXPECT_TRUE(back == large);
}

TEST(SpillThreads, KeepTheirBytesWhenTheProcessForksDuringTransfers) {
  const SpillFolder folder;
  FaultyIo io;
  SpillFile file({.directory = folder.path(), .io = &io});
  SpillSlot slot = file.reserve(8_MiB);
  PatternMemory source(8_MiB, 3), target(8_MiB, 4);
  for (std::uint32_t round = 0; round < 6; ++round) {
    source.fill(round);
    target.fill(round + 100);
    slot.store(source.span());
    EXPECT_EQ(run_in_child([&] { return run_in_child([] { return 5; }); }), 5) << "a child may fork, too";
    slot.load(target.span());
    EXPECT_EQ(run_in_child([] { return 6; }), 6);
    slot.wait();
    ASSERT_TRUE(target == source) << round;
  }
}

TEST(SpillThreads, LeaveNothingBehindHoweverTheProcessEnds) {
  for (const bool is_named : {false, true})
    for (const bool is_killed : {false, true}) {
      const SpillFolder folder;
      const pid_t child = fork();
      if (child == 0) {
        alarm(20);
        FaultyIo io;
        if (is_named) io.fail_open_with(O_TMPFILE, EOPNOTSUPP);
        SpillFile file({.directory = folder.path(), .io = &io});
        SpillSlot slot = file.reserve(8_MiB);
        const PatternMemory source(8_MiB, 3);
        slot.store(source.span());
        if (is_killed) raise(SIGKILL);
        _exit(9);  // During the store.
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_TRUE(is_killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                            : WIFEXITED(status) && WEXITSTATUS(status) == 9);
      EXPECT_TRUE(folder.is_empty());
    }
}

}  // namespace
}  // namespace plimsoll
