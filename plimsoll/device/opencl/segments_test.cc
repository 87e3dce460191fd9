#include "plimsoll/device/opencl/segments.h"

#include <gmock/gmock.h>

#include <cstring>
#include <random>

#include "plimsoll/base/bytes.h"

namespace plimsoll::internal {
namespace {

// Segments that are really there, so that contents can be looked at.
class FakeMemory final : public Segments::Memory {
 public:
  bool make_segment(std::size_t segment, std::size_t bytes) noexcept override {
    if (refuses) return false;
    if (memory.size() <= segment) memory.resize(segment + 1);
    EXPECT_TRUE(memory[segment].empty());
    memory[segment].assign(bytes, std::byte{0});
    return true;
  }
  void drop_segment(std::size_t segment) noexcept override { memory[segment].clear(); }
  void copy(Segments::Place to, Segments::Place from, std::size_t bytes) noexcept override {
    std::byte *const there = at(to), *const here = at(from);
    EXPECT_TRUE(there + bytes <= here || here + bytes <= there);  // As OpenCL demands.
    EXPECT_LE(to.offset + bytes, memory[to.segment].size());
    EXPECT_LE(from.offset + bytes, memory[from.segment].size());
    std::memcpy(there, here, bytes);
  }
  std::byte* at(Segments::Place place) { return memory[place.segment].data() + place.offset; }

  std::vector<std::vector<std::byte>> memory;
  bool refuses = false;
};

class SegmentsTest : public testing::Test {
 protected:
  // Fills the block with its address.
  bool take(Segments& segments, std::size_t address, std::size_t bytes) {
    if (!segments.place(address, bytes)) return false;
    Segments::Place place;
    EXPECT_TRUE(segments.find(address, place));
    for (std::size_t i = 0; i < bytes; i += sizeof(address))
      std::memcpy(memory_.at(place) + i, &address, sizeof(address));
    live_[address] = bytes;
    return true;
  }
  void give(Segments& segments, std::size_t address) {
    check(segments, address);
    segments.remove(address);
    live_.erase(address);
  }
  void check(Segments& segments, std::size_t address) {
    Segments::Place place;
    ASSERT_TRUE(segments.find(address, place));
    for (std::size_t i = 0; i < live_[address]; i += sizeof(address))
      ASSERT_EQ(std::memcmp(memory_.at(place) + i, &address, sizeof(address)), 0) << address << " + " << i;
  }
  std::size_t live_bytes() const {
    std::size_t sum = 0;
    for (const auto& [address, bytes] : live_) sum += bytes;
    return sum;
  }

  FakeMemory memory_;
  std::map<std::size_t, std::size_t> live_;
};

TEST_F(SegmentsTest, GrowsByWholeSegmentsWithinTheLimit) {
  Segments segments(memory_, {.limit = 4_MiB, .segment_bytes = 1_MiB, .most_bytes = 3_MiB});
  EXPECT_TRUE(take(segments, 0, 64));
  EXPECT_EQ(segments.bytes(), 1_MiB);
  EXPECT_TRUE(take(segments, 10_MiB, 2_MiB));  // Larger than a segment: one of its own.
  EXPECT_EQ(segments.bytes(), 3_MiB);
  EXPECT_FALSE(take(segments, 20_MiB, 2_MiB));
  EXPECT_TRUE(take(segments, 20_MiB, 1_MiB));
  EXPECT_EQ(segments.bytes(), 4_MiB);
  Segments::Place place;
  EXPECT_TRUE(segments.find(10_MiB + 100, place));
  EXPECT_EQ(place.offset, 100u);
  EXPECT_FALSE(segments.find(30_MiB, place));
  give(segments, 10_MiB);
  segments.give_empty();
  EXPECT_EQ(segments.bytes(), 2_MiB);
}

TEST_F(SegmentsTest, RefusesMoreThanOneSegmentMayHave) {
  Segments segments(memory_, {.limit = 8_MiB, .segment_bytes = 1_MiB, .most_bytes = 2_MiB});
  EXPECT_FALSE(take(segments, 0, 3_MiB));
  memory_.refuses = true;
  EXPECT_FALSE(take(segments, 0, 64));
  memory_.refuses = false;
  EXPECT_TRUE(take(segments, 0, 64));
}

TEST_F(SegmentsTest, MovesLiveBlocksTogetherBeforeItRefuses) {
  Segments segments(memory_, {.limit = 1_MiB, .segment_bytes = 256_KiB, .most_bytes = 1_MiB});
  for (std::size_t i = 0; i < 256; ++i) ASSERT_TRUE(take(segments, i * 4096, 4096));
  for (std::size_t i = 0; i < 256; i += 2) give(segments, i * 4096);
  EXPECT_TRUE(take(segments, 10_MiB, 256_KiB));  // No hole is larger than 4 KiB.
  EXPECT_TRUE(take(segments, 20_MiB, 256_KiB));
  EXPECT_FALSE(take(segments, 30_MiB, 4096));
  for (const auto& [address, bytes] : live_) check(segments, address);
  EXPECT_GT(segments.moved_bytes(), 0u);
  EXPECT_EQ(segments.live_bytes(), 1_MiB);
}

// Blocks that move by less than their length go through another hole, or in pieces.
TEST_F(SegmentsTest, MovesBlocksThatOverlapTheirNewPlace) {
  Segments one(memory_, {.limit = 64_KiB, .segment_bytes = 64_KiB, .most_bytes = 64_KiB});
  ASSERT_TRUE(take(one, 0, 4_KiB) && take(one, 8_KiB, 40_KiB) && take(one, 80_KiB, 4_KiB));
  give(one, 0);
  ASSERT_TRUE(take(one, 200_KiB, 20_KiB));
  check(one, 8_KiB);
  check(one, 80_KiB);
}

// While live + request are at most 7/8 of the limit less one segment, requests up to an eighth of a segment never fail.
TEST_F(SegmentsTest, AnAdversaryIsNotRefused) {
  constexpr std::size_t kSegment = 64_KiB, kLimit = 8 * kSegment;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    memory_ = {};
    live_.clear();
    Segments segments(memory_, {.limit = kLimit, .segment_bytes = kSegment, .most_bytes = kSegment});
    std::size_t next = 0;
    for (int round = 0; round < 3000; ++round) {
      // Phases of small and large blocks; every other one is freed between them.
      const std::size_t most = round / 300 % 2 == 0 ? kSegment / 64 : kSegment / 8;
      const std::size_t bytes = (random() % (most / 64) + 1) * 64;
      if (live_bytes() + bytes <= (kLimit - kSegment) / 8 * 7) {
        ASSERT_TRUE(take(segments, next, bytes)) << "live " << live_bytes() << ", asked " << bytes;
        next += bytes + 4096;
      } else {
        std::size_t i = 0;
        for (auto at = live_.begin(); at != live_.end();) {
          const std::size_t address = (at++)->first;
          if (i++ % 2 == 0) give(segments, address);
        }
      }
      ASSERT_LE(segments.bytes(), kLimit);
    }
    for (const auto& [address, bytes] : live_) check(segments, address);
  }
}

}  // namespace
}  // namespace plimsoll::internal
