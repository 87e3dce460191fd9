#include "plimsoll/plan/validate.h"

#include <gmock/gmock.h>

namespace plimsoll {
namespace {

using testing::HasSubstr;

std::vector<Buffer> two() { return {{.size = 10, .lower = 0, .upper = 5}, {.size = 10, .lower = 4, .upper = 9}}; }

TEST(ValidatePlan, AcceptsBuffersThatAreApartInTimeOrSpace) {
  EXPECT_EQ(validate_plan(two(), std::vector<std::size_t>{0, 10}), "");
  std::vector<Buffer> after = two();
  after[1].lower = 5;
  EXPECT_EQ(validate_plan(after, std::vector<std::size_t>{0, 0}), "");
}

TEST(ValidatePlan, NamesBothBuffersThatShareBytes) {
  EXPECT_EQ(validate_plan(two(), std::vector<std::size_t>{0, 9}),
            "buffer 1 [9, 19) and buffer 0 [0, 10) share bytes at time 4");
}

TEST(ValidatePlan, SeesABufferInsideAnother) {
  const std::vector<Buffer> buffers = {
      {.size = 100, .lower = 0, .upper = 9}, {.size = 1, .lower = 0, .upper = 9}, {.size = 5, .lower = 3, .upper = 4}};
  EXPECT_NE(validate_plan(buffers, std::vector<std::size_t>{0, 100, 50}), "");
}

TEST(ValidatePlan, FindsMisalignmentAndOverflowOfTheCapacity) {
  std::vector<Buffer> buffers = two();
  buffers[1].alignment = 8;
  EXPECT_THAT(validate_plan(buffers, std::vector<std::size_t>{0, 10}), HasSubstr("is not aligned to 8"));
  EXPECT_THAT(validate_plan(two(), std::vector<std::size_t>{0, 10}, {.alignment = 4}), HasSubstr("not aligned to 4"));
  EXPECT_THAT(validate_plan(two(), std::vector<std::size_t>{0, 10}, {.capacity = 19}),
              HasSubstr("passes the capacity"));
  EXPECT_THAT(validate_plan(two(), std::vector<std::size_t>{0}), HasSubstr("2 buffers but 1 offsets"));
}

TEST(ValidatePlan, LetsOthersUseGapsButNotWindows) {
  std::vector<Buffer> buffers = {{.size = 10, .lower = 0, .upper = 9, .gaps = {{2, 6, 0, 4}}},
                                 {.size = 6, .lower = 2, .upper = 6}};
  EXPECT_EQ(validate_plan(buffers, std::vector<std::size_t>{0, 4}), "");
  EXPECT_NE(validate_plan(buffers, std::vector<std::size_t>{0, 3}), "");
  buffers[1].upper = 7;
  EXPECT_NE(validate_plan(buffers, std::vector<std::size_t>{0, 4}), "");
}

TEST(ValidatePlan, KeepsAliasSetsTogetherAndOthersOut) {
  std::vector<Buffer> buffers = {{.size = 4, .lower = 0, .upper = 3, .alias_set = 0},
                                 {.size = 4, .lower = 1, .upper = 4, .alias_set = 0, .alias_offset = 4},
                                 {.size = 8, .lower = 2, .upper = 9, .alias_set = 0},
                                 {.size = 2, .lower = 0, .upper = 9}};
  EXPECT_EQ(validate_plan(buffers, std::vector<std::size_t>{2, 6, 2, 0}), "");
  EXPECT_THAT(validate_plan(buffers, std::vector<std::size_t>{2, 7, 2, 0}),
              HasSubstr("lies apart from its alias set 0"));
  EXPECT_NE(validate_plan(buffers, std::vector<std::size_t>{0, 4, 0, 6}), "");
}

}  // namespace
}  // namespace plimsoll
