#include "plimsoll/memory/reclaimer.h"

#include <algorithm>
#include <mutex>

namespace plimsoll {
namespace {

// Recursive: a reclaimer's frees may run a destructor that unregisters another one.
struct ReclaimerList {
  std::recursive_mutex mutex;
  std::vector<Reclaimer*> reclaimers;

  static ReclaimerList& instance() {
    static auto* list = new ReclaimerList;
    return *list;
  }
};

}  // namespace

Reclaimer::~Reclaimer() = default;

ReclaimerHandle::ReclaimerHandle(Reclaimer& reclaimer) : reclaimer_(reclaimer) {
  ReclaimerList& list = ReclaimerList::instance();
  const std::lock_guard lock(list.mutex);
  const auto after = std::upper_bound(list.reclaimers.begin(), list.reclaimers.end(), &reclaimer,
                                      [](const Reclaimer* a, const Reclaimer* b) { return a->rung() < b->rung(); });
  list.reclaimers.insert(after, &reclaimer);
}

ReclaimerHandle::~ReclaimerHandle() {
  ReclaimerList& list = ReclaimerList::instance();
  const std::lock_guard lock(list.mutex);
  std::erase(list.reclaimers, &reclaimer_);
}

const char* ask_reclaimer(std::size_t position, const char* device, std::size_t bytes, std::size_t& freed) {
  ReclaimerList& list = ReclaimerList::instance();
  const std::lock_guard lock(list.mutex);
  if (position >= list.reclaimers.size()) return nullptr;
  Reclaimer& reclaimer = *list.reclaimers[position];
  freed = reclaimer.reclaim(device, bytes);
  return reclaimer.name();
}

}  // namespace plimsoll
