#include "plimsoll/base/crc32c.h"

#include <gtest/gtest.h>

#include <random>

namespace plimsoll::internal {
namespace {

TEST(Crc32c, MatchesTheStandardsValues) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(Crc32c, MasksAndUnmasks) {
  EXPECT_EQ(mask_crc32c(0), 0xa282ead8u);
  for (const std::uint32_t crc : {0u, 1u, 0xe3069283u, 0xffffffffu}) EXPECT_EQ(unmask_crc32c(mask_crc32c(crc)), crc);
}

TEST(Crc32c, IsTheSameByInstructionAndByTablesInOneOrManyPieces) {
  std::mt19937 random(7);
  std::vector<std::byte> bytes(40000);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (const std::size_t size : {0u, 1u, 7u, 8u, 767u, 768u, 769u, 12287u, 12288u, 13100u, 39990u}) {
    const std::span<const std::byte> part = std::span(bytes).subspan(size % 9, size);
    const std::uint32_t whole = crc32c(part);
    EXPECT_EQ(whole, crc32c_by_tables(part)) << size;
    EXPECT_EQ(whole, crc32c(part.subspan(size / 3), crc32c(part.first(size / 3)))) << size;
    EXPECT_EQ(whole, crc32c_by_tables(part.subspan(size / 3), crc32c_by_tables(part.first(size / 3)))) << size;
    const std::uint32_t first = crc32c(part.first(size / 3)), second = crc32c(part.subspan(size / 3));
    EXPECT_EQ(whole, combine_crc32c(first, second, size - size / 3)) << size;
  }
}

}  // namespace
}  // namespace plimsoll::internal
