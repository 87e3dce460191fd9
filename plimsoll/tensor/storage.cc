#include "plimsoll/tensor/storage.h"

#include <mutex>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/tensor/evict/recipe_book.h"
#include "plimsoll/tensor/index_check.h"
#include "plimsoll/tensor/parked.h"
#include "plimsoll/tensor/staging.h"
#include "plimsoll/tensor/storage_external.h"
#include "plimsoll/tensor/tensor_thread.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll {

namespace {

std::mutex becoming_resident;  // Rarely contended: two threads at the first use of one lazy storage.

}  // namespace

StorageRef Storage::take(Device& device, std::size_t bytes, const BlockLabel& label) {
  ThreadMemory& thread = ThreadMemory::current();
  TensorThread& counts = TensorThread::of(thread);
  Chunk* const chunk = bytes == 0 ? nullptr : device.arena().take(bytes, label);
  Storage* made;  // Chosen last: under pressure the arena makes others put back storages.
  try {
    made = counts.spare_storage();
  } catch (...) {
    if (chunk) device.arena().give(chunk);
    throw;
  }
  const EnterThread inside(thread);
  made->begin(counts, device, chunk, bytes);
  return StorageRef::adopt(made);
}

Storage* Storage::make(Device& device, std::size_t bytes, State state) {
  ThreadMemory& thread = ThreadMemory::current();
  TensorThread& counts = TensorThread::of(thread);
  auto external = std::make_unique<External>();
  Storage* made = counts.spare_storage();
  const EnterThread inside(thread);
  counts.pop_storage();
  made->base_ = nullptr;
  made->chunk_ = nullptr;
  made->device_ = &device;
  made->bytes_ = bytes;
  made->references_.store(1, std::memory_order_relaxed);
  made->version_.store(0, std::memory_order_relaxed);
  made->external_ = external.release();
  made->written_outside_.store(false, std::memory_order_relaxed);
  made->state_.store(state, std::memory_order_release);
  if (state == State::kResident) counts.count(counts.buffers, 1);
  counts.count(counts.beside, sizeof(External));
  return made;
}

StorageRef Storage::take_lazily(Device& device, std::size_t bytes, const BlockLabel& label, Fill fill) {
  Storage* made = make(device, bytes, State::kLazy);
  made->external_->label = label;
  made->external_->fill = fill;
  return StorageRef::adopt(made);
}

StorageRef Storage::wrap(Device& device, void* memory, std::size_t bytes, std::function<void(void*)> deleter) {
  Storage* made = make(device, bytes, State::kResident);
  made->base_ = memory;
  made->external_->memory = memory;
  made->external_->deleter = std::move(deleter);
  made->written_outside_.store(true, std::memory_order_relaxed);
  return StorageRef::adopt(made);
}

StorageRef Storage::symbolic(Device& device, SymbolicValue value) {
  Storage* made = make(device, 0, State::kSymbolic);
  made->external_->symbolic = std::move(value);
  return StorageRef::adopt(made);
}

const SymbolicValue& Storage::symbolic() const noexcept { return external_->symbolic; }

void Storage::make_resident() {
  if (is_symbolic())
    throw FailedPrecondition(
        "reading a symbolic tensor: it has no elements, it stands for what a graph will compute; to branch on its "
        "value "
        "use cond, to repeat while it holds while_loop, and to see it run the graph in a session");
  if (is_watched()) return evict::RecipeBook::instance().settle(*this);
  if (external_->parked) return Parking::bring_back(*this);
  if (external_->load) return evict::StorageAccess::load(*this);
  const std::lock_guard lock(becoming_resident);
  if (is_resident()) return;
  Chunk* const chunk = bytes_ == 0 ? nullptr : device_->arena().take(bytes_, external_->label);
  void* const base = chunk ? device_->arena().address(chunk) : nullptr;
  if (base) device_->backend().fill(base, external_->fill.pattern, external_->fill.element_bytes, bytes_);
  ThreadMemory& thread = ThreadMemory::current();
  TensorThread& counts = TensorThread::of(thread);
  const EnterThread inside(thread);
  base_ = base;
  chunk_ = chunk;
  state_.store(State::kResident, std::memory_order_release);
  counts.count(counts.buffers, 1);
  counts.count_bytes(static_cast<std::int64_t>(bytes_));
}

void Storage::Remains::give_back() noexcept {
  if (chunk) device->arena().give(chunk);
  if (!external) [[likely]]
    return;
  if (external->memory && external->deleter) external->deleter(external->memory);
  delete external;
  TensorThread& counts = TensorThread::of(ThreadMemory::current());
  counts.count(counts.beside, -static_cast<std::int64_t>(sizeof(External)));
}

void Storage::end_recipes() { evict::RecipeBook::instance().about_to_write(*this); }

void BytesLock::hold_slowly(Storage& storage) { held_ = evict::RecipeBook::instance().lock(storage); }
void BytesLock::hold_again() noexcept { evict::RecipeBook::instance().lock_again(*held_); }
void BytesLock::release() noexcept { evict::RecipeBook::instance().unlock(*held_); }

bool Storage::is_on_host() const noexcept { return device_->is_host(); }

const std::byte* HostBytes::stage(Storage& storage, std::size_t offset, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  settle_checks(storage.device());
  staged_ = take_staging(bytes);
  void* const here = staged_->base();
  storage.device().backend().copy_out(here, static_cast<const std::byte*>(storage.base()) + offset, bytes);
  return static_cast<const std::byte*>(here);
}

void Storage::drop() noexcept {
  if (is_watched() && !evict::RecipeBook::instance().release(*this)) return;
  ThreadMemory& thread = ThreadMemory::current();
  TensorThread& counts = TensorThread::of(thread);
  Remains remains;
  {
    const EnterThread inside(thread);
    remains = end(counts);
  }
  remains.give_back();
  counts.share_surplus();
}

void Storage::relabel(Category category, const char* name) noexcept {
  const EnterThread inside(ThreadMemory::current());
  if (!chunk_) {
    if (!is_watched() && external_) {
      external_->label.category = category;
      external_->label.name = name;
    }
    return;
  }
  chunk_->label.category = category;
  chunk_->label.name = name;
}

}  // namespace plimsoll
