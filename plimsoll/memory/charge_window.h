// ChargeWindow: the time in which a thread holds a charge for memory that it may not get.
//
//   { const ChargeWindow window(thread); charge(...); take pages, or undo the charge; }
//   const LoneCharge alone;      // no other thread is in its window: a refusal now is a real one
//
// A request is charged before its pages are found, and when that fails the charge is undone. In between, it may make
// another thread's request seem not to fit. So a request that is about to be refused tries once more while no other
// thread is in its window, if a charge was undone since it began. Threads that reach their window meanwhile wait. Cost
// of a window: a store and a fence. Inside a window only locks of the memory layer are taken; no two are nested.
#pragma once

#include <cstddef>

#include "plimsoll/base/api.h"
#include "plimsoll/memory/thread_memory.h"

namespace plimsoll::internal {

class ChargeWindow {
 public:
  explicit ChargeWindow(ThreadMemory& thread) noexcept;
  ~ChargeWindow() { thread_.in_window.store(false, std::memory_order_release); }
  ChargeWindow(const ChargeWindow&) = delete;
  ChargeWindow& operator=(const ChargeWindow&) = delete;

 private:
  ThreadMemory& thread_;
};

// Waits until no thread is in its window, and keeps them out. Also used while a process forks, so that the child has no
// charges of threads that do not exist there.
void close_windows();
void open_windows();

class LoneCharge {
 public:
  LoneCharge() { close_windows(); }
  ~LoneCharge() { open_windows(); }
  LoneCharge(const LoneCharge&) = delete;
  LoneCharge& operator=(const LoneCharge&) = delete;
};

// The number of charges undone so far, in the whole process.
std::size_t undone_charges() noexcept;
void note_undone_charge() noexcept;

}  // namespace plimsoll::internal
