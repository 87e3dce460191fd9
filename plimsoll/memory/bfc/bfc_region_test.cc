#include "plimsoll/memory/bfc/bfc_region.h"

#include <gtest/gtest.h>

#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/bfc/bfc_resource.h"

namespace plimsoll {
namespace {

// Refuses every region above `most` bytes and remembers what it was asked for.
class StingySource final : public BfcRegionSource {
 public:
  explicit StingySource(std::size_t most) : most_(most) {}
  std::byte* reserve(std::size_t bytes, std::size_t alignment) noexcept override {
    asked.push_back(bytes);
    return bytes > most_ ? nullptr : mmap_region_source().reserve(bytes, alignment);
  }
  void release(std::byte* data, std::size_t bytes) noexcept override { mmap_region_source().release(data, bytes); }

  std::vector<std::size_t> asked;

 private:
  std::size_t most_;
};

TEST(BfcRegionList, FindsTheRegionAroundAnAddress) {
  BfcRegionList regions(mmap_region_source());
  std::vector<std::byte*> starts;
  for (int i = 0; i < 5; ++i) starts.push_back(regions.add(1_MiB, 256)->data());
  for (std::byte* start : starts) {
    EXPECT_EQ(regions.find(start)->data(), start);
    EXPECT_EQ(regions.find(start + 1_MiB - 1)->data(), start);
  }
  int outside = 0;
  EXPECT_EQ(regions.find(&outside), nullptr);
  EXPECT_EQ(regions.bytes(), 5_MiB);
  regions.remove(2);
  EXPECT_EQ(regions.bytes(), 4_MiB);
  EXPECT_EQ(regions.all().size(), 4u);
}

TEST(BfcRegionList, AlignsARegionBeyondPages) {
  BfcRegionList regions(mmap_region_source());
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(regions.add(300_KiB, 2_MiB)->data()) % 2_MiB, 0u);
}

TEST(BfcResource, AsksForATenthLessWhileTheSourceRefuses) {
  StingySource source(10_MiB);
  BfcResource bfc({.limit = 16_MiB, .source = &source});
  const Block block = bfc.allocate(1_MiB);
  ASSERT_GT(source.asked.size(), 2u);
  EXPECT_EQ(source.asked[0], 16_MiB);
  EXPECT_NEAR(static_cast<double>(source.asked[1]), 0.9 * 16_MiB, 256);
  EXPECT_LE(bfc.stats().bytes_reserved, 10_MiB);
  EXPECT_GE(bfc.stats().bytes_reserved, 9_MiB);
  bfc.deallocate(block);
}

TEST(BfcResource, StopsAskingWhenTheSourceAlwaysRefuses) {
  StingySource source(0);
  BfcResource bfc({.limit = 16_MiB, .growth = true, .source = &source});
  for (const std::size_t bytes : {1u, 256u, 2560u, 1'000'000u})
    EXPECT_THROW(static_cast<void>(bfc.allocate(bytes)), OutOfMemory) << bytes;
  EXPECT_EQ(bfc.stats().bytes_reserved, 0u);
  EXPECT_LT(source.asked.size(), 1000u);
}

}  // namespace
}  // namespace plimsoll
