// Recipes: how to recompute the results of operations under an evicting budget after their bytes were dropped.
//
//   h = dense(x, w)   ->   Recipe{dense, inputs {x's value, w's value}, outputs {h's value}}
//
// A value is what a storage held from one write to the next. Recipes refer to values, not to storages, and do not keep
// a storage alive: an operand that only recipes refer to is overwritten in place, freed and updated as if there were no
// recipe. A value whose storage has ended is dead: it remains as long as a recipe reads it, and its own recipe can
// recompute it. A value without a recipe is a leaf (a variable, an input, a gradient's result); recipes end when a leaf
// that they read is written or ends, unless a dropped value still needs them.
// Where the budget spills, a value may be stored in its file: it is then loaded instead of computed and needs no
// recipe, and leaves that operations made can be dropped too.
// Everything here is guarded by the mutex of the RecipeBook.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "plimsoll/base/dtype.h"
#include "plimsoll/base/function_ref.h"
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

// An operand of a recipe: elements of a value, and the recipe's link in the list of that value's readers.
struct Input {
  Value* value;
  Recipe* reader;
  Input* next;
  Input* previous;
  std::size_t offset;
  std::uint32_t version;  // The storage's version, to check that no write was missed.
  DType dtype;
  Shape shape;
};

struct Output {
  Value* value;  // nullptr: gone, because nobody will read it.
  DType dtype;
  Shape shape;
  std::size_t bytes() const { return shape.size() * size_of(dtype); }
};

struct Value {
  static constexpr std::uint32_t kNone = UINT32_MAX;

  Storage* storage = nullptr;       // nullptr: dead.
  Chunk* chunk = nullptr;           // The bytes of a dead value while a recomputation needs them.
  Recipe* maker = nullptr;          // nullptr: a leaf.
  Domain* home = nullptr;           // The domain whose list or file has it; otherwise do not follow it.
  std::unique_ptr<SpillSlot> slot;  // Has its bytes as long as the value exists.
  Input* readers = nullptr;
  void* external = nullptr;  // The storage's own pointer, which a pointer to this value replaces.
  Device* device = nullptr;
  std::size_t bytes = 0;
  std::uint32_t output = 0;         // The index among its maker's outputs.
  std::uint32_t locks = 0;          // Readers of its bytes at the moment.
  std::uint32_t holds = 0;          // Recomputations that refer to it.
  std::uint32_t pending = 0;        // Recipes of a recomputation that have yet to read it.
  std::uint32_t candidate = kNone;  // Its index in its domain's list.
  std::uint32_t depth = 0;          // For a dead value: how many recipes computing it took when it died, up to a cap.
  std::uint32_t version = 0;
  bool cannot_store = false;  // Storing failed before.
  bool is_orphan = false;     // A leaf whose storage nobody refers to, kept because dropped values need it.
  bool is_queued = false;     // In a work list.
  Value* next = nullptr;      // Links the work list.
  Value* next_orphan = nullptr;
  Value* previous_orphan = nullptr;
  BlockLabel label;  // Valid while it has no bytes.

  static Value* make();  // Throws std::bad_alloc.
  void destroy() noexcept;
  bool has_bytes() const noexcept { return storage ? storage->is_resident() : chunk || bytes == 0; }
  bool is_dropped() const noexcept { return storage && storage->is_dropped(); }
  bool is_stored() const noexcept { return slot != nullptr; }
  bool is_in_use() const noexcept { return locks > 0 || holds > 0; }
  Domain* domain() const noexcept;    // nullptr: none.
  const void* base() const noexcept;  // Of a value that has bytes; nullptr when it has 0 bytes.
};

// One block of memory: the recipe, its inputs, its outputs, the op.
struct Recipe {
  Domain* domain = nullptr;
  Op* op = nullptr;
  Device* device = nullptr;  // The device of the outputs.
  std::size_t block_bytes = 0;
  float cost = 0;  // Op::cost.
  std::uint32_t num_inputs = 0, num_outputs = 0;
  std::uint32_t live_outputs = 0;  // Outputs that have a value.
  std::uint64_t walk = 0;          // Mark of the walk that saw it last.
  Recipe* next = nullptr;          // Links a work list.

  // Allocates room for this many inputs and outputs, not linked yet, and a copy of the op. Throws std::bad_alloc.
  static Recipe* make(const Op& op, std::size_t inputs, std::size_t outputs);
  void destroy() noexcept;  // Call outside all locks: an op may own something that takes them.

  std::span<Input> inputs() noexcept { return {reinterpret_cast<Input*>(this + 1), num_inputs}; }
  std::span<Output> outputs() noexcept {
    return {reinterpret_cast<Output*>(reinterpret_cast<Input*>(this + 1) + num_inputs), num_outputs};
  }
};

inline Domain* Value::domain() const noexcept {
  if (maker) return maker->domain;
  return candidate != kNone || slot ? home : nullptr;
}

// Adds an input to its value's list of readers, and removes it.
void link(Input& input) noexcept;
void unlink(Input& input) noexcept;

// A work list that visits each recipe once.
//   RecipeWalk walk(book.new_walk());
//   walk.push_readers(value);
//   while (Recipe* recipe = walk.pop()) ...
class RecipeWalk {
 public:
  explicit RecipeWalk(std::uint64_t mark) noexcept : mark_(mark) {}
  bool push(Recipe* recipe) noexcept {  // False for nullptr and for a recipe pushed before.
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

// Operations on a storage that only recipes may perform. Each call enters the gate of the calling thread.
class StorageAccess {
 public:
  static Value* value_of(const Storage& storage) noexcept {  // nullptr when it has none.
    return storage.is_watched() ? storage.value_ : nullptr;
  }
  static void attach(Storage& storage, Value& value) noexcept;
  static void detach(Storage& storage) noexcept;
  static void set_droppable(Storage& storage, bool droppable) noexcept;  // Requires a resident storage.
  static Chunk* take_bytes(Storage& storage) noexcept;  // Drops the storage; the chunk is the caller's.
  static void give_bytes(Storage& storage, Chunk* chunk) noexcept;
  static Chunk* leave_bytes(Storage& storage) noexcept;  // The same for a storage that is about to end.
  static void end(Storage& storage) noexcept;            // Requires no references. Call outside all locks.
  static void forget_slot(Value& value) noexcept;        // It is no longer stored. Not during a transfer.
  static std::int64_t spilled_bytes() noexcept;          // Of dropped storages that are in a file, on all threads.

  // For storages without recipes; used by Parking.
  static void park(Storage& storage, SpillFile& file);
  static ParkedBytes* parked(const Storage& storage) noexcept;
  static void fill(const Storage& storage, void* to) noexcept;
  static void exchange(Storage& storage, std::unique_ptr<ParkedBytes>& with) noexcept;
  static void bring_back(Storage& storage);
  static StorageRef take_elsewhere(Device& device, std::size_t bytes, const BlockLabel& label,
                                   std::function<void(void*)> load);
  static bool is_elsewhere(const Storage& storage) noexcept;
  static void load(Storage& storage);

 private:
  static void become_resident(Storage& storage, FunctionRef<void(std::span<std::byte>)> read);
};

}  // namespace evict
}  // namespace plimsoll
