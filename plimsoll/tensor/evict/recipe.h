// Recipes: how the results of operations under a budget that evicts are computed again after their bytes were dropped.
//
//   h = dense(x, w)   ->   Recipe{dense, inputs {x's value, w's value}, outputs {h's value}}
//
// A value is what a storage held from one write to the next. Recipes refer to values, not to storages: they are no
// reference to one, so that an operand that only recipes know of is overwritten in place, freed and updated as if there
// were none. A value whose storage has ended is dead: it stays as long as a recipe reads it and can be computed again
// by its own recipe. A value without a recipe is a leaf (a variable, an input, what a gradient made); recipes end when
// a leaf that they read is written or ends, unless a dropped value still needs them.
// Where the budget spills, a value may be stored in its file: then it is loaded instead of computed, needs no recipe,
// and leaves that operations made are dropped, too.
// Everything here is guarded by the mutex of the RecipeBook.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "plimsoll/base/dtype.h"
#include "plimsoll/base/shape.h"
#include "plimsoll/memory/label.h"
#include "plimsoll/memory/spill/spill_file.h"
#include "plimsoll/tensor/storage.h"

namespace plimsoll {

class Op;
namespace internal {
struct ParkedBytes;
}  // namespace internal

namespace evict {

class Domain;
struct Recipe;
struct Value;

// What a recipe reads: elements of a value, and the recipe's place in the list of those that read it.
struct Input {
  Value* value;
  Recipe* reader;
  Input* next;
  Input* previous;
  std::size_t offset;
  std::uint32_t version;  // Of the storage, for a check that no write went unnoticed.
  DType dtype;
  Shape shape;
};

struct Output {
  Value* value;  // nullptr: gone, nobody will read it.
  DType dtype;
  Shape shape;
  std::size_t bytes() const { return shape.size() * size_of(dtype); }
};

struct Value {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  Storage* storage = nullptr;       // nullptr: dead.
  Chunk* chunk = nullptr;           // The bytes of a dead one, while a recomputation needs them.
  Recipe* maker = nullptr;          // nullptr: a leaf.
  Domain* home = nullptr;           // In whose list it is, or whose file has it; else not to be followed.
  std::unique_ptr<SpillSlot> slot;  // Has its bytes, as long as the value is one.
  Input* readers = nullptr;
  void* external = nullptr;  // What the storage has in the place of its pointer to this.
  Device* device = nullptr;
  std::size_t bytes = 0;
  std::uint32_t output = 0;         // Of its maker.
  std::uint32_t locks = 0;          // Its bytes are being read.
  std::uint32_t holds = 0;          // A recomputation knows it.
  std::uint32_t pending = 0;        // Recipes of a recomputation that are still to read it.
  std::uint32_t candidate = kNone;  // Its number in the list of its domain.
  std::uint32_t depth = 0;          // Of a dead one: recipes that it took to compute it when it died, up to many.
  std::uint32_t version = 0;
  bool cannot_store = false;  // It was tried.
  bool is_orphan = false;     // A leaf whose storage nobody refers to, kept because dropped values need it.
  bool is_queued = false;     // In a list of work.
  Value* next = nullptr;      // The same.
  Value* next_orphan = nullptr;
  Value* previous_orphan = nullptr;
  BlockLabel label;  // While it has no bytes.

  static Value* make();  // Throws std::bad_alloc.
  void destroy() noexcept;
  bool has_bytes() const noexcept { return storage ? storage->is_resident() : chunk || bytes == 0; }
  bool is_dropped() const noexcept { return storage && storage->is_dropped(); }
  bool is_stored() const noexcept { return slot != nullptr; }
  bool is_in_use() const noexcept { return locks > 0 || holds > 0; }
  Domain* domain() const noexcept;    // nullptr: of none.
  const void* base() const noexcept;  // Of one that has bytes; nullptr when those are none.
};

// One block of memory: the recipe, its inputs, its outputs, the op.
struct Recipe {
  Domain* domain = nullptr;
  Op* op = nullptr;
  Device* device = nullptr;  // Of the outputs.
  std::size_t block_bytes = 0;
  float cost = 0;  // Op::cost.
  std::uint32_t num_inputs = 0, num_outputs = 0;
  std::uint32_t live_outputs = 0;  // That have a value.
  std::uint64_t walk = 0;          // Mark of a walk.
  Recipe* next = nullptr;          // In a list of work.

  // Room for so many inputs and outputs, which are not linked yet, and a copy of the op. Throws std::bad_alloc.
  static Recipe* make(const Op& op, std::size_t inputs, std::size_t outputs);
  void destroy() noexcept;  // Outside of all locks: an op may own what takes them.

  std::span<Input> inputs() noexcept { return {reinterpret_cast<Input*>(this + 1), num_inputs}; }
  std::span<Output> outputs() noexcept {
    return {reinterpret_cast<Output*>(reinterpret_cast<Input*>(this + 1) + num_inputs), num_outputs};
  }
};

inline Domain* Value::domain() const noexcept {
  if (maker) return maker->domain;
  return candidate != kNone || slot ? home : nullptr;
}

// Links an input into its value's list of readers, and takes it out.
void link(Input& input) noexcept;
void unlink(Input& input) noexcept;

// A list of recipes to look at, each once.
//   RecipeWalk walk(book.new_walk());
//   walk.push_readers(value);
//   while (Recipe* recipe = walk.pop()) ...
class RecipeWalk {
 public:
  explicit RecipeWalk(std::uint64_t mark) noexcept : mark_(mark) {}
  bool push(Recipe* recipe) noexcept {  // False for nullptr and for one that was pushed before.
    if (!recipe || std::exchange(recipe->walk, mark_) == mark_) return false;
    recipe->next = std::exchange(work_, recipe);
    return true;
  }
  void push_readers(const Value& value) noexcept {
    for (const Input* input = value.readers; input; input = input->next) push(input->reader);
  }
  Recipe* pop() noexcept { return work_ ? std::exchange(work_, work_->next) : nullptr; }

 private:
  const std::uint64_t mark_;
  Recipe* work_ = nullptr;
};

// What only recipes may do to a storage. Each call enters the gate of the calling thread.
class StorageAccess {
 public:
  static Value* value_of(const Storage& storage) noexcept {  // nullptr when it has none.
    return storage.is_watched() ? storage.value_ : nullptr;
  }
  static void attach(Storage& storage, Value& value) noexcept;
  static void detach(Storage& storage) noexcept;
  static void set_droppable(Storage& storage, bool droppable) noexcept;  // Of a resident one.
  static Chunk* take_bytes(Storage& storage) noexcept;  // It is dropped now; the chunk is the caller's.
  static void give_bytes(Storage& storage, Chunk* chunk) noexcept;
  static Chunk* leave_bytes(Storage& storage) noexcept;  // The same for one that is about to end.
  static void end(Storage& storage) noexcept;            // One without references. Outside of all locks.
  static void forget_slot(Value& value) noexcept;        // It is not stored any more. Outside of the file's transfers.
  static std::int64_t spilled_bytes() noexcept;          // Of dropped storages that are stored, on all threads.

  // Of storages that no recipe knows, for Parking.
  static void park(Storage& storage, SpillFile& file);
  static ParkedBytes* parked(const Storage& storage) noexcept;
  static void fill(const Storage& storage, void* to) noexcept;
  static void exchange(Storage& storage, std::unique_ptr<ParkedBytes>& with) noexcept;
  static void bring_back(Storage& storage);
};

}  // namespace evict
}  // namespace plimsoll
