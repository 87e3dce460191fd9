#include "plimsoll/tensor/evict/recipe_book.h"

#include <pthread.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "plimsoll/device/device.h"
#include "plimsoll/memory/chunk.h"
#include "plimsoll/tensor/evict/domain.h"
#include "plimsoll/tensor/evict/recomputation.h"
#include "plimsoll/tensor/op.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll::evict {
namespace {

Storage& storage_of(const Tensor& tensor) noexcept { return *tensor.record()->storage.load(std::memory_order_acquire); }

}  // namespace

RecipeBook& RecipeBook::instance() {
  static auto* const book = new RecipeBook;
  return *book;
}

RecipeBook::RecipeBook() {  // Keeps the book consistent across fork().
  pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                 [] {
                   ++instance().generation_;
                   instance().mutex_.unlock();
                 });
}

// A turn to recompute for a domain. It begins and ends with the book locked, so that a child of fork() can tell whether
// another thread had one. Throws FailedPrecondition there.
class RecipeBook::Turn {
 public:
  Turn(RecipeBook& book, Domain& domain, Lock& lock) : domain_(domain) {
    domain.begin_turn(book.generation_);
    lock.unlock();
    std::this_thread::yield();  // A thread that asks repeatedly lets others have the book.
    domain.recomputing().lock();
    lock.lock();
  }
  ~Turn() {
    domain_.recomputing().unlock();
    if (domain_.end_turn()) delete &domain_;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Domain& domain_;
};

void RecipeBook::bring_back(Value& value, Lock& lock) {
  Domain& domain = *value.domain();
  struct Hold {
    Value& value;
    explicit Hold(Value& held) : value(held) { ++value.holds; }
    ~Hold() { --value.holds; }
  };
  const Hold hold(value);
  const Turn turn(*this, domain, lock);
  if (!value.is_dropped()) return;
  if (value.is_stored() && load(value, lock)) return;
  Recomputation(*this, domain, lock).run(value);
}

void RecipeBook::settle(Storage& storage) {
  Trash trash;
  Lock lock(mutex_);
  Value* const value = StorageAccess::value_of(storage);
  if (!value || storage.is_fixed()) return;
  if (value->is_dropped()) bring_back(*value, lock);
  if (Domain* const domain = value->domain()) domain->forget(*value);
  StorageAccess::set_droppable(storage, false);
  end_if_unneeded(*value, trash);
}

Value* RecipeBook::lock(Storage& storage) {
  {
    Lock lock(mutex_);
    Value* const value = StorageAccess::value_of(storage);
    if (storage.is_fixed()) return nullptr;
    if (value) {
      if (value->is_dropped()) bring_back(*value, lock);
      ++value->locks;
      if (const auto domain = value->domain()) domain->touch(*value);
      return value;
    }
  }
  storage.resident();  // The storage is lazy.
  return nullptr;
}

void RecipeBook::lock_again(Value& value) noexcept {
  const std::lock_guard lock(mutex_);
  ++value.locks;
}

void RecipeBook::unlock(Value& value) noexcept {
  Value* const list[] = {&value};
  unlock_all(list);
}

void RecipeBook::unlock_all(std::span<Value* const> values) noexcept {
  Trash trash;
  const std::lock_guard lock(mutex_);
  for (Value* const value : values) {
    --value->locks;
    if (!value->storage || !value->maker) queue(*value);
  }
  end_queued(trash);
}

std::size_t RecipeBook::lock_all(std::span<const Tensor* const> tensors, Value** locked) {
  Trash trash;
  Lock lock(mutex_);
  std::size_t count = 0;
  const auto hold = [&](Value& value) {
    ++value.locks;
    if (Domain* const domain = value.domain()) domain->touch(value);
    locked[count++] = &value;
  };
  // Locks resident values first, so that none is dropped for another. Recovering one may recover others.
  for (const bool is_dropped : {false, true})
    for (const Tensor* const tensor : tensors) {
      Storage& storage = storage_of(*tensor);
      Value* const value = storage.is_fixed() ? nullptr : StorageAccess::value_of(storage);
      if (!value || (value->is_dropped() && !is_dropped)) continue;
      if (std::find(locked, locked + count, value) != locked + count) continue;
      try {
        if (value->is_dropped()) bring_back(*value, lock);
      } catch (...) {
        for (std::size_t i = 0; i < count; ++i) {
          --locked[i]->locks;
          if (!locked[i]->storage || !locked[i]->maker) queue(*locked[i]);
        }
        end_queued(trash);
        throw;
      }
      hold(*value);
    }
  return count;
}

bool RecipeBook::release(Storage& storage) noexcept {
  Trash trash;
  const std::lock_guard lock(mutex_);
  Value* const value = StorageAccess::value_of(storage);
  if (!value) return true;
  if (!value->maker && value->readers) {
    if (find_needing(*value)) {
      become_orphan(*value);
      return false;
    }
    ++value->holds;
    end_readers(*value, trash);
    --value->holds;
  }
  become_dead(*value, trash);
  return true;
}

// The value's storage ends. A thread that is reading the bytes keeps them.
void RecipeBook::become_dead(Value& value, Trash& trash) noexcept {
  Storage& storage = *value.storage;
  if (value.is_in_use() || storage.is_dropped()) value.chunk = StorageAccess::leave_bytes(storage);
  leave_storage(value);
  ++value.holds;  // Otherwise the end of its last reader would end the value itself.
  end_long_readers(value, trash);
  --value.holds;
  end_if_unneeded(value, trash);
}

// The storage ends, or holds another value from now on.
void RecipeBook::leave_storage(Value& value) noexcept {
  Storage& storage = *value.storage;
  if (storage.chunk()) value.label = storage.chunk()->label;
  if (!storage.is_fixed()) StorageAccess::set_droppable(storage, false);
  StorageAccess::detach(storage);
  if (Domain* const domain = value.domain()) domain->forget(value);
  if (!value.maker) return;
  value.depth = 1;
  for (const Input& input : value.maker->inputs())
    if (!input.value->storage) value.depth = std::min(value.depth + input.value->depth, kMostDead + 1);
}

// For a dead value that is held: ends its readers when too many dead values would remain between living ones, unless a
// dropped value needs them.
void RecipeBook::end_long_readers(Value& value, Trash& trash) noexcept {
  if (value.readers && (value.depth > kMostDead || is_long_above(value)) && !find_needing(value))
    end_readers(value, trash);
}

// Whether more than kMostDead recipes lie between a dead value and the living values computed from it.
bool RecipeBook::is_long_above(Value& value) noexcept {
  RecipeWalk walk(new_walk());
  std::uint32_t count = 0;
  walk.push_readers(value);
  while (Recipe* const recipe = walk.pop())
    for (const Output& output : recipe->outputs())
      if (output.value && !output.value->storage) {
        if (++count > kMostDead) return true;
        walk.push_readers(*output.value);
      }
  return false;
}

// Whether recomputing a living value takes more than kMostDead recipes of dead values.
bool RecipeBook::is_long_below(const Value& value) noexcept {
  RecipeWalk walk(new_walk());
  std::uint32_t count = 0;
  walk.push(value.maker);
  while (Recipe* const recipe = walk.pop())
    for (const Input& input : recipe->inputs())
      if (!input.value->storage && walk.push(input.value->maker) && ++count > kMostDead) return true;
  return false;
}

// A dropped value, or one that a recomputation is about to make, that needs `leaf`; nullptr if there is none.
Value* RecipeBook::find_needing(Value& leaf) noexcept {
  RecipeWalk walk(new_walk());
  walk.push_readers(leaf);
  while (Recipe* const next = walk.pop()) {
    Recipe& recipe = *next;
    for (const Output& output : recipe.outputs()) {
      if (!output.value) continue;
      const bool is_stored = output.value->is_stored();
      if ((output.value->is_dropped() && !is_stored) || output.value->holds > 0) return output.value;
      if (!output.value->storage && !is_stored) walk.push_readers(*output.value);
    }
  }
  return nullptr;
}

// Ends the recipes that read `leaf`, and those that read what dies with them. Requires that nothing needs it.
void RecipeBook::end_readers(Value& leaf, Trash& trash) noexcept {
  RecipeWalk walk(new_walk());
  walk.push_readers(leaf);
  while (Recipe* const next = walk.pop()) {
    Recipe& recipe = *next;
    for (Output& output : recipe.outputs()) {
      Value* const value = std::exchange(output.value, nullptr);
      if (!value) continue;
      value->maker = nullptr;
      become_leaf(*value);
      if (!value->storage && !value->is_stored()) walk.push_readers(*value);
      queue(*value);
    }
    for (Input& input : recipe.inputs()) {
      unlink(input);
      queue(*input.value);
    }
    remove_from_domain(recipe, trash);
  }
  end_queued(trash);
}

void RecipeBook::queue(Value& value) noexcept {
  if (std::exchange(value.is_queued, true)) return;
  value.next = std::exchange(queued_, &value);
}

void RecipeBook::end_if_unneeded(Value& value, Trash& trash) noexcept {
  queue(value);
  end_queued(trash);
}

void RecipeBook::end_queued(Trash& trash) noexcept {
  while (queued_) {
    Value& value = *std::exchange(queued_, queued_->next);
    value.is_queued = false;
    if (value.is_in_use()) continue;
    if (value.storage && !value.is_orphan) {
      if (value.maker || value.readers || value.candidate != Value::kNone || value.is_dropped()) continue;
      StorageAccess::detach(*value.storage);  // A leaf without readers is an ordinary storage.
      bury(value, trash);
      continue;
    }
    if (value.readers) {
      if (value.chunk && trash.add(*value.device, value.chunk)) value.chunk = nullptr;
      continue;
    }
    if (value.is_orphan) {
      no_orphan(value);
      Storage& storage = *value.storage;
      StorageAccess::detach(storage);
      value.storage = &storage;  // For the trash.
    }
    leave_maker(value, trash);
    bury(value, trash);
  }
}

// The value becomes a leaf; its recipe ends with the last of its outputs. What that recipe read is queued.
void RecipeBook::leave_maker(Value& value, Trash& trash) noexcept {
  Recipe* const maker = std::exchange(value.maker, nullptr);
  if (!maker) return;
  maker->outputs()[value.output].value = nullptr;
  if (--maker->live_outputs > 0) return;
  for (Input& input : maker->inputs()) {
    unlink(input);
    queue(*input.value);
  }
  remove_from_domain(*maker, trash);
}

void RecipeBook::remove_from_domain(Recipe& recipe, Trash& trash) noexcept {
  if (recipe.domain->remove(recipe)) trash.add(*recipe.domain);
  trash.add(recipe);
}

void RecipeBook::become_orphan(Value& value) noexcept {
  value.is_orphan = true;
  value.previous_orphan = nullptr;
  value.next_orphan = std::exchange(orphans_, &value);
  if (value.next_orphan) value.next_orphan->previous_orphan = &value;
}

void RecipeBook::no_orphan(Value& value) noexcept {
  value.is_orphan = false;
  (value.previous_orphan ? value.previous_orphan->next_orphan : orphans_) = value.next_orphan;
  if (value.next_orphan) value.next_orphan->previous_orphan = value.previous_orphan;
}

// Ends leaves that were kept for dropped values that are now back or gone. Returns their bytes.
std::size_t RecipeBook::end_orphans(Trash& trash) noexcept {
  std::size_t bytes = 0;
  for (Value* value = orphans_; value;) {
    Value* const next = value->next_orphan;
    bytes += end_orphan(*value, trash);
    value = next;
  }
  return bytes;
}

// The same for one value; 0 when it is needed, or is not an orphan.
std::size_t RecipeBook::end_orphan(Value& value, Trash& trash) noexcept {
  if (!value.is_orphan || value.is_in_use() || find_needing(value)) return 0;
  ++value.holds;  // Otherwise the end of its last reader would end the value itself.
  end_readers(value, trash);
  --value.holds;
  const std::size_t bytes = value.has_bytes() ? value.bytes : 0;
  end_if_unneeded(value, trash);
  return bytes;
}

void RecipeBook::about_to_write(Storage& storage) {
  Trash trash;
  std::vector<Value*> returned;  // Locked, so that they are not dropped again before the recipes end.
  Lock lock(mutex_);
  Value* const value = StorageAccess::value_of(storage);
  if (!value) return;
  ++value->holds;
  const auto let_go = [&]() noexcept {
    --value->holds;
    for (Value* const back : returned) {
      --back->locks;
      queue(*back);
    }
    queue(*value);
  };
  try {
    if (value->is_dropped()) bring_back(*value, lock);
    while (Value* const needing = find_needing(*value)) {
      returned.reserve(returned.size() + 1);
      if (!needing->is_dropped()) {  // Another thread is computing it, or something that needs it.
        const Turn turn(*this, *needing->maker->domain, lock);
        continue;
      }
      ++needing->locks;
      returned.push_back(needing);
      bring_back(*needing, lock);
    }
  } catch (...) {
    let_go();
    end_queued(trash);
    throw;
  }
  end_readers(*value, trash);
  leave_storage(*value);
  let_go();
  end_queued(trash);
}

bool RecipeBook::give_up(Storage& storage, std::span<Value* const> own, Value*& old) noexcept {
  Trash trash;
  const std::lock_guard lock(mutex_);
  Value* const value = StorageAccess::value_of(storage);
  if (!value) return true;
  if (value->locks > (std::find(own.begin(), own.end(), value) != own.end() ? 1u : 0u)) return false;
  if (!value->maker) {
    if (find_needing(*value)) return false;
    ++value->holds;
    end_readers(*value, trash);
    leave_storage(*value);
    --value->holds;
    end_if_unneeded(*value, trash);
    return true;
  }
  ++value->holds;
  leave_storage(*value);
  end_long_readers(*value, trash);
  old = value;
  return true;
}

bool RecipeBook::can_record(const Domain& domain, const Op& op, std::span<const Tensor* const> inputs,
                            std::span<const Tensor> outputs, const Value* old) noexcept {
  const OpFacts facts = op.facts();
  if (!facts.is_pure || facts.is_view || outputs.empty()) return false;
  if (old && old->depth > kMostDead) return false;
  for (const Tensor* const input : inputs) {
    const Storage& storage = storage_of(*input);
    if (&storage == &storage_of(outputs[0])) {
      // It is overwritten and cannot be recomputed, or not in this domain.
      if (!old || !old->maker || old->maker->domain != &domain) return false;
      continue;
    }
    if (storage.is_wrapped() || storage.is_written_outside()) return false;
    const Value* const value = StorageAccess::value_of(storage);
    if (value && value->domain() && value->domain() != &domain) return false;
  }
  return true;
}

Value& RecipeBook::value_or_leaf(Storage& storage) {
  if (Value* const value = StorageAccess::value_of(storage)) return *value;
  Value* const value = Value::make();
  StorageAccess::attach(storage, *value);
  return *value;
}

void RecipeBook::add_output(Domain& domain, Recipe& recipe, std::uint32_t index, const Tensor& tensor,
                            Value* value) noexcept {
  Storage& storage = storage_of(tensor);
  Output& output = recipe.outputs()[index];
  output.value = value;
  output.dtype = tensor.dtype();
  output.shape = tensor.shape();
  value->maker = &recipe;
  value->output = index;
  StorageAccess::attach(storage, *value);
  ++recipe.live_outputs;
  if (storage.chunk() && domain.is_worth_dropping(*storage.chunk(), value->bytes)) {
    StorageAccess::set_droppable(storage, true);
    domain.add(*value);
  }
}

bool RecipeBook::drop(Storage& storage) {
  Trash trash;
  const std::lock_guard lock(mutex_);
  Value* const value = StorageAccess::value_of(storage);
  if (!value || value->candidate == Value::kNone || value->locks > 0) return false;
  if (!value->maker && !value->is_stored()) return false;
  trash.make_room(1);
  value->domain()->drop(*value, trash);
  return true;
}

void RecipeBook::let_go(Value& old) noexcept {
  Trash trash;
  const std::lock_guard lock(mutex_);
  --old.holds;
  end_if_unneeded(old, trash);
}

void RecipeBook::record(Domain& domain, const Op& op, std::span<const Tensor* const> inputs,
                        std::span<const Tensor> outputs, Value* old, std::uint64_t work) noexcept {
  Trash trash;
  Recipe* recipe = nullptr;
  std::vector<Value*> made;
  const std::lock_guard lock(mutex_);
  domain.note_work(work);
  try {
    if (can_record(domain, op, inputs, outputs, old)) {
      made.reserve(outputs.size());
      domain.make_room(outputs.size());
      for (std::size_t i = 0; i < outputs.size(); ++i) made.push_back(Value::make());
      recipe = Recipe::make(op, inputs.size(), outputs.size());
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        Storage& storage = storage_of(*inputs[i]);
        recipe->inputs()[i].value = &storage == &storage_of(outputs[0]) ? old : &value_or_leaf(storage);
      }
    }
  } catch (const std::bad_alloc&) {
    if (recipe)
      for (const Input& input : recipe->inputs())
        if (input.value) queue(*input.value);
    for (Value* const value : made) value->destroy();
    if (recipe) trash.add(*recipe);
    recipe = nullptr;
  }
  if (recipe) {
    recipe->domain = &domain;
    recipe->device = &storage_of(outputs[0]).device();
    recipe->cost = static_cast<float>(work);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const TensorRecord& tensor = *inputs[i]->record();
      Input& input = recipe->inputs()[i];
      input.reader = recipe;
      input.offset = tensor.offset;
      input.dtype = tensor.dtype;
      input.shape = tensor.shape();
      input.version = input.value->version;
      link(input);
    }
    domain.add(*recipe);
    for (std::uint32_t i = 0; i < outputs.size(); ++i) add_output(domain, *recipe, i, outputs[i], made[i]);
  } else {
    offer(domain, outputs);
  }
  end_queued(trash);
}

}  // namespace plimsoll::evict
