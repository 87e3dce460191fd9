// Keeps workers off the processor of the thread they work for.
//
// A system may wake or start a thread on the processor of the thread that woke it, although others are idle, and let
// the two take turns there for many milliseconds: two threads are then slower than one. Does nothing when there is no
// other processor. Cost: a comparison in the common case, else a few system calls.
#pragma once

#include <pthread.h>
#include <sched.h>

namespace plimsoll::internal {

// The processor the calling thread runs on, -1 when unknown.
inline int current_processor() noexcept { return sched_getcpu(); }

// Each worker has one: the processor that it avoids for now.
class AvoidedProcessor {
 public:
  // From now on the calling thread runs on its other processors.
  void avoid(int processor) noexcept {
    if (processor != avoided_) change(processor);
  }

 private:
  void change(int processor) noexcept;

  cpu_set_t restricted_;  // What the thread was set to: its processors without the avoided one.
  int avoided_ = -1;
};

// Moves another thread off the caller's processor, once; it may then use the processors that the caller may use.
void move_off_mine(pthread_t thread) noexcept;

}  // namespace plimsoll::internal
