#include "plimsoll/memory/internal/memory_groups.h"

#include <algorithm>
#include <sstream>
#include <string_view>

#include "plimsoll/memory/internal/text_files.h"

namespace plimsoll::internal {
namespace {

// Where one hierarchy of groups is mounted, and this process's place in it.
struct Hierarchy {
  bool old = false;  // Version 1.
  std::string mount_point;
  std::string group;  // Below the mount point: "" or "/a/b".
};

bool lists(std::string_view commas, std::string_view word) {
  for (std::size_t start = 0; start <= commas.size();) {
    const std::size_t end = std::min(commas.find(',', start), commas.size());
    if (commas.substr(start, end - start) == word) return true;
    start = end + 1;
  }
  return false;
}

// This process's path in the hierarchy of the memory controller (version 1) or in the unified one; "" for none.
std::string own_path(const std::string& groups, bool old) {
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (old ? lists(controllers, "memory") : line.starts_with("0::")) return line.substr(second + 1);
  }
  return "";
}

// `path` as seen below a mount of `mount_root`; "" when it is that root, or outside what is mounted.
std::string below(std::string path, const std::string& mount_root) {
  if (mount_root != "/") {
    const bool inside =
        path.starts_with(mount_root) && (path.size() == mount_root.size() || path[mount_root.size()] == '/');
    path = inside ? path.substr(mount_root.size()) : "";
  }
  return path == "/" || path.find("/..") != std::string::npos ? "" : path;
}

std::vector<Hierarchy> find_hierarchies(const std::string& root) {
  const std::string groups = read_text_file(root + "/proc/self/cgroup");
  std::istringstream mounts(read_text_file(root + "/proc/self/mountinfo"));
  std::vector<Hierarchy> found;
  for (std::string line; std::getline(mounts, line);) {  // 35 31 0:32 ROOT POINT rw shared:1 - TYPE SOURCE OPTIONS
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::string id, parent, device, mount_root, point, type, source, options;
    std::istringstream(line) >> id >> parent >> device >> mount_root >> point;
    std::istringstream(line.substr(dash + 3)) >> type >> source >> options;
    const bool old = type == "cgroup";
    if (type != "cgroup2" && !(old && lists(options, "memory"))) continue;
    const std::string path = own_path(groups, old);
    if (!path.empty()) found.push_back({old, point, below(path, mount_root)});
  }
  return found;
}

std::size_t stat_bytes(const std::string& stat, std::string_view key) {
  std::size_t bytes = 0;
  std::istringstream(std::string(value_of_line(stat, key))) >> bytes;
  return bytes;
}

MemoryGroup read_group(const std::string& folder, bool old) {
  MemoryGroup group;
  const auto number = [&](const char* file) { return parse_group_limit(read_text_file(folder + file)); };
  group.limit = old ? number("/memory.limit_in_bytes") : std::min(number("/memory.max"), number("/memory.high"));
  if (group.limit == kNoMemoryLimit) return group;
  group.used = number(old ? "/memory.usage_in_bytes" : "/memory.current");
  if (group.used == kNoMemoryLimit) group.used = 0;
  const std::string stat = read_text_file(folder + "/memory.stat");
  group.reclaimable = stat_bytes(stat, old ? "total_inactive_file" : "inactive_file") +
                      stat_bytes(stat, old ? "total_active_file" : "active_file") / 2;
  return group;
}

}  // namespace

std::vector<MemoryGroup> read_memory_groups(const std::string& root) {
  std::vector<MemoryGroup> groups;
  for (Hierarchy& at : find_hierarchies(root)) {
    for (;;) {
      MemoryGroup group = read_group(root + at.mount_point + at.group, at.old);
      group.name = at.group.empty() ? "/" : at.group;
      if (group.limit != kNoMemoryLimit) groups.push_back(std::move(group));
      if (at.group.empty()) break;
      at.group.resize(at.group.rfind('/'));
    }
  }
  return groups;
}

}  // namespace plimsoll::internal
