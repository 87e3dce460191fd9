#include "plimsoll/memory/system_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "plimsoll/base/bytes.h"

namespace plimsoll {
namespace {

// Another machine, below a folder of its own.
class SystemMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "system_memory_" + std::to_string(getpid());
    std::filesystem::remove_all(root_);
    write("/proc/meminfo",
          "MemTotal:       8388608 kB\nMemFree:  1 kB\nMemAvailable:   4194304 kB\nSwapTotal: 1024 kB\nSwapFree: 512 "
          "kB\n");
    write("/proc/self/statm", "1000 500 0 0 0 0 0\n");
    write("/proc/self/limits",
          "Limit  Soft Limit  Hard Limit  Units\nMax address space         unlimited            unlimited            "
          "bytes\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void mount_version_two(const std::string& mount_root, const std::string& own_group) {
    write("/proc/self/mountinfo",
          "30 23 0:28 " + mount_root + " /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw\n");
    write("/proc/self/cgroup", "0::" + own_group + "\n");
  }
  void mount_version_one(const std::string& mount_root, const std::string& own_group) {
    write("/proc/self/mountinfo", "34 31 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n35 31 0:32 " +
                                      mount_root + " /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n");
    write("/proc/self/cgroup", "5:cpu,cpuacct:/other\n4:hugetlb,memory:" + own_group + "\n0::/\n");
  }
  SystemMemory read() const { return read_system_memory(root_); }

