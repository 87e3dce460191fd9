#include "plimsoll/base/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace plimsoll {
namespace {

TEST(Terminal, ShowsColorsUnlessItIsDumbOrAskedForNone) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) GTEST_SKIP() << "no pseudo terminals here";
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  EXPECT_TRUE(shows_color(terminal));
  EXPECT_TRUE(rewrites_lines(terminal));
  setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(shows_color(terminal));
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(shows_color(terminal));
  EXPECT_TRUE(rewrites_lines(terminal));
  unsetenv("NO_COLOR");
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(shows_color(terminal));
  EXPECT_FALSE(rewrites_lines(terminal));
  close(terminal);
}

TEST(Terminal, PipesGetPlainLines) {
  setenv("TERM", "xterm", 1);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_FALSE(shows_color(ends[1]));
  EXPECT_FALSE(rewrites_lines(ends[1]));
  for (const int end : ends) close(end);
}

}  // namespace
}  // namespace plimsoll
