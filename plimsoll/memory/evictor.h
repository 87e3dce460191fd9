// Evictor: who makes room inside of a budget that evicts, when a request would else be refused.
//
//   const Budget tight("train", 32_MiB, {.evict = true});
//   const BudgetScope use(tight);     // what does not fit now makes the evictor drop what it can compute again
//
// The layer that knows how to get bytes back makes evictors; without it no budget that evicts can be made. A budget
// and those below it share the evictor of the outermost one that evicts. Evictors are asked when the pressure
// ladder has nothing left, with no lock of the memory layer held; they free what was charged to the budget that refused
// or below it, and nobody else's.
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
  // Frees at least `bytes` that are charged to `budget` or below it, of `arena` only if it is not nullptr, or less if
  // there is no more. Returns how many it freed. Must not allocate from an arena.
  virtual std::size_t evict(const BudgetNode& budget, const Arena* arena, std::size_t bytes) = 0;
  // Why it frees no more, as the end of a refusal's text.
  virtual std::string explain(const BudgetNode& budget) = 0;
};

struct EvictorOptions {
  std::size_t limit = 0;  // Of the budget.
  std::string spill;      // A directory, or empty.
};
using EvictorFactory = std::shared_ptr<Evictor> (*)(const EvictorOptions& options);
PLIMSOLL_API void set_evictor_factory(EvictorFactory factory) noexcept;
std::shared_ptr<Evictor> make_evictor(const EvictorOptions& options);  // FailedPrecondition when nobody makes them.

}  // namespace plimsoll::internal
