#include "plimsoll/graph/parked_variables.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "plimsoll/graph/park_variable.h"
#include "plimsoll/tensor/evict/recipe.h"

namespace plimsoll::internal {
namespace {

void reserve(std::unique_ptr<ParkedBytes>& parked, std::size_t bytes, SpillFile& file) {
  if (parked && parked->slot.is_of(file)) return;
  auto made = std::make_unique<ParkedBytes>();
  made->slot = file.reserve(bytes);
  parked = std::move(made);
}

}  // namespace

void ParkedVariables::share(const ProgramTables& tables, std::span<const Variable> variables, SpillFile& file) {
  uses_.resize(tables.parked.size());
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    const std::uint32_t number = tables.parked[i].variable;
    if (!tables.variables[number].writes) park_variable(variables[number], file);
    uses_[i].storage = variables[number].share_bytes();
    if (evict::StorageAccess::value_of(*uses_[i].storage)) uses_[i].storage->resident();  // Known to recipes.
  }
}

void ParkedVariables::obtain(const ProgramTables& tables, std::span<const Variable> variables, SpillFile& file) {
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    Use& use = uses_[i];
    const std::uint32_t number = tables.parked[i].variable;
    if (!tables.variables[number].writes) {
      // Two variables may share their bytes: those are locked once.
      const auto is_same = [&](const Use& before) { return before.storage.get() == use.storage.get(); };
      ParkedBytes* const parked = Parking::bytes_of(*use.storage);
      if (parked && std::none_of(uses_.begin(), uses_.begin() + static_cast<std::ptrdiff_t>(i), is_same))
        use.lock = std::unique_lock(parked->mutex);
      continue;
    }
    if (!Parking::is_own(*use.storage, 2)) {
      use.storage = StorageRef();
      use.storage = StorageRef::share(&variables[number].own_bytes());
    }
    Parking::park(*use.storage, file);
    use.storage->note_write();
    reserve(use.next, tables.parked[i].bytes, file);
    if (!Parking::bytes_of(*use.storage)) reserve(use.spare, tables.parked[i].bytes, file);
  }
}

void ParkedVariables::load(std::size_t number, std::span<std::byte> to) {
  Use& use = uses_[number];
  if (use.storage->is_resident()) {
    std::memcpy(to.data(), use.storage->base(), to.size());
  } else if (ParkedBytes* const parked = Parking::bytes_of(*use.storage)) {
    use.loading = parked;
    parked->slot.load(to);
  } else {
    Parking::fill(*use.storage, to.data());
  }
}

void ParkedVariables::wait_for_load(std::size_t number) {
  if (ParkedBytes* const loading = std::exchange(uses_[number].loading, nullptr)) loading->slot.wait();
}

void ParkedVariables::store(std::size_t number, std::span<const std::byte> from) {
  uses_[number].next->slot.store(from);
}

void ParkedVariables::commit(const ProgramTables& tables) noexcept {
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    Use& use = uses_[i];
    if (!tables.variables[tables.parked[i].variable].writes) continue;
    Parking::exchange(*use.storage, use.next);
    if (!use.next) use.next = std::move(use.spare);
  }
}

void ParkedVariables::release() noexcept {
  for (Use& use : uses_) {
    if (ParkedBytes* const loading = std::exchange(use.loading, nullptr)) loading->slot.give_up();
    if (use.next) use.next->slot.give_up();
    if (use.lock.owns_lock()) use.lock.unlock();
    use.lock = {};
    use.storage = StorageRef();
  }
}

void ParkedVariables::release_slots() noexcept {
  for (Use& use : uses_) {
    use.next.reset();
    use.spare.reset();
  }
}

}  // namespace plimsoll::internal
