#include "plimsoll/tensor/slabs.h"

#include <sys/mman.h>

#include "plimsoll/device/runtime.h"
#include "plimsoll/memory/pages/zero_pages.h"
#include "plimsoll/tensor/tensor_thread.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace plimsoll::internal {
namespace {

// The leak sanitizer looks for pointers (large shapes are on the heap) only in memory that it knows about.
void tell_leak_sanitizer([[maybe_unused]] const SlabRegion* region, [[maybe_unused]] bool is_mapped) noexcept {
#if defined(__SANITIZE_ADDRESS__)
  if (is_mapped)
    __lsan_register_root_region(region, kRegionBytes);
  else
    __lsan_unregister_root_region(region, kRegionBytes);
#endif
}

}  // namespace

SlabRegion* SlabRegion::map() {
  auto* const all = static_cast<std::byte*>(map_zero_pages(2 * kRegionBytes, "records of tensors"));
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(all) & (kRegionBytes - 1);
  if (before > 0) unmap_zero_pages(all, before);
  unmap_zero_pages(all + before + kRegionBytes, kRegionBytes - before);
  auto* const region = ::new (all + before) SlabRegion;
  tell_leak_sanitizer(region, true);
  return region;
}

void SlabRegion::unmap() noexcept {
  tell_leak_sanitizer(this, false);
  unmap_zero_pages(this, kRegionBytes);
}

void SlabRegion::release(std::size_t number) noexcept { madvise(slab(number), kSlabBytes, MADV_DONTNEED); }

Slabs& Slabs::instance() {
  static auto* slabs = new Slabs;
  return *slabs;
}

std::size_t Slabs::trim() {
  std::size_t bytes = 0;
  {
    const std::lock_guard lock(mutex);
    {
      const StopThreads stopped;
      const auto for_each_thread = [&](auto&& f) {
        for (const ThreadMemory* thread : stopped)
          if (thread->tensors) f(*static_cast<TensorThread*>(thread->tensors));
      };
      records.count_spares(records.spare);
      storages.count_spares(storages.spare);
      for_each_thread([](const TensorThread& thread) { thread.count_spares(); });
      records.take_out(records.spare);
      storages.take_out(storages.spare);
      for_each_thread([](TensorThread& thread) { thread.take_out_spares(); });
      sweep_shapes(stopped);
    }
    bytes = records.release_counted() + storages.release_counted();  // Nobody can find them any more.
  }
  uncount_overhead(bytes);
  return bytes;
}

// Records that outlive their tensor keep their shape, too.
void Slabs::sweep_shapes(const StopThreads& stopped) {
  ShapeTable& table = ShapeTable::instance();
  const std::lock_guard lock(table.mutex);
  records.for_each([](const TensorRecord& record) {
    if (record.references.load(std::memory_order_relaxed) != 0) record.details->shared->is_used = true;
  });
  for (const ThreadMemory* thread : stopped)
    if (thread->tensors) static_cast<const TensorThread*>(thread->tensors)->mark_shapes();
  table.forget_unused();
}

void Slabs::forget_unused_shapes() {
  const std::lock_guard lock(mutex);
  const StopThreads stopped;
  sweep_shapes(stopped);
}

std::size_t Slabs::bytes() {
  const std::lock_guard lock(mutex);
  return records.bytes() + storages.bytes();
}

void Slabs::count_overhead(std::size_t bytes) { Runtime::instance().add_overhead(bytes); }
void Slabs::uncount_overhead(std::size_t bytes) noexcept { Runtime::instance().remove_overhead(bytes); }

}  // namespace plimsoll::internal
