#include "plimsoll/cli/share_progress.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "plimsoll/base/terminal.h"

namespace plimsoll::internal {

ShareProgress::ShareProgress(std::string name) : name_(std::move(name)), terminal_(rewrites_lines(STDERR_FILENO)) {}

void ShareProgress::show(double share) {
  const int percent = static_cast<int>(share * 100);
  if (!terminal_ || percent == shown_ || std::chrono::steady_clock::now() - begin_ < std::chrono::seconds(1)) return;
  std::fprintf(stderr, "\r\033[K%s: %d %%", name_.c_str(), percent);
  std::fflush(stderr);
  shown_ = percent;
}

void ShareProgress::clear() {
  if (shown_ >= 0) std::fputs("\r\033[K", stderr);
  shown_ = -1;
}

}  // namespace plimsoll::internal
