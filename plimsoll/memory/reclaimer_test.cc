#include "plimsoll/memory/reclaimer.h"

#include <gmock/gmock.h>

#include "plimsoll/memory/arena_testing.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names_of(const std::vector<PressureRung>& tried) {
  std::vector<std::string> names;
  for (const PressureRung& rung : tried) names.push_back(rung.name);
  return names;
}

// Frees a block of its own when asked.
class Hoard final : public Reclaimer {
 public:
  Hoard(const char* name, Rung rung, Arena& arena, std::vector<std::string>& asked)
      : name_(name), rung_(rung), arena_(arena), asked_(asked) {}
  void fill(std::size_t bytes) { block_ = arena_.allocate(bytes); }
  const char* name() const noexcept override { return name_; }
  Rung rung() const noexcept override { return rung_; }
  std::size_t reclaim(const char* device, std::size_t bytes) override {
    asked_.push_back(name_);
    EXPECT_EQ(device, arena_.name());
    last_bytes_ = bytes;
    if (!block_) return 0;
    const std::size_t freed = block_.size();
    arena_.deallocate(block_);
    block_ = {};
    return freed;
  }
  std::size_t last_bytes() const { return last_bytes_; }

 private:
  const char* name_;
  Rung rung_;
  Arena& arena_;
  std::vector<std::string>& asked_;
  Block block_;
  std::size_t last_bytes_ = 0;
};

TEST(Reclaimer, IsAskedInTheOrderOfRungsUntilTheRequestFits) {
  HostArena host({.limit = 16_MiB});
  std::vector<std::string> asked;
  Hoard eviction("evict", Rung::kEviction, *host, asked), prefetch("shrink prefetch", Rung::kPrefetch, *host, asked),
      plans("evict plan caches", Rung::kPlanCaches, *host, asked);
  const ReclaimerHandle third(eviction), second(prefetch), first(plans);
  for (Hoard* hoard : {&eviction, &prefetch, &plans}) hoard->fill(4_MiB);
  const Block fits = host->allocate(4_MiB);
  EXPECT_THAT(asked, ElementsAre());
  const Block needs_one = host->allocate(4_MiB);
  EXPECT_THAT(asked, ElementsAre("evict plan caches"));
  EXPECT_EQ(plans.last_bytes(), 4_MiB);
  const Block needs_another = host->allocate(4_MiB);
  EXPECT_THAT(asked, ElementsAre("evict plan caches", "evict plan caches", "shrink prefetch"));
  for (const Block& block : {fits, needs_one, needs_another}) host->deallocate(block);
  EXPECT_EQ(host->stats().num_ooms, 0u);
}

TEST(Reclaimer, IsListedWithWhatItFreedWhenAllOfThemDidNotSuffice) {
  HostArena host({.limit = 16_MiB});
  std::vector<std::string> asked;
  Hoard plans("evict plan caches", Rung::kPlanCaches, *host, asked),
      prefetch("shrink prefetch", Rung::kPrefetch, *host, asked);
  const ReclaimerHandle first(plans), second(prefetch);
  plans.fill(2_MiB);
  prefetch.fill(1_MiB);
  host->set_deferred_release(true);
  const Block kept = host->allocate(8_MiB);
  host->deallocate(host->allocate(3_MiB));
  const OutOfMemory error = refusal_of([&] { static_cast<void>(host->allocate(12_MiB)); });
  EXPECT_THAT(names_of(error.tried()), ElementsAre("flush deferred releases", "evict plan caches", "shrink prefetch"));
  EXPECT_EQ(error.tried()[0].bytes_freed, 3_MiB);
  EXPECT_EQ(error.tried()[1].bytes_freed, 2_MiB);
  EXPECT_EQ(error.tried()[2].bytes_freed, 1_MiB);
  EXPECT_EQ(error.in_use(), 8_MiB);
  EXPECT_EQ(error.smallest_sufficient_limit(), 20_MiB);
  for (const PressureRung& rung : error.tried()) EXPECT_THAT(error.what(), HasSubstr(rung.name));
  host->deallocate(kept);
}

TEST(Reclaimer, StandsAfterCachesAndMovingInWhatWasTried) {
  HostArena host({.limit = 64_KiB});
  std::vector<std::string> asked;
  Hoard plans("evict plan caches", Rung::kPlanCaches, *host, asked);
  const ReclaimerHandle registered(plans);
  std::vector<Block> pins;
  for (int i = 0; i < 32; ++i) pins.push_back(host->allocate(2048));
  for (std::size_t i = 0; i < 16; ++i) {  // Half of every page stays live.
    host->deallocate(pins[i]);
    pins.erase(pins.begin() + static_cast<std::ptrdiff_t>(i));
  }
  // Bytes would do, pages do not: the heap itself refuses.
  const OutOfMemory error = refusal_of([&] { static_cast<void>(host->allocate(16_KiB, 4096)); });
  EXPECT_THAT(names_of(error.tried()),
              ElementsAre("flush deferred releases", "empty caches", "move pages of holes", "evict plan caches"));
  for (const Block& block : pins) host->deallocate(block);
}

TEST(Reclaimer, IsNotAskedOnceItsHandleIsGone) {
  HostArena host({.limit = 1_MiB});
  std::vector<std::string> asked;
  Hoard hoard("hoard", Rung::kPlanCaches, *host, asked);
  { const ReclaimerHandle registered(hoard); }
  EXPECT_THROW(static_cast<void>(host->allocate(1_MiB + 1)), OutOfMemory);
  EXPECT_THAT(asked, ElementsAre());
}

TEST(Reclaimer, IsNotAskedForWhatNoDeviceOfThatLimitCouldServe) {
  HostArena host({.limit = 1_MiB});
  std::vector<std::string> asked;
  Hoard hoard("hoard", Rung::kPlanCaches, *host, asked);
  const ReclaimerHandle registered(hoard);
  hoard.fill(64_KiB);
  EXPECT_THROW(static_cast<void>(host->allocate(2_MiB)), OutOfMemory);
  EXPECT_THAT(asked, ElementsAre());
}

}  // namespace
}  // namespace plimsoll
