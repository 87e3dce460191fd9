#include "plimsoll/cli/replay/replay_progress.h"

#include <unistd.h>

#include <cstdio>

#include "plimsoll/base/terminal.h"

namespace plimsoll::internal {

ReplayProgress::ReplayProgress() : terminal_(rewrites_lines(STDERR_FILENO)) {}

ReplayProgress::~ReplayProgress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void ReplayProgress::show(int pass, int of) {
  if (!terminal_ || std::chrono::steady_clock::now() - begin_ < std::chrono::seconds(1)) return;
  std::fprintf(stderr, "\r\033[Kreplay: pass %d of %d", pass, of);
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace plimsoll::internal
