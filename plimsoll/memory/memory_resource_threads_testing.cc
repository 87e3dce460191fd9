// The cases of the conformance suite with several threads; the thread sanitizer runs them too.
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "plimsoll/base/error.h"
#include "plimsoll/memory/memory_resource_testing.h"

namespace plimsoll {
namespace {

// Hands blocks from one thread to another.
class Channel {
 public:
  void send(const MarkedBlock& block) {
    const std::lock_guard lock(mutex_);
    blocks_.push_back(block);
    changed_.notify_one();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  std::optional<MarkedBlock> receive() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !blocks_.empty(); });
    if (blocks_.empty()) return std::nullopt;
    const MarkedBlock block = blocks_.front();
    blocks_.pop_front();
    return block;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<MarkedBlock> blocks_;
  bool closed_ = false;
};

TEST_P(MemoryResourceConformance, TakesBlocksBackFromOtherThreads) {
  constexpr int kBlocks = 3000;
  Channel channel;
  std::atomic<int> damaged{0};
  std::thread consumer([&] {
    while (const auto block = channel.receive()) {
      if (!block->intact()) ++damaged;
      memory().deallocate(block->block());
    }
  });
  std::mt19937 random(3);
  for (int i = 0; i < kBlocks; ++i) {
    std::optional<MarkedBlock> block;
    while (!block) {
      try {
        block = MarkedBlock(memory().allocate(1 + random() % 40'000), static_cast<std::uint32_t>(i));
      } catch (const OutOfMemory&) {
        std::this_thread::yield();
      }
    }
    channel.send(*block);
  }
  channel.close();
  consumer.join();
  EXPECT_EQ(damaged, 0);
  EXPECT_EQ(memory().stats().bytes_in_use, 0u);
  EXPECT_EQ(memory().stats().num_allocs, static_cast<std::size_t>(kBlocks));
  memory().deallocate(memory().allocate(kLimit / 10 * 9));
}

TEST_P(MemoryResourceConformance, ServesSeveralThreadsAtOnceWithinItsLimit) {
  constexpr std::uint32_t kThreads = 4;
  std::atomic<int> damaged{0}, refused{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937 random(thread);
      std::vector<MarkedBlock> live;
      for (std::uint32_t i = 0; i < 2000; ++i) {
        if (live.size() > 40 || (!live.empty() && random() % 2 == 0)) {
          std::swap(live[random() % live.size()], live.back());
          if (!live.back().intact()) ++damaged;
          memory().deallocate(live.back().block());
          live.pop_back();
        } else {
          try {
            live.emplace_back(memory().allocate(1 + random() % (random() % 8 == 0 ? 2'000'000 : 20'000)),
                              i * 8 + thread);
          } catch (const OutOfMemory&) {
            ++refused;
          }
        }
      }
      for (const MarkedBlock& block : live) memory().deallocate(block.block());
    });
  }
  std::thread watcher([&] {
    while (!done) {
      EXPECT_LE(memory().stats().bytes_reserved, kLimit);
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) thread.join();
  done = true;
  watcher.join();
  EXPECT_EQ(damaged, 0);
  EXPECT_EQ(memory().stats().bytes_in_use, 0u);
  EXPECT_EQ(memory().stats().num_ooms, static_cast<std::size_t>(refused));
  EXPECT_LE(memory().stats().peak_bytes_reserved, kLimit);
}

}  // namespace
}  // namespace plimsoll
