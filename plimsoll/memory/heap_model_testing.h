// HeapAndModel: a Heap over fake pages, used as the arena uses it, together with a map of what should be live.
//
// After every step: no overlap, alignment, contents, pages held == pages the source gave, and what a refusal may depend
// on.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "plimsoll/memory/heap.h"
#include "plimsoll/memory/memory_resource_testing.h"
#include "plimsoll/memory/pages/fake_pages_testing.h"

namespace plimsoll {

class HeapAndModel {
 public:
  HeapAndModel(std::size_t page_cap, const FakePagesOptions& options, bool two_zones);

  // Tries the three ways in the arena's order. nullptr when refused.
  Chunk* take(std::size_t size, std::size_t alignment = kGranularity);
  void give(std::size_t which);  // Of the live ones, in address order; checks its contents.
  void give_all();

  // Pages with a live byte, by the model.
  std::size_t live_pages() const;
  void check() const;  // Everything above.

  Heap& heap() noexcept { return heap_; }
  FakePageRange& pages() noexcept { return pages_; }
  bool empty() const noexcept { return live_.empty(); }
  std::size_t page_cap() const noexcept { return page_cap_; }

 private:
  struct Live {
    Chunk* chunk = nullptr;
    MarkedBlock contents;
  };
  void add(Chunk* chunk, std::size_t size, std::size_t alignment);

  const std::size_t page_cap_;
  FakePageRange& pages_;
  Heap heap_;
  std::map<std::size_t, Live> live_;  // By offset.
  std::uint32_t marks_ = 0;
};

// A size that is mostly small and sometimes a good part of `most`; a multiple of 64.
std::size_t random_size(std::mt19937& random, std::size_t most);

// Runs `steps` random takes and gives; calls `each(model, refused)` after every take.
template <class F>
void run_randomly(HeapAndModel& model, std::mt19937& random, int steps, std::size_t most, F&& each) {
  for (int step = 0; step < steps; ++step) {
    const unsigned give_share = step / 200 % 3 == 2 ? 6 : 4;  // Fills for a while, then drains.
    if (!model.empty() && random() % 10 < give_share) {
      model.give(random());
    } else {
      const std::size_t alignment = random() % 8 == 0 ? kGranularity << random() % 10 : kGranularity;
      const std::size_t size = random_size(random, most);
      each(size, model.take(size, alignment) == nullptr);
    }
    if (step % 16 == 0) model.check();
    if (testing::Test::HasFatalFailure()) FAIL() << "at step " << step;
  }
}

}  // namespace plimsoll
