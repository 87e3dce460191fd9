#include "plimsoll/base/processors.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <thread>

namespace plimsoll::internal {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The directory of this process's control group, below the mount point of version 2, or "".
std::string own_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::")) return line.substr(3);
  return "";
}

int tighter(int a, int b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

// The smallest quota of the group and its ancestors; 0 when there is none.
int quota_of_groups() {
  int quota = 0;
  for (std::string group = own_group();;) {
    quota = tighter(quota, processors_of_quota(first_line("/sys/fs/cgroup" + group + "/cpu.max")));
    if (group.empty()) break;
    group.resize(group.rfind('/'));
  }
  const std::string old = "/sys/fs/cgroup/cpu/cpu.cfs_";  // Version 1.
  return tighter(quota, processors_of_quota(first_line(old + "quota_us") + " " + first_line(old + "period_us")));
}

}  // namespace

int processors_of_quota(std::string_view quota) {
  const char* const end = quota.data() + quota.size();
  long microseconds = 0, period = 0;
  const auto first = std::from_chars(quota.data(), end, microseconds);
  if (first.ec != std::errc() || first.ptr == end) return 0;
  const auto second = std::from_chars(first.ptr + 1, end, period);
  if (second.ec != std::errc() || microseconds <= 0 || period <= 0) return 0;
  return static_cast<int>(std::min<long>((microseconds - 1) / period + 1, 4096));
}

int usable_processors() {
  const int affinity = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int quota = quota_of_groups();
  return quota > 0 ? std::min(quota, affinity) : affinity;
}

}  // namespace plimsoll::internal
