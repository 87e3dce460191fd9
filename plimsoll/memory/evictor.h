// Evictor: makes room inside a budget that evicts when a request would otherwise be refused.
//
//   const Budget tight("train", 32_MiB, {.evict = true});
//   const BudgetScope use(tight);     // what does not fit now makes the evictor drop what it can compute again
// what does not fit makes the evictor drop values that it can recompute
// The layer that knows how to recover bytes makes evictors; without it no evicting budget can be made. A budget and
// those below it share the evictor of the outermost one that evicts. Evictors are called when the pressure ladder has
// nothing left, with no lock of the memory layer held; they free only what is charged to the budget that refused or to
// those below it.
// Thread safety: every method may be called from any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "plimsoll/base/api.h"

namespace plimsoll {
class Arena;
}  // namespace plimsoll

namespace plimsoll::internal {

class BudgetNode;

class PLIMSOLL_API Evictor {
 public:
  virtual ~Evictor();
  // Frees at least `bytes` that are charged to `budget` or below it (from `arena` only, unless it is nullptr), or as
  // much as it can. Returns how many bytes it freed. Must not allocate from an arena.
  virtual std::size_t evict(const BudgetNode& budget, const Arena* arena, std::size_t bytes) = 0;
  // Why it cannot free more, as the end of a refusal's text.
  virtual std::string explain(const BudgetNode& budget) = 0;
};

struct EvictorOptions {
  std::size_t limit = 0;  // The budget's.
  std::string spill;      // A directory, or empty.
};
using EvictorFactory = std::shared_ptr<Evictor> (*)(const EvictorOptions& options);
PLIMSOLL_API void set_evictor_factory(EvictorFactory factory) noexcept;
std::shared_ptr<Evictor> make_evictor(const EvictorOptions& options);  // FailedPrecondition when no layer does.

}  // namespace plimsoll::internal
