#include "plimsoll/memory/internal/request_log.h"

#include <gtest/gtest.h>

#include "plimsoll/base/bytes.h"

namespace plimsoll::internal {
namespace {

std::vector<LoggedRequest> all_of(const RequestLog& log) {
  std::vector<LoggedRequest> all;
  log.for_each([&](const LoggedRequest& request) {
    all.push_back(request);
    return true;
  });
  return all;
}

TEST(RequestLog, TellsWhatItWasTold) {
  RequestLog log;
  EXPECT_TRUE(log.add_take(64, 64, 4096));
  EXPECT_TRUE(log.add_take(1024_GiB + 192, 2_MiB, 4097));  // Its size takes a second word.
  EXPECT_TRUE(log.add_refused(1_GiB, 128));
  EXPECT_TRUE(log.add(LoggedRequest::kTrim));
  EXPECT_TRUE(log.add_take(128, 64, 70'000));  // Of another batch of ids.
  EXPECT_TRUE(log.add_give(70'000));
  EXPECT_TRUE(log.add_give(4097));
  const std::vector<LoggedRequest> all = all_of(log);
  ASSERT_EQ(all.size(), 7u);
  EXPECT_EQ(all[0].kind, LoggedRequest::kTake);
  EXPECT_EQ(all[0].size, 64u);
  EXPECT_EQ(all[0].alignment, 64u);
  EXPECT_EQ(all[1].size, 1024_GiB + 192);
  EXPECT_EQ(all[1].alignment, 2_MiB);
  EXPECT_EQ(all[2].kind, LoggedRequest::kRefused);
  EXPECT_EQ(all[2].size, 1_GiB);
  EXPECT_EQ(all[2].alignment, 128u);
  EXPECT_EQ(all[3].kind, LoggedRequest::kTrim);
  EXPECT_EQ(all[4].size, 128u);
  EXPECT_EQ(all[5].kind, LoggedRequest::kGive);
  EXPECT_EQ(all[5].which, 2u);
  EXPECT_EQ(all[6].which, 1u);
}

TEST(RequestLog, RefusesABlockThatItDoesNotKnow) {
  RequestLog log;
  EXPECT_FALSE(log.add_give(7));
  EXPECT_TRUE(log.add_take(64, 64, 7));
  EXPECT_FALSE(log.add_give(6));
  EXPECT_FALSE(log.add_give(8));
  EXPECT_TRUE(log.add_give(7));
}

TEST(RequestLog, EndsAtItsSizeAndStopsWhenAsked) {
  RequestLog log;
  for (std::size_t i = 0; i < RequestLog::kMostWords; ++i) ASSERT_TRUE(log.add_take(64, 64, i));
  EXPECT_FALSE(log.add(LoggedRequest::kTrim));
  EXPECT_EQ(log.words(), RequestLog::kMostWords);
  EXPECT_LE(log.bytes(), RequestLog::kMostWords * 4 + 1024);
  int seen = 0;
  log.for_each([&](const LoggedRequest&) { return ++seen < 3; });
  EXPECT_EQ(seen, 3);
}

}  // namespace
}  // namespace plimsoll::internal
