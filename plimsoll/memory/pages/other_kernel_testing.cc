#include "plimsoll/memory/pages/other_kernel_testing.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace plimsoll {
namespace {

constexpr long kPage = 4096;
constexpr long kPass = 0x504c1000;  // As sixth argument: let this one through. mmap takes it for an offset.
constexpr int kDontNeedLocked = 24;

OtherKernel emulated;

struct Stretch {
  unsigned char* data;
  std::size_t bytes;
};
constexpr std::size_t kMostOthers = 4096;
Stretch others[kMostOthers];
std::size_t other_count = 0;

// The kernel's own answer, negative for an error.
long pass(long number, long a, long b, long c, long d = 0, long e = 0) {
  const long result = syscall(number, a, b, c, d, e, kPass);
  return result == -1 ? -errno : result;
}

void another_thread_maps(long place, long bytes) {
  void* const data = mmap(reinterpret_cast<void*>(place), static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (data == MAP_FAILED || other_count == kMostOthers) _exit(3);
  std::memset(data, 0xAB, static_cast<std::size_t>(bytes));
  others[other_count++] = {static_cast<unsigned char*>(data), static_cast<std::size_t>(bytes)};
}

// Whether [from, from + bytes) lies in one line of /proc/self/maps. Nothing that allocates: a signal handler asks.
bool is_one_mapping(unsigned long from, unsigned long bytes) {
  static char text[1 << 16];
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) _exit(3);
  unsigned long begin = 0, number = 0;
  int field = 0;  // 0 and 1: the addresses; 2: the rest of the line.
  bool one = false;
  for (ssize_t size = 0; !one && (size = read(file, text, sizeof text)) > 0;)
    for (ssize_t i = 0; i < size && !one; ++i) {
      const char c = text[i];
      if (c == '\n') {
        field = 0;
        number = 0;
      } else if (field < 2 && (c == '-' || c == ' ')) {
        if (field == 0) begin = number;
        if (field == 1) one = begin <= from && from + bytes <= number;
        number = 0;
        ++field;
      } else if (field < 2) {
        number = number * 16 + static_cast<unsigned long>(c <= '9' ? c - '0' : c - 'a' + 10);
      }
    }
  close(file);
  return one;
}

long answer_mremap(const long (&a)[6]) {
  const bool fixed = (a[3] & MREMAP_FIXED) != 0;
  if (fixed && (emulated == OtherKernel::kFailsHalfway ||
                !is_one_mapping(static_cast<unsigned long>(a[0]), static_cast<unsigned long>(a[1])))) {
    if (munmap(reinterpret_cast<void*>(a[4]), static_cast<std::size_t>(a[2])) != 0) _exit(3);
    another_thread_maps(a[4], a[2]);
    return emulated == OtherKernel::kFailsHalfway ? -ENOMEM : -EFAULT;
  }
  return pass(SYS_mremap, a[0], a[1], a[2], a[3], a[4]);
}

long answer(long number, const long (&a)[6]) {
  switch (number) {
    case SYS_mremap:
      return answer_mremap(a);
    case SYS_mmap: {
      const long data = pass(SYS_mmap, a[0], a[1], a[2], a[3], a[4]);
      if (data > 0) madvise(reinterpret_cast<void*>(data), static_cast<std::size_t>(a[1]), MADV_HUGEPAGE);
      return data;
    }
    case SYS_mincore:
      std::memset(reinterpret_cast<void*>(a[2]), 0, static_cast<std::size_t>((a[1] + kPage - 1) / kPage));
      return 0;
    case SYS_madvise:
      if (a[2] == kDontNeedLocked || (a[2] == MADV_DONTNEED && emulated == OtherKernel::kKeepsPages)) return -EINVAL;
      return pass(SYS_madvise, a[0], a[1], a[2]);
    default:
      return -EPERM;
  }
}

void on_stopped_call(int, siginfo_t* info, void* context) {
  const int before = errno;
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  const auto* r = registers.gregs;
  const long arguments[6] = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]};
  registers.gregs[REG_RAX] = answer(info->si_syscall, arguments);
