#include "plimsoll/tensor/evict/trash.h"

#include <algorithm>
#include <new>

#include "plimsoll/device/device.h"
#include "plimsoll/tensor/evict/domain.h"

namespace plimsoll::evict {

void Trash::clear() noexcept {
  for (const auto& [device, chunk] : chunks_) device->arena().give(chunk);
  chunks_.clear();
  while (values_) {
    Value* const value = std::exchange(values_, values_->next);
    if (value->storage) StorageAccess::end(*value->storage);
    if (value->chunk) value->device->arena().give(value->chunk);
    value->destroy();
  }
  while (recipes_) std::exchange(recipes_, recipes_->next)->destroy();
  while (domains_) delete std::exchange(domains_, domains_->next_ended);
}

void Trash::add(Recipe& recipe) noexcept { recipe.next = std::exchange(recipes_, &recipe); }
void Trash::add(Domain& domain) noexcept { domain.next_ended = std::exchange(domains_, &domain); }
void Trash::add_value(Value& value) noexcept { value.next = std::exchange(values_, &value); }

void Trash::make_room(std::size_t chunks) {
  if (chunks_.capacity() - chunks_.size() < chunks)
    chunks_.reserve(std::max(chunks_.capacity() * 2, chunks_.size() + chunks));
}

bool Trash::add(Device& device, Chunk* chunk) noexcept {
  try {
    chunks_.emplace_back(&device, chunk);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace plimsoll::evict
