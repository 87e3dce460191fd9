#include "plimsoll/base/call_site.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace plimsoll {
namespace {

std::uint32_t number_here(CallSite site = CallSite::here()) { return site_number(site); }

TEST(CallSite, IsThePlaceOfTheCall) {
  const std::uint32_t number = number_here();
  EXPECT_EQ(std::string(site_text(number)), "base/call_site_test.cc:" + std::to_string(__LINE__ - 1));
  EXPECT_NE(number_here(), number);
}

TEST(CallSite, HasOneNumberOnAllThreads) {
  const CallSite site{"src/train.cc", 42};
  const std::uint32_t number = site_number(site);
  EXPECT_EQ(site_number({"src/train.cc", 42}), number);
  std::uint32_t other = 0;
  std::thread([&] { other = site_number(site); }).join();
  EXPECT_EQ(other, number);
  EXPECT_STREQ(site_text(number), "src/train.cc:42");
  EXPECT_STREQ(site_text(site_number({"somebody/work/src/train.cc", 42})), "src/train.cc:42");
  EXPECT_STREQ(site_text(site_number({"train.cc", 7})), "train.cc:7");
}

TEST(CallSite, IsEmptyForOurOwnFilesAndForNoPlace) {
  const std::string here = __FILE__;
  const std::string ours = here.substr(0, here.find("base/")) + "model/layer.cc";
  EXPECT_EQ(site_number({ours.c_str(), 191}), 0u);
  EXPECT_EQ(site_number({"", 3}), 0u);
  EXPECT_EQ(site_number({"a.cc", 0}), 0u);
  EXPECT_STREQ(site_text(0), "");
  EXPECT_STREQ(site_text(4000000000u), "");
}

}  // namespace
}  // namespace plimsoll
