// Reclaimer: something above the memory layer that can release memory when a request would otherwise be refused.
//
//   class PlanCache : public Reclaimer { ... };
//   PlanCache cache;
//   ReclaimerHandle registered(cache);   // until the handle is destroyed
//
// Reclaimers are asked in the order of their rungs, after deferred frees and caches, until the request fits. They run
// with no lock of the memory layer held and may free blocks; they must not allocate.
#pragma once

#include <cstddef>
#include <vector>

#include "plimsoll/base/api.h"

namespace plimsoll {

// The order in which they are asked.
enum class Rung { kPlanCaches, kPrefetch, kEviction };

class PLIMSOLL_API Reclaimer {
 public:
  virtual ~Reclaimer();
  virtual const char* name() const noexcept = 0;
  virtual Rung rung() const noexcept = 0;
  // Frees at least `bytes` of `device`'s memory if it can. Returns how many it freed.
  virtual std::size_t reclaim(const char* device, std::size_t bytes) = 0;
};

class PLIMSOLL_API ReclaimerHandle {
 public:
  explicit ReclaimerHandle(Reclaimer& reclaimer);
  ~ReclaimerHandle();  // Waits for a reclaim() that runs on another thread.
  ReclaimerHandle(const ReclaimerHandle&) = delete;
  ReclaimerHandle& operator=(const ReclaimerHandle&) = delete;

 private:
  Reclaimer& reclaimer_;
};

// Asks the reclaimer at `position` in the order above; returns what it freed and its name, or nullptr beyond the last.
const char* ask_reclaimer(std::size_t position, const char* device, std::size_t bytes, std::size_t& freed);

}  // namespace plimsoll
