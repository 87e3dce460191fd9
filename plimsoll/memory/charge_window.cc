#include "plimsoll/memory/charge_window.h"

#include <thread>

namespace plimsoll::internal {
namespace {

constinit std::mutex alone;  // Held by the thread that wants no other thread in its window.
constinit std::atomic<bool> wanted_alone{false};
constinit std::atomic<std::size_t> undone{0};

}  // namespace

ChargeWindow::ChargeWindow(ThreadMemory& thread) noexcept : thread_(thread) {
  for (;;) {
    thread_.in_window.store(true, std::memory_order_seq_cst);
    if (!wanted_alone.load(std::memory_order_seq_cst)) [[likely]]
      return;
    thread_.in_window.store(false, std::memory_order_release);
    const std::lock_guard wait(alone);
  }
}

void close_windows() {
  alone.lock();
  wanted_alone.store(true, std::memory_order_seq_cst);
  for (bool others = true; others;) {
    others = false;
    ThreadRegistry::instance().for_each(
        [&](const ThreadMemory& thread) { others |= thread.in_window.load(std::memory_order_seq_cst); });
    if (others) std::this_thread::yield();
  }
}

void open_windows() {
  wanted_alone.store(false, std::memory_order_seq_cst);
  alone.unlock();
}

std::size_t undone_charges() noexcept { return undone.load(std::memory_order_relaxed); }
void note_undone_charge() noexcept { undone.fetch_add(1, std::memory_order_relaxed); }

}  // namespace plimsoll::internal
