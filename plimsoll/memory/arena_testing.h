// HostArena: an arena with its page source, for tests; and the pages and sums that tests compare with.
//
//   HostArena host({.limit = 8_MiB}, PageMover::kRemap);
//   Block block = host->allocate(1_MiB);
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/memory_resource_testing.h"
#include "plimsoll/memory/pages/host_page_source.h"

namespace plimsoll {

struct HostArena {
  explicit HostArena(ArenaOptions options, PageMover mover = PageMover::kBest)
      : pages(mover), arena(pages, std::move(options)) {}
  Arena* operator->() { return &arena; }
  Arena& operator*() { return arena; }

  HostPageSource pages;
  Arena arena;
};

// What f() is refused with.
template <class F>
OutOfMemory refusal_of(F&& f) {
  try {
    f();
  } catch (const OutOfMemory& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was refused";
  return OutOfMemory({});
}

struct LedgerSum {
  std::size_t blocks = 0, bytes = 0, requested = 0;
};

inline LedgerSum sum_of_ledger(const Arena& arena) {
  LedgerSum sum;
  arena.for_each_live([&](const Chunk& chunk) {
    ++sum.blocks;
    sum.bytes += chunk.size;
    sum.requested += chunk.requested;
  });
  return sum;
}

// What should be live, by address, with contents.
class LiveBlocks {
 public:
  static constexpr std::size_t kPage = 4096;

  void add(const Block& block) {
    const auto begin = reinterpret_cast<std::uintptr_t>(block.data());
    const auto next = live_.lower_bound(begin);
    EXPECT_TRUE(next == live_.end() || begin + block.size() <= next->first) << "overlaps the next block";
    EXPECT_TRUE(next == live_.begin() || end_of(*std::prev(next)) <= begin) << "overlaps the previous block";
    live_.emplace(begin, MarkedBlock(block, ++marks_));
    bytes_ += rounded(block.size());
    requested_ += block.size();
  }
  Block remove(std::size_t which) {
    const auto place = std::next(live_.begin(), static_cast<std::ptrdiff_t>(which % live_.size()));
    EXPECT_TRUE(place->second.intact()) << "a live block of " << place->second.block().size()
                                        << " bytes was overwritten";
    const Block block = place->second.block();
    bytes_ -= rounded(block.size());
    requested_ -= block.size();
    live_.erase(place);
    return block;
  }
  std::size_t pages() const {  // That hold a live byte.
    std::size_t pages = 0, counted = 0;
    for (const auto& [begin, marked] : live_) {
      const std::size_t first = std::max(counted, begin / kPage);
      const std::size_t last = (begin + rounded(marked.block().size()) - 1) / kPage + 1;
      if (last > first) pages += last - first;
      counted = std::max(counted, last);
    }
    return pages;
  }
  static std::size_t rounded(std::size_t bytes) { return (bytes + kGranularity - 1) / kGranularity * kGranularity; }
  static std::size_t pages_for(std::size_t bytes) { return (rounded(bytes) + kPage - 1) / kPage; }
  std::size_t bytes() const noexcept { return bytes_; }
  std::size_t requested() const noexcept { return requested_; }
  std::size_t size() const noexcept { return live_.size(); }
  bool empty() const noexcept { return live_.empty(); }

 private:
  static std::uintptr_t end_of(const std::pair<const std::uintptr_t, MarkedBlock>& live) {
    return live.first + live.second.block().size();
  }
  std::map<std::uintptr_t, MarkedBlock> live_;
  std::size_t bytes_ = 0, requested_ = 0;
  std::uint32_t marks_ = 0;
};

}  // namespace plimsoll
