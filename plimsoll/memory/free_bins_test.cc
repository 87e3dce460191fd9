#include "plimsoll/memory/free_bins.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>
#include <random>
#include <set>
#include <vector>

namespace plimsoll {
namespace {

// Bins and the set of (size, chunk) that they should hold.
class BinsAndModel {
 public:
  void insert(std::size_t size) {
    Chunk& chunk = chunks_.emplace_back(Chunk{});
    chunk.size = size;
    bins_.insert(&chunk);
    model_.insert({size, &chunk});
  }
  void remove(std::size_t which) {
    const auto place = std::next(model_.begin(), static_cast<std::ptrdiff_t>(which % model_.size()));
    bins_.remove(place->second);
    model_.erase(place);
  }
  void check(std::size_t size) const {
    const Chunk* found = bins_.best(size);
    const auto fits = model_.lower_bound({size, nullptr});
    ASSERT_EQ(found != nullptr, fits != model_.end()) << size;
    if (found) {
      ASSERT_EQ(found->size, fits->first) << "for " << size;
      ASSERT_TRUE(model_.contains({found->size, const_cast<Chunk*>(found)})) << "a chunk that was removed";
    }
    const Chunk* largest = bins_.largest();
    ASSERT_EQ(largest ? largest->size : 0, model_.empty() ? 0 : model_.rbegin()->first);
  }
  bool empty() const { return model_.empty(); }
  std::size_t size() const { return model_.size(); }

 private:
  FreeBins bins_;
  std::set<std::pair<std::size_t, Chunk*>> model_;
  std::deque<Chunk> chunks_;
};

std::size_t size_from(std::uint32_t bits) { return (1 + (bits >> 5) % (std::size_t{1} << (bits % 24))) * kGranularity; }

TEST(FreeBins, FindNothingWhenEmpty) {
  const FreeBins bins;
  EXPECT_EQ(bins.best(64), nullptr);
  EXPECT_EQ(bins.best(4096), nullptr);
  EXPECT_EQ(bins.best(std::size_t{1} << 40), nullptr);
  EXPECT_EQ(bins.largest(), nullptr);
}

TEST(FreeBins, GiveTheSmallestThatFitsOnBothSidesOfTheBorderBetweenListsAndTries) {
  BinsAndModel bins;
  for (std::size_t size = 64; size <= 8192; size += 64) bins.insert(size);
  for (std::size_t size = 64; size <= 8192 + 64; size += 64) bins.check(size);
}

TEST(FreeBins, HoldManyChunksOfOneSize) {
  for (const std::size_t size : {std::size_t{64}, std::size_t{4032}, std::size_t{4096}, std::size_t{1} << 30}) {
    BinsAndModel bins;
    for (int i = 0; i < 20; ++i) bins.insert(size);
    bins.insert(size + 64);
    for (std::size_t i = 0; !bins.empty(); i += 7) {
      bins.check(size);
      bins.check(size + 64);
      bins.remove(i);
    }
    bins.check(64);
  }
}

TEST(FreeBins, FindTheLargestSizesAChunkCanHave) {
  BinsAndModel bins;
  for (unsigned shift = 12; shift < 63; ++shift) {
    bins.insert(std::size_t{1} << shift);
    bins.insert((std::size_t{1} << shift) + 64);
  }
  for (unsigned shift = 12; shift < 63; ++shift) {
    bins.check(std::size_t{1} << shift);
    bins.check((std::size_t{1} << shift) + 64);
    bins.check((std::size_t{1} << shift) + 128);
  }
}

TEST(FreeBins, AgreeWithASortedSetOverALongRandomRun) {
  std::mt19937 random(5);
  BinsAndModel bins;
  for (int step = 0; step < 60'000; ++step) {
    const bool draining = step / 3000 % 2 == 1;
    if (!bins.empty() && random() % 5 < (draining ? 3u : 2u))
      bins.remove(random());
    else
      bins.insert(size_from(static_cast<std::uint32_t>(random())));
    bins.check(size_from(static_cast<std::uint32_t>(random())));
    if (HasFatalFailure()) FAIL() << "at step " << step;
  }
}

TEST(FreeBins, AgreeWithASortedSetOverAnyCommands) {
  EXPECT_TRUE(rc::check([](const std::vector<std::uint32_t>& commands) {
    BinsAndModel bins;
    for (const std::uint32_t command : commands) {
      if (command % 3 == 0 && !bins.empty())
        bins.remove(command / 3);
      else
        bins.insert(size_from(command / 3));
      bins.check(size_from(command * 2654435761u));
    }
    while (!bins.empty()) {
      bins.remove(0);
      bins.check(64);
    }
    RC_ASSERT(!testing::Test::HasFailure());
  }));
}

}  // namespace
}  // namespace plimsoll
