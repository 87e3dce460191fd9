#include "plimsoll/base/bytes.h"

#include <gtest/gtest.h>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

TEST(Bytes, PrintsTheLargestUnitWithOneDecimal) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(24_MiB), "24.0 MiB");
  EXPECT_EQ(format_bytes(1_MiB - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(SIZE_MAX), "16.0 EiB");
  EXPECT_EQ(format_bytes_exactly(24_MiB), "24.0 MiB (25165824 bytes)");
  EXPECT_EQ(format_bytes_exactly(1), "1 byte");
}

TEST(Bytes, ReadsUnitsInAnyCaseWithOrWithoutSpace) {
  EXPECT_EQ(parse_bytes("24MiB"), 24_MiB);
  EXPECT_EQ(parse_bytes("1.5 GiB"), 1536_MiB);
  EXPECT_EQ(parse_bytes(" 64k "), 64_KiB);
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("7 bytes"), 7u);
  EXPECT_EQ(parse_bytes("18446744073709551615"), SIZE_MAX);
  EXPECT_EQ(parse_bytes("9.5EiB"), std::size_t{19} << 59);
}

TEST(Bytes, RefusesWhatIsNotASize) {
  for (const char* text : {"", "MiB", "-1", "1.2.3", "4XiB", "1e9", "99999999999999999999", "17EiB", "4MiBs", "0x10"})
    EXPECT_THROW(parse_bytes(text), InvalidArgument) << text;
}

TEST(Bytes, ReadsBackWhatItPrints) {
  for (const std::size_t size : {1_KiB, 3_MiB, 7_GiB, 512_MiB}) EXPECT_EQ(parse_bytes(format_bytes(size)), size);
}

}  // namespace
}  // namespace plimsoll
