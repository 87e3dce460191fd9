#include "plimsoll/base/heap_count_testing.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

constinit std::atomic<std::size_t> allocations{0};
constexpr std::size_t kNever = ~std::size_t{0};
constinit thread_local std::size_t served_before_failure = kNever;

void* count_and_allocate(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (served_before_failure != kNever && served_before_failure-- == 0) throw std::bad_alloc();
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* const result = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (!result) throw std::bad_alloc();
  return result;
}

}  // namespace

// The other forms of new and delete call these; a sanitizer's own that does not throw would not.
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

FailHeapAllocation::FailHeapAllocation(std::size_t served) noexcept { served_before_failure = served; }
FailHeapAllocation::~FailHeapAllocation() { served_before_failure = kNever; }

}  // namespace plimsoll
