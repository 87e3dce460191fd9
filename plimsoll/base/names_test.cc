#include "plimsoll/base/names.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace plimsoll {
namespace {

TEST(Intern, GivesOnePointerPerText) {
  const std::string text = "conv2d", same = "conv2d";
  const char* name = intern(text);
  EXPECT_STREQ(name, "conv2d");
  EXPECT_EQ(intern(same), name);
  EXPECT_NE(intern("conv2"), name);
  EXPECT_STREQ(intern(""), "");
  EXPECT_EQ(intern({}), intern(""));
}

TEST(Intern, EndsANameAtAZeroByte) { EXPECT_EQ(intern(std::string_view("ab\0c", 4)), intern("ab")); }

TEST(Intern, KeepsPointersValidWhileTheTableGrows) {
  std::vector<const char*> names;
  const auto text = [](int i) { return "growing/name/of/some/length/" + std::to_string(i); };
  for (int i = 0; i < 5000; ++i) names.push_back(intern(text(i)));
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(names[i], text(i));
    ASSERT_EQ(intern(text(i)), names[i]);
  }
}

TEST(Intern, CountsNamesAndBytesOnce) {
  static int run = 0;  // The names of an earlier run of this test still exist.
  const std::string name = std::string(1000, 'n') + std::to_string(run++);
  const InternedNames before = interned_names();
  intern(name);
  const InternedNames after = interned_names();
  EXPECT_EQ(after.count, before.count + 1);
  EXPECT_GE(after.bytes, before.bytes + 1000);
  intern(name);
  EXPECT_EQ(interned_names().bytes, after.bytes);
}

TEST(Intern, AgreesBetweenThreads) {
  std::vector<std::vector<const char*>> found(4);
  std::vector<std::thread> threads;
  for (auto& mine : found)
    threads.emplace_back([&mine] {
      for (int round = 0; round < 3; ++round)
        for (int i = 0; i < 300; ++i) mine.push_back(intern("thread name " + std::to_string(i)));
    });
  for (auto& thread : threads) thread.join();
  for (const auto& mine : found) EXPECT_EQ(mine, found[0]);
}

}  // namespace
}  // namespace plimsoll
