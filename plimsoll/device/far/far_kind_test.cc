#include "plimsoll/device/far/far_kind.h"

#include <gmock/gmock.h>

#include <cstring>
#include <random>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/sanitized_testing.h"
#include "plimsoll/device/device.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;

Device far_device(bool staged = false) {
  return Device({.name = "FAR:0", .type = "FAR", .memory_limit = 8_MiB, .physical_device = "FAR:0"}, false, false,
                far_kind(staged).make({}));
}

std::vector<float> read(Device& device, const void* from, std::size_t count) {
  std::vector<float> values(count);
  device.backend().copy_out(values.data(), from, count * sizeof(float));
  return values;
}

TEST(FarDevice, CopiesInWithinAndOut) {
  Device device = far_device();
  EXPECT_FALSE(device.is_host());
  const Block a = device.arena().allocate(64), b = device.arena().allocate(64);
  const float values[] = {1, 2, 3};
  device.backend().copy_in(a.data(), values, sizeof(values));
  device.backend().copy(b.data(), a.data(), sizeof(values));
  EXPECT_THAT(read(device, b.data(), 3), ElementsAre(1, 2, 3));
  EXPECT_EQ(device.backend().counters().bytes_in, sizeof(values));
  EXPECT_EQ(device.backend().counters().bytes_out, sizeof(values));
  EXPECT_EQ(device.backend().counters().waits, 1u);
  device.backend().reset_counters();
  EXPECT_EQ(device.backend().counters().waits, 0u);
  device.arena().deallocate(a);
  device.arena().deallocate(b);
}

TEST(FarDevice, FillsWithAPattern) {
  Device device = far_device();
  const Block block = device.arena().allocate(64);
  const float seven = 7;
  std::uint64_t pattern = 0;
  std::memcpy(&pattern, &seven, sizeof(seven));
  device.backend().fill(block.data(), 0, 1, 64);
  device.backend().fill(block.data(), pattern, 4, 12);
  EXPECT_THAT(read(device, block.data(), 4), ElementsAre(7, 7, 7, 0));
  device.arena().deallocate(block);
}

TEST(FarDevice, IsReachedElsewhereUnlessStaged) {
  Device device = far_device(), staged = far_device(true);
  EXPECT_TRUE(device.backend().is_reachable());
  EXPECT_FALSE(staged.backend().is_reachable());
  const Block block = device.arena().allocate(64);
  std::byte* const here = device.backend().host_address(block.data());
  EXPECT_NE(here, block.data());
  EXPECT_EQ(device.backend().host_address(static_cast<void*>(here)), here);  // Not the arena's: it stays.
  const float one = 1;
  std::memcpy(here, &one, sizeof(one));
  EXPECT_THAT(read(device, block.data(), 1), ElementsAre(1));
  device.arena().deallocate(block);
}

// As of OpenCL devices (opencl_test.cc), with an eighth of the limit for a segment.
TEST(FarDevice, AnAdversaryIsNotRefused) {
  Device device = far_device();
  constexpr std::size_t kLimit = 8_MiB, kSegment = kLimit / 8;
  std::mt19937_64 random(7);
  std::vector<Block> live;
  std::size_t bytes_live = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::size_t most = round / 1000 % 2 == 0 ? kSegment / 64 : kSegment / 8;
    const std::size_t bytes = (random() % (most / 64) + 1) * 64;
    if (bytes_live + bytes <= (kLimit - kSegment) / 8 * 7) {
      live.push_back(device.arena().allocate(bytes));
      bytes_live += bytes;
      continue;
    }
    std::vector<Block> kept;
    for (std::size_t i = 0; i < live.size(); ++i) {
      if (i % 2 == 0) {
        kept.push_back(live[i]);
        continue;
      }
      bytes_live -= live[i].size();
      device.arena().deallocate(live[i]);
    }
    live = std::move(kept);
  }
  EXPECT_LE(device.arena().stats().peak_bytes_reserved, kLimit);
  for (const Block& block : live) device.arena().deallocate(block);
}

TEST(FarDevice, HoldsItsLimitAndGivesPagesBack) {
  Device device = far_device();
  EXPECT_THROW(static_cast<void>(device.arena().allocate(9_MiB)), OutOfMemory);
  std::vector<Block> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(device.arena().allocate(120_KiB));
  for (int i = 0; i < 64; i += 2) device.arena().deallocate(blocks[static_cast<std::size_t>(i)]);
  const Block large = device.arena().allocate(3_MiB);  // Holes' pages are used elsewhere.
  EXPECT_LE(device.arena().stats().bytes_reserved, 8_MiB);
  device.arena().deallocate(large);
  for (int i = 1; i < 64; i += 2) device.arena().deallocate(blocks[static_cast<std::size_t>(i)]);
  EXPECT_GT(device.trim(), 0u);
}

TEST(FarDeviceDeathTest, FaultsWhenSomebodyLooks) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer reports the fault in its own words";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Device device = far_device();
        const Block block = device.arena().allocate(64);
        static_cast<volatile float*>(block.data())[0] = 1;
      },
      "");
}

}  // namespace
}  // namespace plimsoll
