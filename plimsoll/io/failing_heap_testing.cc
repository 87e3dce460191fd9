#include "plimsoll/io/failing_heap_testing.h"

#include <cstdlib>
#include <new>

namespace {

constinit thread_local bool armed = false, failed = false;
constinit thread_local std::size_t left = 0;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (armed && left-- == 0) {
    armed = false;
    failed = true;
    throw std::bad_alloc();
  }
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* const result = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (!result) throw std::bad_alloc();
  return result;
}

}  // namespace

// The other forms of new and delete call these.
void* operator new(std::size_t bytes) { return allocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* pointer) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::align_val_t) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::size_t, std::align_val_t) noexcept { std::free(pointer); }

namespace plimsoll {

void FailingHeap::fail_after(std::size_t allocations) noexcept {
  failed = false;
  left = allocations;
  armed = true;
}

bool FailingHeap::disarm() noexcept {
  armed = false;
  return failed;
}

}  // namespace plimsoll
