// ShareProgress: one line on standard error that shows how much of some work is done, once it has taken a second.
//
//   ShareProgress progress("budget");
//   work([&](double share) { progress.show(share); });
//
// Silent when standard error is not a terminal. clear() and the destructor erase the line.
#pragma once

#include <chrono>
#include <string>

namespace plimsoll::internal {

class ShareProgress {
 public:
  explicit ShareProgress(std::string name);
  ~ShareProgress() { clear(); }
  ShareProgress(const ShareProgress&) = delete;
  ShareProgress& operator=(const ShareProgress&) = delete;
  void show(double share);  // In [0, 1].
  void clear();

 private:
  const std::string name_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  const bool terminal_;
  int shown_ = -1;  // Percent.
};

}  // namespace plimsoll::internal
