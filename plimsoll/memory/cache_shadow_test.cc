#include "plimsoll/memory/cache_shadow.h"

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

TEST(CacheShadow, HasWhatWasGivenAndNotTaken) {
  CacheShadow shadow;
  EXPECT_FALSE(shadow.take(1024));
  shadow.give(1024);
  shadow.give(1024);
  shadow.give(4096);
  EXPECT_EQ(shadow.blocks(), 3u);
  EXPECT_EQ(shadow.bytes(), 6144u);
  EXPECT_TRUE(shadow.take(1024));
  EXPECT_TRUE(shadow.take(1024));
  EXPECT_FALSE(shadow.take(1024));
  EXPECT_FALSE(shadow.take(2048));
  EXPECT_EQ(shadow.bytes(), 4096u);
  shadow.clear();
  EXPECT_FALSE(shadow.take(4096));
  EXPECT_EQ(shadow.blocks(), 0u);
  EXPECT_EQ(shadow.bytes(), 0u);
}

TEST(CacheShadow, ForgetsSizesForWhichItHasNoRoom) {
  CacheShadow shadow;
  std::size_t given = 0, found = 0;
  for (std::size_t i = 1; i <= 2000; ++i) shadow.give(64 * i), given += 64 * i;
  EXPECT_LT(shadow.blocks(), 2000u);
  EXPECT_LT(shadow.bytes(), given);
  for (std::size_t i = 1; i <= 2000; ++i) found += shadow.take(64 * i);
  EXPECT_GT(found, 400u);
  EXPECT_EQ(shadow.blocks(), 0u);
  EXPECT_EQ(shadow.bytes(), 0u);
}

}  // namespace
}  // namespace plimsoll
