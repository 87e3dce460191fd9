// run_in_child(): runs a function in a forked child.
//
//   EXPECT_EQ(run_in_child([&] { return works() ? 0 : 1; }), 0);
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace plimsoll {

// The child's exit code; -1 when it hung or was killed.
template <class F>
int run_in_child(F&& f) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(f());
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

}  // namespace plimsoll
