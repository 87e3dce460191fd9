#include "plimsoll/memory/pages/host_page_source.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/pages/page_mover.h"
#include "plimsoll/memory/pages/zero_pages.h"
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
  HostPageRange(const ZeroPages& mapping, std::size_t mapped_bytes, std::byte* base, std::size_t bytes, PageMover mover)
      : PageRange(base, bytes), mapping_(mapping), mapped_bytes_(mapped_bytes) {
    if (mover == PageMover::kBest || mover == PageMover::kUserfault) mover_ = make_userfault_mover(base, bytes);
    if (!mover_ && mover != PageMover::kNone) mover_ = make_remap_mover();
  }
  ~HostPageRange() override {
    mover_.reset();
    auto* const start = static_cast<std::byte*>(mapping_.data);
    const std::size_t head = static_cast<std::size_t>(base() - start) + lost_, tail = head + lost_bytes_;
    if (lost_bytes_ == 0) {
      unmap_zero_pages(start, mapped_bytes_);
      return;
    }
    if (head > 0) unmap_zero_pages(start, head);
    if (tail < mapped_bytes_) unmap_zero_pages(start + tail, mapped_bytes_ - tail);
  }

  bool commit(std::size_t offset, std::size_t bytes) noexcept override {
    return lost_bytes_ == 0 || offset + bytes <= lost_ || offset >= lost_ + lost_bytes_;
  }

  bool release(std::size_t offset, std::size_t bytes) noexcept override {
    void* const data = base() + offset;
    if (madvise(data, bytes, MADV_DONTNEED) == 0) return true;
    if (madvise(data, bytes, kDontNeedLocked) == 0) return true;  // The program locked them; Linux 5.18 and later.
    if (munlock(data, bytes) == 0 && madvise(data, bytes, MADV_DONTNEED) == 0) return true;
    kept_ = true;
    return false;
  }

  std::size_t move(std::size_t from, std::size_t to, std::size_t bytes) noexcept override {
    if (!mover_ || !commit(to, bytes)) return 0;
    if (!worth_moving(from, bytes)) return release(from, bytes) ? bytes : 0;  // Swapped-out pages are held as well.
    const PageMove done = mover_->move(base() + from, base() + to, bytes);
    if (done.lost_destination) {  // Once is enough: release and fault from now on.
      lost_ = to + done.moved;
      lost_bytes_ = bytes - done.moved;
      mover_.reset();
    }
    return done.moved;
  }

  // Pages that were handed out but never touched are not there: nothing needs to move. Checking costs more than
  // releasing, so once a program has not touched any pages for a while the check is made only now and then.
  bool worth_moving(std::size_t offset, std::size_t bytes) noexcept {
    constexpr unsigned kLong = 16, kNowAndThen = 8;
    if (untouched_ >= kLong && ++untouched_ % kNowAndThen != 0) return false;
    const bool there = any_resident(offset, bytes);
    untouched_ = there ? 0 : untouched_ + 1;
    return there;
  }

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

  std::string note() const override {
    std::string notes;
    const auto add = [&](bool holds, std::string_view note) {
      if (holds) notes += std::string(notes.empty() ? "" : "; ").append(note);
    };
    add(mapping_.unlocked,
        "the process locks its memory (mlockall): these pages are not locked, so that they can be released");
    add(mapping_.may_be_huge, "the system would not turn huge pages off: more than the limit may be held");
    add(kept_, "the system would not take free pages back: they count as reserved");
    add(lost_bytes_ > 0, "mremap failed halfway: pages are no longer moved");
    return notes;
  }

  void after_fork() noexcept override { mover_.reset(); }

 private:
  static constexpr int kDontNeedLocked = 24;  // MADV_DONTNEED_LOCKED, newer than the headers we build with.

  const ZeroPages mapping_;
  const std::size_t mapped_bytes_;
  std::unique_ptr<PageMoverBackend> mover_;
  std::size_t lost_ = 0, lost_bytes_ = 0;  // A range that another thread may have mapped: see PageMove.
  bool kept_ = false;                      // A release failed.
  unsigned untouched_ = 0;                 // Moves in a row that found no page: see worth_moving().
};

PageMover mover_from_environment(PageMover otherwise) {
  const char* text = std::getenv("PLIMSOLL_PAGE_MOVER");
  if (!text) return otherwise;
  const std::string_view name = text;
  if (name == "userfault") return PageMover::kUserfault;
  if (name == "remap") return PageMover::kRemap;
  if (name == "none") return PageMover::kNone;
  throw InvalidArgument(
      fmt::format("environment: PLIMSOLL_PAGE_MOVER is \"{}\"; give userfault, remap or none, or leave it out", name));
}

// Bytes of address space still free under RLIMIT_AS; SIZE_MAX when it is not set.
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

[[noreturn]] void refuse_reservation(std::size_t least, int error) {
  OutOfMemoryDetails details;
  details.requested = details.smallest_sufficient_limit = least;
  details.limit = address_space_left();
  details.what = fmt::format(
      "page source: the system refused to reserve {} of address space; {} or lower the limit",
      format_bytes_exactly(least),
      error == EAGAIN
          ? "the process locks its memory: raise RLIMIT_MEMLOCK (ulimit -l), do not call mlockall(MCL_FUTURE)"
          : "raise RLIMIT_AS (ulimit -v)");
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

// A block aligned to 2 MiB may hold a single page: only 512 times the limit has a place for every page of it. But
// addresses are finite (47 bits, up to 64 devices).
std::size_t HostPageSource::range_bytes(std::size_t limit) const noexcept {
  constexpr std::size_t kMost = std::size_t{8} << 40, kMostForAlignment = std::size_t{1} << 40;
  const std::size_t aligned = kSanitized ? 0 : std::min(limit, kMostForAlignment / 512) * 512;
  return std::max({limit, std::min(limit, kMost / 16) * 16, aligned, 1_GiB});
}

std::unique_ptr<PageRange> HostPageSource::reserve(std::size_t wanted, std::size_t least) {
  const std::size_t page = page_bytes();
  const auto round = [&](std::size_t n) { return (n + page - 1) & ~(page - 1); };
  if (least > SIZE_MAX / 4) refuse_reservation(least, ENOMEM);
  least = round(least);
  if (const std::size_t left = address_space_left(); left != SIZE_MAX)  // Leave room for the rest of the process.
    wanted = std::min(wanted, std::max(least, left / 2));
  for (std::size_t bytes = round(std::max(wanted, least));; bytes = std::max(least, round(bytes / 2))) {
    const ZeroPages pages = try_map_zero_pages(bytes + kBaseAlignment);
    if (pages.data) {
      const std::size_t head = -reinterpret_cast<std::uintptr_t>(pages.data) & (kBaseAlignment - 1);
      auto* const base = static_cast<std::byte*>(pages.data) + head;
      return std::make_unique<HostPageRange>(pages, bytes + kBaseAlignment, base, bytes, mover_);
    }
    if (bytes == least) refuse_reservation(least, pages.error);
  }
}

}  // namespace plimsoll
