// Trash: what to release once no lock is held any more.
//
//   Trash trash;                            // made before the lock, so that it ends after it
//   const std::lock_guard lock(mutex_);
//   trash.add(recipe);
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "plimsoll/tensor/evict/recipe.h"

namespace plimsoll::evict {

class Trash {
 public:
  Trash() = default;
  Trash(const Trash&) = delete;
  Trash& operator=(const Trash&) = delete;
  ~Trash() { clear(); }
  void clear() noexcept;
  bool is_empty() const noexcept { return chunks_.empty() && !recipes_ && !values_ && !domains_; }
  void add(Recipe& recipe) noexcept;
  void add_value(Value& value) noexcept;            // With its chunk, and an orphan's storage; the trash owns them.
  bool add(Device& device, Chunk* chunk) noexcept;  // False: there was no room to note it.
  void make_room(std::size_t chunks);
  void add(Domain& domain) noexcept;  // A domain without budget and recipes.

 private:
  std::vector<std::pair<Device*, Chunk*>> chunks_;
  Recipe* recipes_ = nullptr;
  Value* values_ = nullptr;
  Domain* domains_ = nullptr;
};

}  // namespace plimsoll::evict
