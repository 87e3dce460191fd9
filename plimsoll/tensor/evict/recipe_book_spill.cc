// The part of the book that handles values stored in a file.
#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/device/device.h"
#include "plimsoll/memory/chunk.h"
#include "plimsoll/tensor/evict/domain.h"
#include "plimsoll/tensor/evict/recipe_book.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll::evict {

// Loads a stored value that the caller holds, with its domain's turn. False: the file failed, but a recipe can compute
// the value. Throws OutOfMemory, or the failure when there is no recipe; the value then stays stored.
bool RecipeBook::load(Value& value, Lock& lock) {
  Domain& domain = *value.home;
  Arena& arena = value.device->arena();
  domain.make_room(1);
  ++value.locks;
  lock.unlock();
  Chunk* chunk = nullptr;
  std::string failure;
  try {
    chunk = arena.take(value.bytes, value.label);
    value.slot->load({static_cast<std::byte*>(arena.address(chunk)), value.bytes});
    value.slot->wait();
  } catch (const std::exception& error) {
    const bool is_of_the_file = chunk != nullptr;
    if (chunk) arena.give(chunk);
    lock.lock();
    --value.locks;
    if (!is_of_the_file || !value.maker) throw;
    chunk = nullptr;
    failure = error.what();
  }
  if (!failure.empty()) {
    log_message(LogLevel::warning, fmt::format("eviction: a tensor is computed again, not loaded: {}", failure));
    StorageAccess::forget_slot(value);
    domain.remove_slot();  // It has recipes.
    return false;
  }
  lock.lock();
  --value.locks;
  domain.note_load(value.bytes);
  if (!value.storage) {
    value.chunk = chunk;
    return true;
  }
  StorageAccess::give_bytes(*value.storage, chunk);
  if (value.maker || domain.spills()) {
    domain.add(value);
    domain.changed_around(value);
  } else {
    StorageAccess::set_droppable(*value.storage, false);
  }
  return true;
}

void RecipeBook::offer(Domain& domain, std::span<const Tensor> outputs, std::uint64_t work) noexcept {
  const std::lock_guard lock(mutex_);
  domain.note_work(work);
  offer(domain, outputs);
}

void RecipeBook::offer(Domain& domain, std::span<const Tensor> outputs) noexcept {
  if (!domain.spills()) return;
  for (const Tensor& output : outputs) {
    Storage& storage = *output.record()->storage.load(std::memory_order_acquire);
    if (!storage.device().is_host()) continue;  // Files are written from the host's memory.
    if (!storage.is_fixed() || !storage.chunk() || storage.is_written_outside() || storage.is_pinned()) continue;
    if (!domain.is_worth_dropping(*storage.chunk(), storage.bytes())) continue;
    try {
      domain.make_room(1);
      Value& value = value_or_leaf(storage);
      if (value.candidate != Value::kNone) continue;
      StorageAccess::set_droppable(storage, true);
      domain.add(value);
    } catch (const std::bad_alloc&) {
      return;  // It stays in memory.
    }
  }
}

// Its recipe is gone: it stays in memory unless its domain can store it.
void RecipeBook::become_leaf(Value& value) noexcept {
  if (!value.storage || value.is_dropped()) return;
  Domain* const domain = value.home;
  if (value.candidate != Value::kNone && domain->spills()) return;
  if (value.candidate != Value::kNone) domain->forget(value);
  StorageAccess::set_droppable(*value.storage, false);
}

// Nothing refers to it any more.
void RecipeBook::bury(Value& value, Trash& trash) noexcept {
  if (value.candidate != Value::kNone) value.home->forget(value);
  if (value.slot && value.home->remove_slot()) trash.add(*value.home);
  trash.add_value(value);
}

}  // namespace plimsoll::evict
