#include "plimsoll/tensor/name_scope.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "plimsoll/base/error.h"
#include "plimsoll/tensor/tensor_testing.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

TEST(NameScope, JoinsNamesInsideOfEachOther) {
  EXPECT_EQ(NameScope::current(), "");
  {
    const NameScope outer("encoder");
    EXPECT_EQ(NameScope::current(), "encoder");
    {
      const NameScope inner("layer1");
      EXPECT_EQ(NameScope::current(), "encoder/layer1");
    }
    EXPECT_EQ(NameScope::current(), "encoder");
  }
  EXPECT_EQ(NameScope::current(), "");
}

TEST(NameScope, IsWrittenInWhatIsMadeInside) {
  const NameScope scope("encoder");
  const Tensor x = some();
  EXPECT_STREQ(x.record()->scope(), "encoder");
}

TEST(NameScope, AcceptsAPath) {
  const NameScope scope("a/b");
  EXPECT_EQ(NameScope::current(), "a/b");
}

TEST(NameScope, RefusesWhatIsNoNameAndStaysAsItWas) {
  const NameScope outer("outer");
  for (const char* name : {"", "/a", "a/", "/"}) EXPECT_THROW(NameScope{name}, InvalidArgument) << name;
  EXPECT_EQ(NameScope::current(), "outer");
}

TEST(NameScope, BelongsToItsThread) {
  const NameScope scope("here");
  std::string there = "unset";
  std::thread([&] { there = NameScope::current(); }).join();
  EXPECT_EQ(there, "");
}

TEST(NameScope, ComesWithANamedTidy) {
  const Tensor x = tidy("step", [] { return some(); });
  EXPECT_STREQ(x.record()->scope(), "step");
  EXPECT_EQ(NameScope::current(), "");
  EXPECT_THROW(tidy("", [] {}), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
