#include "plimsoll/base/internal/thread_placement.h"

#include <cstddef>

namespace plimsoll::internal {
namespace {

// False when none would be left, or when the system numbers processors differently.
bool remove_processor(cpu_set_t& set, int processor) noexcept {
  if (processor < 0 || processor >= CPU_SETSIZE) return false;
  CPU_CLR(static_cast<std::size_t>(processor), &set);
  return CPU_COUNT(&set) > 0;
}

}  // namespace

void AvoidedProcessor::change(int processor) noexcept {
  cpu_set_t now;
  if (pthread_getaffinity_np(pthread_self(), sizeof now, &now) != 0) return;
  // Someone else has changed the affinity meanwhile: leave it alone.
  if (avoided_ >= 0 && CPU_EQUAL(&now, &restricted_)) CPU_SET(static_cast<std::size_t>(avoided_), &now);
  avoided_ = -1;
  restricted_ = now;
  if (!remove_processor(restricted_, processor)) return;
  const bool was_allowed = !CPU_EQUAL(&restricted_, &now);
  if (pthread_setaffinity_np(pthread_self(), sizeof restricted_, &restricted_) == 0 && was_allowed)
    avoided_ = processor;
}

void move_off_mine(pthread_t thread) noexcept {
  cpu_set_t mine;
  if (pthread_getaffinity_np(pthread_self(), sizeof mine, &mine) != 0) return;
  cpu_set_t others = mine;
  if (!remove_processor(others, current_processor())) return;
  pthread_setaffinity_np(thread, sizeof others, &others);
  pthread_setaffinity_np(thread, sizeof mine, &mine);
}

}  // namespace plimsoll::internal
