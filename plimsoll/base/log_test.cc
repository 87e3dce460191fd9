#include "plimsoll/base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

class LogTest : public testing::Test {
 protected:
  ~LogTest() override {
    set_log_sink(nullptr);
    set_log_level(level_before_);
  }
  LogLevel level_before_ = log_level();
};

TEST_F(LogTest, ShowsWarningsAndErrorsAtFirst) {
  EXPECT_EQ(log_level(), LogLevel::warning);
  EXPECT_TRUE(log_enabled(LogLevel::error));
  EXPECT_TRUE(log_enabled(LogLevel::warning));
  EXPECT_FALSE(log_enabled(LogLevel::info));
}

TEST_F(LogTest, WritesALineToStandardError) {
  testing::internal::CaptureStderr();
  log_message(LogLevel::warning, "pool: 3 of {4} threads");
  log_message(LogLevel::info, "unseen");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "plimsoll: warning: pool: 3 of {4} threads\n");
}

TEST_F(LogTest, DropsWhatIsBelowTheLevel) {
  std::vector<std::string> seen;
  set_log_sink([&](LogLevel, std::string_view text) { seen.emplace_back(text); });
  EXPECT_EQ(set_log_level(LogLevel::error), LogLevel::warning);
  log_message(LogLevel::warning, "a");
  log_message(LogLevel::error, "b");
  EXPECT_EQ(set_log_level(LogLevel::debug), LogLevel::error);
  log_message(LogLevel::debug, "c");
  set_log_level(LogLevel::off);
  log_message(LogLevel::error, "d");
  log_message(LogLevel::off, "e");
  EXPECT_EQ(seen, (std::vector<std::string>{"b", "c"}));
}

TEST_F(LogTest, CallsTheSinkOneMessageAtATime) {
  int inside = 0, seen = 0;
  set_log_sink([&](LogLevel, std::string_view) {
    EXPECT_EQ(++inside, 1);
    ++seen;
    --inside;
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int k = 0; k < 100; ++k) log_message(LogLevel::error, "x");
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(seen, 400);
}

TEST_F(LogTest, SurvivesASinkThatThrows) {
  set_log_sink([](LogLevel, std::string_view) { throw InvalidArgument("sink"); });
  EXPECT_NO_THROW(log_message(LogLevel::error, "x"));
}

TEST_F(LogTest, ReadsLevelNames) {
  EXPECT_EQ(parse_log_level("warning"), LogLevel::warning);
  EXPECT_EQ(parse_log_level("off"), LogLevel::off);
  EXPECT_THROW(parse_log_level("loud"), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
