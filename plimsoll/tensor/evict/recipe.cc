#include "plimsoll/tensor/evict/recipe.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include "plimsoll/device/device.h"
#include "plimsoll/memory/chunk.h"
#include "plimsoll/tensor/op.h"
#include "plimsoll/tensor/tensor_thread.h"

namespace plimsoll::evict {
namespace {

constexpr std::size_t rounded(std::size_t bytes) {
  return (bytes + alignof(std::max_align_t) - 1) / alignof(std::max_align_t) * alignof(std::max_align_t);
}

constinit std::atomic<std::int64_t> the_spilled_bytes{0};

void count_spilled(const Storage& storage, const Value& value, std::int64_t sign) noexcept {
  if (value.slot) the_spilled_bytes.fetch_add(sign * static_cast<std::int64_t>(storage.bytes()));
}

void count_beside(std::int64_t change) noexcept {
  TensorThread& counts = TensorThread::of(ThreadMemory::current());
  counts.count(counts.beside, change);
}

}  // namespace

const void* Value::base() const noexcept {
  if (storage) return storage->base();
  return chunk ? device->arena().address(chunk) : nullptr;
}

Value* Value::make() {
  auto* const value = new Value;
  count_beside(sizeof(Value));
  return value;
}

void Value::destroy() noexcept {
  count_beside(-static_cast<std::int64_t>(sizeof(Value)));
  delete this;
}

Recipe* Recipe::make(const Op& op, std::size_t inputs, std::size_t outputs) {
  static_assert(alignof(Input) <= alignof(std::max_align_t) && alignof(Output) <= alignof(Input));
  static_assert(sizeof(Recipe) % alignof(Input) == 0);
  const std::size_t before_op = rounded(sizeof(Recipe) + inputs * sizeof(Input) + outputs * sizeof(Output));
  const std::size_t bytes = before_op + rounded(op.object_bytes());
  auto* const block = static_cast<std::byte*>(::operator new(bytes));
  Op* copy = nullptr;
  try {
    copy = op.copy_to(block + before_op);
  } catch (...) {
    ::operator delete(block);
    throw;
  }
  auto* const recipe = ::new (block) Recipe;
  recipe->op = copy;
  recipe->block_bytes = bytes;
  recipe->num_inputs = static_cast<std::uint32_t>(inputs);
  recipe->num_outputs = static_cast<std::uint32_t>(outputs);
  for (Input& input : recipe->inputs()) ::new (&input) Input{};
  for (Output& output : recipe->outputs()) ::new (&output) Output{};
  count_beside(static_cast<std::int64_t>(bytes));
  return recipe;
}

void Recipe::destroy() noexcept {
  count_beside(-static_cast<std::int64_t>(block_bytes));
  for (Input& input : inputs()) input.~Input();
  for (Output& output : outputs()) output.~Output();
  op->~Op();
  this->~Recipe();
  ::operator delete(this);
}

void link(Input& input) noexcept {
  input.previous = nullptr;
  input.next = input.value->readers;
  if (input.next) input.next->previous = &input;
  input.value->readers = &input;
}

void unlink(Input& input) noexcept {
  (input.previous ? input.previous->next : input.value->readers) = input.next;
  if (input.next) input.next->previous = input.previous;
}

void StorageAccess::attach(Storage& storage, Value& value) noexcept {
  const EnterThread inside(ThreadMemory::current());
  value.storage = &storage;
  value.device = storage.device_;
  value.bytes = storage.bytes_;
  value.external = storage.external_;
  value.version = storage.version();
  storage.value_ = &value;
  storage.references_.fetch_or(Storage::kWatched, std::memory_order_release);
}

void StorageAccess::detach(Storage& storage) noexcept {
  const EnterThread inside(ThreadMemory::current());
  Value& value = *storage.value_;
  storage.external_ = static_cast<Storage::External*>(value.external);
  storage.references_.fetch_and(~Storage::kWatched, std::memory_order_release);
  value.storage = nullptr;
}

void StorageAccess::set_droppable(Storage& storage, bool droppable) noexcept {
  const EnterThread inside(ThreadMemory::current());
  storage.state_.store(droppable ? Storage::State::kDroppable : Storage::State::kResident, std::memory_order_release);
}

Chunk* StorageAccess::take_bytes(Storage& storage) noexcept {
  ThreadMemory& thread = ThreadMemory::current();
  TensorThread& counts = TensorThread::of(thread);
  const EnterThread inside(thread);
  Chunk* const chunk = storage.chunk_;
  storage.value_->label = chunk->label;
  count_spilled(storage, *storage.value_, 1);
  storage.state_.store(Storage::State::kDropped, std::memory_order_release);
  storage.chunk_ = nullptr;
  storage.base_ = nullptr;
  counts.count(counts.bytes, -static_cast<std::int64_t>(storage.bytes_));
  counts.count(counts.dropped, static_cast<std::int64_t>(storage.bytes_));
  return chunk;
}

void StorageAccess::give_bytes(Storage& storage, Chunk* chunk) noexcept {
  ThreadMemory& thread = ThreadMemory::current();
  TensorThread& counts = TensorThread::of(thread);
  const EnterThread inside(thread);
  storage.chunk_ = chunk;
  storage.base_ = storage.device_->arena().address(chunk);
  count_spilled(storage, *storage.value_, -1);
  storage.state_.store(Storage::State::kDroppable, std::memory_order_release);
  counts.count_bytes(static_cast<std::int64_t>(storage.bytes_));
  counts.count(counts.dropped, -static_cast<std::int64_t>(storage.bytes_));
}

Chunk* StorageAccess::leave_bytes(Storage& storage) noexcept {
  ThreadMemory& thread = ThreadMemory::current();
  TensorThread& counts = TensorThread::of(thread);
  const EnterThread inside(thread);
  Chunk* const chunk = storage.chunk_;
  if (storage.is_dropped()) {
    counts.count(counts.dropped, -static_cast<std::int64_t>(storage.bytes_));
    count_spilled(storage, *storage.value_, -1);
  }
  if (chunk) {
    storage.value_->label = chunk->label;
    counts.count(counts.bytes, -static_cast<std::int64_t>(storage.bytes_));
  }
  storage.chunk_ = nullptr;
  storage.base_ = nullptr;
  storage.state_.store(Storage::State::kResident, std::memory_order_release);  // end() uncounts the buffer.
  return chunk;
}

void StorageAccess::forget_slot(Value& value) noexcept {
  if (value.is_dropped()) count_spilled(*value.storage, value, -1);
  value.slot.reset();
}

std::int64_t StorageAccess::spilled_bytes() noexcept { return the_spilled_bytes.load(std::memory_order_relaxed); }

void StorageAccess::end(Storage& storage) noexcept {
  ThreadMemory& thread = ThreadMemory::current();
  TensorThread& counts = TensorThread::of(thread);
  Storage::Remains remains;
  {
    const EnterThread inside(thread);
    remains = storage.end(counts);
  }
  remains.give_back();
  counts.share_surplus();
}

}  // namespace plimsoll::evict
