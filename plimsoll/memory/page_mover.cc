#include "plimsoll/memory/page_mover.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>

namespace plimsoll {
namespace {

// Newer than the headers of the systems we build on; values are the kernel's ABI.
struct UserfaultMove {
  std::uint64_t to, from, bytes, mode;
  std::int64_t moved;
};
constexpr unsigned long kUserfaultMove = _IOWR(UFFDIO, 0x05, UserfaultMove);
constexpr std::uint64_t kFeatureMove = std::uint64_t{1} << 16;
constexpr std::uint64_t kAllowHoles = 2;
constexpr int kUserModeOnly = 1;

class UserfaultMover final : public PageMoverBackend {
 public:
  explicit UserfaultMover(int descriptor) : descriptor_(descriptor) {}
  ~UserfaultMover() override { close(descriptor_); }

  std::size_t move(std::byte* from, std::byte* to, std::size_t bytes) noexcept override {
    std::size_t done = 0;
    for (int tries = 0; done < bytes && tries < 64; ++tries) {
      UserfaultMove move{reinterpret_cast<std::uint64_t>(to) + done, reinterpret_cast<std::uint64_t>(from) + done,
                         bytes - done, kAllowHoles, 0};
      const bool all = ioctl(descriptor_, kUserfaultMove, &move) == 0;
      if (move.moved > 0) done += static_cast<std::size_t>(move.moved);
      if (!all && errno != EAGAIN) break;
    }
    return done;
  }

  const char* name() const noexcept override { return "userfault"; }

 private:
  int descriptor_;
};

// Every piece that is moved away may become a mapping of its own, and the system allows a process only so many.
class RemapMover final : public PageMoverBackend {
 public:
  explicit RemapMover(std::size_t allowance) : allowance_(allowance) {}

  std::size_t move(std::byte* from, std::byte* to, std::size_t bytes) noexcept override {
    constexpr std::size_t kMappingsPerMove = 3;
    if (allowance_ < kMappingsPerMove) return 0;
    if (mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to) == MAP_FAILED) {
      // The kernel may have unmapped the destination before it found the source to be more than one mapping.
      mmap(to, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
      return 0;
    }
    allowance_ -= kMappingsPerMove;
    return bytes;
  }

  const char* name() const noexcept override { return "remap"; }

 private:
  std::size_t allowance_;
};

std::size_t max_mappings() {
  unsigned long count = 65530;
  if (std::FILE* file = std::fopen("/proc/sys/vm/max_map_count", "r")) {
    if (std::fscanf(file, "%lu", &count) != 1) count = 65530;
    std::fclose(file);
  }
  return count;
}

}  // namespace

std::unique_ptr<PageMoverBackend> make_userfault_mover(std::byte* base, std::size_t bytes) {
  const auto descriptor = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | kUserModeOnly));
  if (descriptor < 0) return nullptr;
  auto mover = std::make_unique<UserfaultMover>(descriptor);
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = kFeatureMove;
  if (ioctl(descriptor, UFFDIO_API, &api) != 0) return nullptr;
  uffdio_register range{};
  range.range = {reinterpret_cast<std::uint64_t>(base), bytes};
  range.mode = UFFDIO_REGISTER_MODE_WP;  // Nothing is ever write-protected, so no fault is ever delivered.
  if (ioctl(descriptor, UFFDIO_REGISTER, &range) != 0) return nullptr;
  return mover;
}

std::unique_ptr<PageMoverBackend> make_remap_mover(std::byte*, std::size_t) {
  return std::make_unique<RemapMover>(max_mappings() / 4);
}

}  // namespace plimsoll
