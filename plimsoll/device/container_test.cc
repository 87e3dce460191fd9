// A process in a control group, like every process in a container: its default limit comes from the group's, and
// however much it asks for, it is refused rather than killed.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "plimsoll/device/allocate.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/device/device_testing.h"
#include "plimsoll/memory/system_memory.h"

namespace plimsoll {
namespace {

// A new group below that of this process (or beside it, where version 2 requires that), removed at the end.
class TestGroup {
 public:
  explicit TestGroup(std::size_t limit) {
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line) && why_not_.empty() && folder_.empty();) {
      const std::size_t first = line.find(':'), second = line.find(':', first + 1);
      const std::string controllers = line.substr(first + 1, second - first - 1), own = line.substr(second + 1);
      if (controllers == "memory") try_below("/sys/fs/cgroup/memory" + own, "memory.limit_in_bytes", limit);
      if (!controllers.empty() || !folder_.empty()) continue;
      try_below("/sys/fs/cgroup" + own, "memory.max", limit);
      if (folder_.empty() && own != "/")
        try_below(std::filesystem::path("/sys/fs/cgroup" + own).parent_path(), "memory.max", limit);
    }
    if (folder_.empty()) why_not_ = "no control group with a limit can be made here: " + why_not_;
  }
  ~TestGroup() {
    if (!folder_.empty()) rmdir(folder_.c_str());
  }
  const std::string& why_not() const { return why_not_; }
  const std::string& name() const { return name_; }
  bool made() const { return !folder_.empty(); }
  bool enter() const { return write("cgroup.procs", getpid()); }
  std::size_t number(const std::string& file, const std::string& key = "") const {
    std::ifstream text(folder_ + "/" + file);
    std::size_t number = 0;
    for (std::string word; !key.empty() && text >> word && word != key;) {
    }
    text >> number;
    return number;
  }
  bool old() const { return old_; }

 private:
  void try_below(const std::string& parent, const std::string& limit_file, std::size_t limit) {
    name_ = "plimsoll_test_" + std::to_string(getpid());
    folder_ = parent + "/" + name_;
    old_ = limit_file != "memory.max";
    std::error_code error;
    if (!std::filesystem::create_directory(folder_, error)) {
      why_not_ = error ? error.message() : "it exists";
    } else if (!std::filesystem::exists(folder_ + "/" + limit_file) || !write(limit_file, limit)) {
      why_not_ = "its memory cannot be limited";
      rmdir(folder_.c_str());
    } else {
      return;
    }
    folder_.clear();
  }
  template <class T>
  bool write(const std::string& file, T value) const {
    std::ofstream out(folder_ + "/" + file);
    out << value << std::flush;
    return out.good();
  }

  std::string folder_, name_, why_not_;
  bool old_ = false;
};

class Container : public DeviceFixture {};

// What the process in the group does; 0 on success.
int fill_the_default_limit(const std::string& group) {
  const DefaultLimit limit = default_memory_limit();
  if (!limit.from.starts_with("control group ") || !limit.from.ends_with(group)) return 2;
  std::vector<Block> blocks;
  try {
    for (;;) {
      blocks.push_back(allocate(1_MiB));
      std::memset(blocks.back().data(), 1, 1_MiB);
    }
  } catch (const OutOfMemory& error) {
    if (error.limit() != limit.bytes) return 3;
  }
  if (memory_stats().bytes_in_use + 1_MiB <= limit.bytes) return 4;
  for (const Block& block : blocks) deallocate(block);
  return trim() >= limit.bytes - 1_MiB ? 0 : 5;
}

TEST_F(Container, SetsTheDefaultLimitAndNeverKills) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own memory is counted too";
  constexpr std::size_t kLimit = 192_MiB;
  const TestGroup group(kLimit);
  if (!group.made()) GTEST_SKIP() << group.why_not();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(group.enter() ? fill_the_default_limit(group.name()) : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(WIFSIGNALED(status)) << "killed by signal " << WTERMSIG(status);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: the group cannot be entered, 2: the default limit is not the group's, 3: "
                                       "another limit refused, 4: refused "
                                       "too early, 5: not given back";
  const std::size_t kills =
      group.old() ? group.number("memory.oom_control", "oom_kill") : group.number("memory.events", "oom_kill");
  EXPECT_EQ(kills, 0u);
  const std::size_t peak = group.number(group.old() ? "memory.max_usage_in_bytes" : "memory.peak");
  if (peak > 0) {  // Kernels before 5.19 have no memory.peak.
    EXPECT_GT(peak, kLimit * 3 / 4) << "the process was not in the group";
  }
}

}  // namespace
}  // namespace plimsoll