#elif defined(__aarch64__)
  long arguments[6];
  for (int i = 0; i < 6; ++i) arguments[i] = static_cast<long>(registers.regs[i]);
  registers.regs[0] = static_cast<unsigned long long>(answer(info->si_syscall, arguments));
#else
  _exit(3);
#endif
  errno = before;
}

std::vector<long> stopped_calls(OtherKernel kernel) {
  switch (kernel) {
    case OtherKernel::kUnmapsBeforeItFails:
    case OtherKernel::kFailsHalfway:
      return {SYS_mremap};
    case OtherKernel::kForbidsUserfault:
      return {SYS_userfaultfd};
    case OtherKernel::kPrefersHugePages:
      return {SYS_mmap};
    case OtherKernel::kHasSwappedEverything:
      return {SYS_mincore};
    case OtherKernel::kCannotDropLockedPages:
      return {SYS_madvise};
    case OtherKernel::kKeepsPages:
      return {SYS_madvise, SYS_munlock};
  }
  return {};
}

bool install(const std::vector<long>& calls) {
  std::vector<sock_filter> code;
  const auto load = [&](std::size_t offset) {
    code.push_back({BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(offset)});
  };
  const auto give = [&](std::uint32_t action) { code.push_back({BPF_RET | BPF_K, 0, 0, action}); };
  load(offsetof(seccomp_data, nr));
  for (std::size_t i = 0; i < calls.size(); ++i)
    code.push_back({BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint8_t>(calls.size() - i), 0,
                    static_cast<std::uint32_t>(calls[i])});
  give(SECCOMP_RET_ALLOW);
  load(offsetof(seccomp_data, args) + 5 * sizeof(std::uint64_t));
  code.push_back({BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<std::uint32_t>(kPass)});
  give(SECCOMP_RET_ALLOW);
  give(SECCOMP_RET_TRAP);
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

void become(OtherKernel kernel) {
  emulated = kernel;
  struct sigaction action {};
  action.sa_sigaction = on_stopped_call;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  if (sigaction(SIGSYS, &action, nullptr) == 0 && install(stopped_calls(kernel))) return;
  std::perror("system calls cannot be filtered");
  _exit(2);
}

const char* why_not_emulated() {
#if !defined(__x86_64__) && !defined(__aarch64__)
  return "system calls are not emulated on this processor";
#endif
  const pid_t child = fork();
  if (child == 0) _exit(install({}) ? 0 : 1);
  int status = 0;
  const bool works = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return works ? "" : "system calls cannot be filtered here (seccomp)";
}

namespace {

// The test's result in this process; a new process's printer is silent, what stands in stderr is shown.
int report_failures() {
  const testing::TestResult& result = *testing::UnitTest::GetInstance()->current_test_info()->result();
  for (int i = 0; i < result.total_part_count(); ++i)
    if (const testing::TestPartResult& part = result.GetTestPartResult(i); part.failed())
      std::fprintf(stderr, "%s:%d: %s\n", part.file_name(), part.line_number(), part.message());
  std::fflush(nullptr);
  return result.Failed() ? 1 : 0;
}

}  // namespace

void in_own_process(const std::function<void()>& f) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        alarm(120);
        f();
        _exit(report_failures());
      },
      testing::ExitedWithCode(0), "");
}

std::size_t mappings_of_others() { return other_count; }

bool mappings_of_others_intact() {
  return std::all_of(others, others + other_count, [](const Stretch& stretch) {
    return std::all_of(stretch.data, stretch.data + stretch.bytes, [](unsigned char c) { return c == 0xAB; });
  });
}

std::size_t resident_bytes_in(const void* data, std::size_t bytes) {
  unsigned char there[512];
  std::size_t pages = 0;
  for (std::size_t at = 0; at < bytes; at += sizeof there * kPage) {
    const std::size_t piece = std::min(bytes - at, sizeof there * kPage);
    const auto address = static_cast<long>(reinterpret_cast<std::uintptr_t>(data) + at);
    if (pass(SYS_mincore, address, static_cast<long>(piece), reinterpret_cast<long>(there)) != 0) return SIZE_MAX;
    pages += static_cast<std::size_t>(std::count_if(there, there + piece / kPage, [](auto c) { return (c & 1) != 0; }));
  }
  return pages * kPage;
}

}  // namespace plimsoll
