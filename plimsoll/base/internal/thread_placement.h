// Keeping workers off the processor of the thread they work for.
//
// A system may wake or start a thread on the processor of the one that woke it, with others idle, and leave the two
// there taking turns for many milliseconds: then two threads are slower than one. Where there is no other processor to
// go to, nothing happens.
// Cost: a comparison in the common case, else a few system calls.
#pragma once

#include <pthread.h>
#include <sched.h>

namespace plimsoll {

// The processor the calling thread runs on, -1 when the system does not say.
inline int current_processor() noexcept { return sched_getcpu(); }

// A worker's own: the one processor that it does not use for now.
class AvoidedProcessor {
 public:
  // From now on the calling thread runs on the others it may use.
  void avoid(int processor) noexcept {
    if (processor != avoided_) change(processor);
  }

 private:
  void change(int processor) noexcept;

  cpu_set_t restricted_;  // What the thread was set to: its processors without the avoided one.
  int avoided_ = -1;
};

// Moves another thread off the caller's processor, once; it may then use those that the caller may.
void move_off_mine(pthread_t thread) noexcept;

}  // namespace plimsoll
