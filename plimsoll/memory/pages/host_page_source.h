// HostPageSource: pages of this process, for arenas on the CPU.
//
//   HostPageSource pages;
//   Arena arena(pages, {.name = "CPU:0", .limit = 1_GiB});
//
// An arena gets one range of address space, many times its limit, that costs nothing until touched. Committing needs no
// system call. Pages move by UFFDIO_MOVE (Linux 6.8 and later, 0.1-0.3 us per page, no new mappings), else by mremap
// within an allowance of mappings for the whole process, else not at all: the arena then releases them and faults in
// new ones. The method is chosen when the range is reserved. Sanitized builds do not move pages.
// The pages are never huge ones, which a single byte would hold whole, and never locked: see PageRange::note().
#pragma once

#include "plimsoll/memory/pages/page_source.h"

namespace plimsoll {

enum class PageMover { kBest, kUserfault, kRemap, kNone };

class PLIMSOLL_API HostPageSource final : public PageSource {
 public:
  // kBest tries the methods in the order above; the environment variable PLIMSOLL_PAGE_MOVER (userfault, remap, none)
  // overrides it. A method that this system does not offer falls back to the next.
  explicit HostPageSource(PageMover mover = PageMover::kBest);

  std::size_t page_bytes() const noexcept override;
  // 512 x the limit up to 1 TiB, more where that is less than 16 x the limit; at least 1 GiB.
  std::size_t range_bytes(std::size_t limit) const noexcept override;
  std::unique_ptr<PageRange> reserve(std::size_t wanted, std::size_t least) override;

 private:
  PageMover mover_;
};

}  // namespace plimsoll
