#include "plimsoll/base/heap_count_testing.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include "plimsoll/base/rounding.h"

namespace {

constinit std::atomic<std::size_t> allocations{0}, all_bytes{0};
constinit thread_local bool armed = false, failed = false;
constinit thread_local std::size_t left = 0;

void* count_and_allocate(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  all_bytes.fetch_add(bytes, std::memory_order_relaxed);
  if (armed && left-- == 0) {
    armed = false;
    failed = true;
    throw std::bad_alloc();
  }
  const std::size_t rounded = plimsoll::internal::round_up(bytes, alignment);
  void* const result = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (!result) throw std::bad_alloc();
  return result;
}

}  // namespace

// The other forms of new and delete call these; a sanitizer's own nothrow form would not.
void* operator new(std::size_t bytes) { return count_and_allocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return count_and_allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* pointer) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::align_val_t) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::size_t, std::align_val_t) noexcept { std::free(pointer); }

namespace plimsoll {

std::size_t heap_allocations() noexcept { return allocations.load(); }
std::size_t heap_bytes() noexcept { return all_bytes.load(); }

void fail_heap_after(std::size_t successes) noexcept {
  failed = false;
  left = successes;
  armed = true;
}

bool disarm_heap() noexcept {
  armed = false;
  return failed;
}

}  // namespace plimsoll
