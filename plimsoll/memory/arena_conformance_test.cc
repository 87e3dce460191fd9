// The arena passes the suite that every memory resource passes: fixed and growing, with each way to move pages.
#include <utility>

#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/host_page_source.h"
#include "plimsoll/memory/memory_resource_testing.h"

namespace plimsoll {
namespace {

struct ArenaWithPages {
  ArenaWithPages(PageMover mover, ArenaOptions options) : pages(mover), arena(pages, std::move(options)) {}
  HostPageSource pages;
  Arena arena;
};

ResourceUnderTest arena(const char* name, PageMover mover, bool growth) {
  return {name, [=](std::size_t limit) -> std::shared_ptr<MemoryResource> {
            auto both = std::make_shared<ArenaWithPages>(mover, ArenaOptions{.limit = limit, .growth = growth});
            return {both, &both->arena};
          }};
}

INSTANTIATE_TEST_SUITE_P(Arena, MemoryResourceConformance,
                         testing::Values(arena("Fixed", PageMover::kBest, false),
                                         arena("Growth", PageMover::kBest, true),
                                         arena("Remap", PageMover::kRemap, false),
                                         arena("WithoutMover", PageMover::kNone, false)),
                         resource_name);

}  // namespace
}  // namespace plimsoll
