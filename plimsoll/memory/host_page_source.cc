#include "plimsoll/memory/host_page_source.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/page_mover.h"
#include "plimsoll/memory/refusal.h"

namespace plimsoll {
namespace {

constexpr std::size_t kBaseAlignment = 2_MiB;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

class HostPageRange final : public PageRange {
 public:
  HostPageRange(std::byte* base, std::size_t bytes, PageMover mover) : PageRange(base, bytes) {
    if (mover == PageMover::kBest || mover == PageMover::kUserfault) mover_ = make_userfault_mover(base, bytes);
    if (!mover_ && mover != PageMover::kNone) mover_ = make_remap_mover(base, bytes);
  }
  ~HostPageRange() override {
    mover_.reset();
    munmap(base(), bytes());
  }

  bool commit(std::size_t, std::size_t) noexcept override { return true; }

  void release(std::size_t offset, std::size_t bytes) noexcept override {
    madvise(base() + offset, bytes, MADV_DONTNEED);
  }

  std::size_t move(std::size_t from, std::size_t to, std::size_t bytes) noexcept override {
    if (!mover_) return 0;
    return any_resident(from, bytes) ? mover_->move(base() + from, base() + to, bytes) : bytes;
  }

  // Pages that were handed out but never touched are not there: nothing needs to move.
  bool any_resident(std::size_t offset, std::size_t bytes) const noexcept {
    unsigned char resident[512];
    const std::size_t step = sizeof resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    for (std::size_t at = 0; at < bytes; at += step) {
      const std::size_t piece = std::min(step, bytes - at);
      if (mincore(base() + offset + at, piece, resident) != 0) return true;
      const std::size_t pages = piece * sizeof resident / step;
      if (std::any_of(resident, resident + pages, [](unsigned char byte) { return (byte & 1) != 0; })) return true;
    }
    return false;
  }

  std::string mover() const override { return mover_ ? mover_->name() : "none"; }

  void after_fork() noexcept override { mover_.reset(); }

 private:
  std::unique_ptr<PageMoverBackend> mover_;
};

PageMover mover_from_environment(PageMover otherwise) {
  const char* text = std::getenv("PLIMSOLL_PAGE_MOVER");
  if (!text) return otherwise;
  const std::string_view name = text;
  if (name == "userfault") return PageMover::kUserfault;
  if (name == "remap") return PageMover::kRemap;
  if (name == "none") return PageMover::kNone;
  return otherwise;
}

// Bytes of address space still free under RLIMIT_AS, SIZE_MAX when it is not set.
std::size_t address_space_left() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  unsigned long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  const std::size_t used = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

[[noreturn]] void refuse_reservation(std::size_t least) {
  OutOfMemoryDetails details;
  details.requested = details.smallest_sufficient_limit = least;
  details.limit = address_space_left();
  details.what = fmt::format(
      "page source: the system refused to reserve {} of address space; raise RLIMIT_AS (ulimit -v) or lower the limit",
      format_bytes_exactly(least));
  throw_refusal(std::move(details), {.device = "page source", .op = "reserve"});
}

}  // namespace

HostPageSource::HostPageSource(PageMover mover)
    : mover_(mover != PageMover::kBest ? mover
             : kSanitized              ? PageMover::kNone
                                       : mover_from_environment(mover)) {}

std::size_t HostPageSource::page_bytes() const noexcept {
  static const auto kBytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return kBytes;
}

std::size_t HostPageSource::range_bytes(std::size_t limit) const noexcept {
  constexpr std::size_t kMost = std::size_t{8} << 40;
  return std::max({limit, std::min(limit, kMost / 16) * 16, 1_GiB});
}

std::unique_ptr<PageRange> HostPageSource::reserve(std::size_t wanted, std::size_t least) {
  const std::size_t page = page_bytes();
  const auto round = [&](std::size_t n) { return (n + page - 1) & ~(page - 1); };
  if (least > SIZE_MAX / 4) refuse_reservation(least);
  least = round(least);
  if (const std::size_t left = address_space_left(); left != SIZE_MAX)  // Leave room for the rest of the process.
    wanted = std::min(wanted, std::max(least, left / 2));
  for (std::size_t bytes = round(std::max(wanted, least));; bytes = std::max(least, round(bytes / 2))) {
    void* data = mmap(nullptr, bytes + kBaseAlignment, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data != MAP_FAILED) {
      const auto start = reinterpret_cast<std::uintptr_t>(data);
      const std::uintptr_t aligned = (start + kBaseAlignment - 1) & ~(kBaseAlignment - 1);
      if (aligned > start) munmap(data, aligned - start);
      const std::size_t tail = start + kBaseAlignment - aligned;
      if (tail > 0) munmap(reinterpret_cast<void*>(aligned + bytes), tail);
      return std::make_unique<HostPageRange>(reinterpret_cast<std::byte*>(aligned), bytes, mover_);
    }
    if (bytes == least) refuse_reservation(least);
  }
}

}  // namespace plimsoll