  std::string root_;
};

TEST_F(SystemMemoryTest, ReadsTheMachineAndTheProcess) {
  const SystemMemory system = read();
  EXPECT_EQ(system.total, 8_GiB);
  EXPECT_EQ(system.available, 4_GiB);
  EXPECT_EQ(system.swap_total, 1_MiB);
  EXPECT_EQ(system.swap_free, 512_KiB);
  EXPECT_EQ(system.resident, 500 * static_cast<std::size_t>(getpagesize()));
  EXPECT_EQ(system.address_space, 1000 * static_cast<std::size_t>(getpagesize()));
  EXPECT_EQ(system.address_space_limit, kNoMemoryLimit);
  EXPECT_TRUE(system.groups.empty());
  EXPECT_EQ(system.capacity(), 8_GiB);
}

TEST_F(SystemMemoryTest, PrefersTheExactCountOfResidentPages) {
  write("/proc/self/smaps_rollup",
        "55c0-7fff ---p 00000000 00:00 0   [rollup]\nRss:                1704 kB\nPss:  9 kB\nPss_Dirty: 1 kB\n");
  EXPECT_EQ(read().resident, 1704_KiB);
}

TEST_F(SystemMemoryTest, FindsTheLimitsOfVersionTwoGroupsAndTheirParents) {
  mount_version_two("/", "/user.slice/job");
  write("/sys/fs/cgroup/user.slice/job/memory.max", "max\n");
  write("/sys/fs/cgroup/user.slice/job/memory.high", "536870912\n");
  write("/sys/fs/cgroup/user.slice/job/memory.current", "104857600\n");
  write("/sys/fs/cgroup/user.slice/job/memory.stat", "anon 1\nfile 2\ninactive_file 20971520\nactive_file 10485760\n");
  write("/sys/fs/cgroup/user.slice/memory.max", "1073741824\n");
  write("/sys/fs/cgroup/user.slice/memory.high", "max\n");
  write("/sys/fs/cgroup/user.slice/memory.current", "943718400\n");
  const SystemMemory system = read();
  ASSERT_EQ(system.groups.size(), 2u);
  EXPECT_EQ(system.groups[0].name, "/user.slice/job");
  EXPECT_EQ(system.groups[0].limit, 512_MiB);
  EXPECT_EQ(system.groups[0].left(), 512_MiB - 100_MiB + 25_MiB);
  EXPECT_EQ(system.groups[1].name, "/user.slice");
  EXPECT_EQ(system.groups[1].left(), 124_MiB);
  EXPECT_EQ(system.capacity(), 512_MiB);
  EXPECT_EQ(default_memory_limit(system).from, "control group /user.slice");  // The parent has less left.
  EXPECT_EQ(default_memory_limit(system).bytes, 124_MiB - 31_MiB);
}

TEST_F(SystemMemoryTest, FindsTheLimitsOfVersionOneGroups) {
  mount_version_one("/", "/docker/4f2a");
  write("/sys/fs/cgroup/memory/docker/4f2a/memory.limit_in_bytes", "2147483648\n");
  write("/sys/fs/cgroup/memory/docker/4f2a/memory.usage_in_bytes", "1073741824\n");
  write("/sys/fs/cgroup/memory/docker/4f2a/memory.stat",
        "inactive_file 1\nactive_file 1\ntotal_inactive_file 536870912\ntotal_active_file 0\n");
  write("/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "9223372036854771712\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const SystemMemory system = read();
  ASSERT_EQ(system.groups.size(), 1u);
  EXPECT_EQ(system.groups[0].left(), 1536_MiB);
  EXPECT_EQ(default_memory_limit(system).bytes, (1536_MiB - 1536_MiB / 20) / 64_KiB * 64_KiB);
  EXPECT_EQ(default_memory_limit(system).from, "control group /docker/4f2a");
}

TEST_F(SystemMemoryTest, SeesAContainersOwnGroupAtTheTopOfWhatIsMounted) {
  mount_version_two("/docker/4f2a", "/docker/4f2a");
  write("/sys/fs/cgroup/memory.max", "268435456\n");
  write("/sys/fs/cgroup/memory.current", "1048576\n");
  ASSERT_EQ(read().groups.size(), 1u);
  EXPECT_EQ(read().groups[0].name, "/");
  mount_version_two("/", "/../../other");  // Of another name space: only what is mounted can be seen.
  ASSERT_EQ(read().groups.size(), 1u);
  mount_version_two("/docker/4f2a", "/docker/4f2abc");
  EXPECT_EQ(read().groups.size(), 1u);
  mount_version_two("/docker", "/docker/4f2a");
  write("/sys/fs/cgroup/4f2a/memory.max", "134217728\n");
  ASSERT_EQ(read().groups.size(), 2u);
  EXPECT_EQ(read().groups[0].limit, 128_MiB);
}

TEST_F(SystemMemoryTest, TakesAThirdOfTheAddressSpaceThatIsLeft) {
  write("/proc/self/limits",
        "Limit  Soft Limit  Hard Limit  Units\nMax address space         1073741824           unlimited            "
        "bytes\n");
  write("/proc/self/statm", std::to_string(256_MiB / static_cast<std::size_t>(getpagesize())) + " 500 0 0 0 0 0\n");
  const DefaultLimit limit = default_memory_limit(read());
  EXPECT_EQ(limit.from, "RLIMIT_AS");
  EXPECT_EQ(limit.bytes, 256_MiB);
  EXPECT_EQ(limit.candidates.size(), 2u);
  EXPECT_EQ(read().capacity(), 1_GiB);
}

TEST_F(SystemMemoryTest, ForgivesDamagedFiles) {
  write("/proc/meminfo", "MemTotal\nMemAvailable: lots kB\n\0x");
  write("/proc/self/limits", "Max address space");
  write("/proc/self/cgroup", "nonsense\n4:memory\n:::\n");
  write("/proc/self/mountinfo", " - \n1 2 3 - cgroup2\n35 31 0:32 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write("/proc/self/statm", "");
  const SystemMemory system = read();
  EXPECT_EQ(system.total, 0u);
  EXPECT_EQ(system.address_space_limit, kNoMemoryLimit);
  EXPECT_EQ(default_memory_limit(system).bytes, 1_MiB);
}

TEST(SystemMemory, LeavesAMarginThatIsAQuarterAtMost) {
  SystemMemory system;
  system.available = 64_MiB;
  EXPECT_EQ(default_memory_limit(system).bytes, 48_MiB);
  system.available = 256_MiB;
  EXPECT_EQ(default_memory_limit(system).bytes, 224_MiB);
  system.available = 20_GiB;
  EXPECT_EQ(default_memory_limit(system).bytes, 19_GiB);
  EXPECT_EQ(default_memory_limit(system).from, "available memory");
  system.available = 0;
  EXPECT_EQ(default_memory_limit(system).bytes, 1_MiB);
}

TEST(SystemMemory, ReadsGroupLimits) {
  EXPECT_EQ(parse_group_limit("max\n"), kNoMemoryLimit);
  EXPECT_EQ(parse_group_limit("9223372036854771712\n"), kNoMemoryLimit);
  EXPECT_EQ(parse_group_limit(""), kNoMemoryLimit);
  EXPECT_EQ(parse_group_limit("0\n"), 0u);
  EXPECT_EQ(parse_group_limit("104857600\n"), 100_MiB);
}

TEST(SystemMemory, SeesThisProcessGrow) {
  constexpr std::size_t kBytes = 16_MiB;
  const std::size_t before = resident_bytes();
  ASSERT_GT(before, 0u);
  void* const data = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  for (std::size_t at = 0; at < kBytes; at += 4096) static_cast<volatile char*>(data)[at] = 1;
  EXPECT_GE(resident_bytes(), before + kBytes);
  munmap(data, kBytes);
  const SystemMemory system = read_system_memory();
  EXPECT_GT(system.total, system.resident);
  EXPECT_GT(system.available, 0u);
  EXPECT_GT(system.address_space, 0u);
  EXPECT_GE(default_memory_limit(system).bytes, 1_MiB);
}

}  // namespace
}  // namespace plimsoll
