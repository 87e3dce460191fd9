#include "plimsoll/memory/pages/page_mover.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>

#include "plimsoll/memory/pages/zero_pages.h"

namespace plimsoll::internal {
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

  PageMove move(std::byte* from, std::byte* to, std::size_t bytes) noexcept override {
    std::size_t done = 0;
    for (int tries = 0; done < bytes && tries < 64; ++tries) {
      UserfaultMove move{reinterpret_cast<std::uint64_t>(to) + done, reinterpret_cast<std::uint64_t>(from) + done,
                         bytes - done, kAllowHoles, 0};
      const bool all = ioctl(descriptor_, kUserfaultMove, &move) == 0;
      if (move.moved > 0) done += static_cast<std::size_t>(move.moved);
      if (!all && errno != EAGAIN) break;
    }
    return {done};
  }

  const char* name() const noexcept override { return "userfault"; }

 private:
  int descriptor_;
};

std::size_t max_mappings() {
  unsigned long count = 65530;
  if (std::FILE* file = std::fopen("/proc/sys/vm/max_map_count", "r")) {
    if (std::fscanf(file, "%lu", &count) != 1) count = 65530;
    std::fclose(file);
  }
  return count;
}

// Every piece that is moved away may become mappings of its own, and the system allows a process only so many.
class MappingAllowance {
 public:
  static MappingAllowance& instance() {
    static auto* const allowance = new MappingAllowance;
    return *allowance;
  }
  bool take(std::size_t mappings) noexcept {
    if (used_.fetch_add(mappings, std::memory_order_relaxed) + mappings <= most_) return true;
    give_back(mappings);
    return false;
  }
  void give_back(std::size_t mappings) noexcept { used_.fetch_sub(mappings, std::memory_order_relaxed); }

 private:
  const std::size_t most_ = max_mappings() / 4;  // The rest is for the rest of the process.
  std::atomic<std::size_t> used_{0};
};

// A kernel that puts pages at a fixed address first unmaps what is there, then checks whether it can move. When it
// cannot, the place stays unmapped, and another thread's mapping may land there. So pages are moved through an address
// that the kernel chooses: if any step fails it is that one, and then nothing has changed. What the second step moves
// is one whole mapping.
class RemapMover final : public PageMoverBackend {
 public:
  ~RemapMover() override { allowance_.give_back(used_); }

  PageMove move(std::byte* from, std::byte* to, std::size_t bytes) noexcept override {
    std::size_t done = 0, piece = bytes;
    for (int tries = 0; piece >= least_ && tries < 32; ++tries) {
      bool divisible = false;
      const PageMove part = move_mapping(from + done, to + done, piece, divisible);
      if (part.lost_destination) return {done, true};
      done += part.moved;
      if (part.moved == 0 && !divisible) break;
      piece = part.moved > 0 ? bytes - done : piece / 2 / page_ * page_;
    }
    return {done};
  }

  const char* name() const noexcept override { return "remap"; }

 private:
  // All or nothing. `divisible`: the source is more than one mapping; moving a part of it may succeed.
  PageMove move_mapping(std::byte* from, std::byte* to, std::size_t bytes, bool& divisible) noexcept {
    if (!allowance_.take(kMappingsPerMove)) return {};
    void* const between = mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, nullptr);
    if (between == MAP_FAILED) {
      divisible = errno == EFAULT;
      allowance_.give_back(kMappingsPerMove);
      return {};
    }
    used_ += kMappingsPerMove;
    if (mremap(between, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED) return {bytes};
    // The system is short of memory for its own records. If the destination is free, it can be mapped again; if
    // something is mapped there, there is no telling whether it is ours.
    const bool lost = try_map_zero_pages(bytes, to).data == nullptr;
    unmap_zero_pages(between, bytes);
    return {0, lost};
  }

  static constexpr std::size_t kMappingsPerMove = 3;
  const std::size_t page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t least_ = 16 * page_;  // Fewer pages are faulted in again in less time.
  MappingAllowance& allowance_ = MappingAllowance::instance();
  std::size_t used_ = 0;
};

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

std::unique_ptr<PageMoverBackend> make_remap_mover() { return std::make_unique<RemapMover>(); }

}  // namespace plimsoll::internal
