#include "plimsoll/autograd/tape_record.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/tensor/thread_context.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kBlock = 16384;
constexpr std::size_t kRemadeBytes = 256 << 10;  // Smaller values are kept: recomputing them costs more than it saves.
constexpr std::size_t kKeptNodes = 1 << 16;      // Larger records are not reused for the next tape.
thread_local std::unique_ptr<TapeRecord> spare;

constexpr std::size_t rounded(std::size_t bytes) {
  return (bytes + alignof(std::max_align_t) - 1) / alignof(std::max_align_t) * alignof(std::max_align_t);
}

// Room for `more` elements, growing as push_back would.
template <class T>
void make_room(std::vector<T>& list, std::size_t more) {
  if (list.capacity() - list.size() < more) list.reserve(std::max(list.capacity() * 2, list.size() + more));
}

}  // namespace

std::unique_ptr<TapeRecord> TapeRecord::obtain() { return spare ? std::move(spare) : std::make_unique<TapeRecord>(); }

void TapeRecord::give_back(std::unique_ptr<TapeRecord> record) noexcept {
  if (record->nodes_.capacity() > kKeptNodes) return;
  record->clear();
  if (!spare) spare = std::move(record);
}

std::uint32_t TapeRecord::add_slot(std::uint64_t id) { return slots_.add(id); }

void* TapeRecord::op_memory(std::size_t bytes) {
  while (block_ < blocks_.size() && blocks_[block_].size - used_ < bytes) {
    ++block_;
    used_ = 0;
  }
  if (block_ == blocks_.size()) {
    const std::size_t size = std::max(kBlock, bytes);
    blocks_.push_back({std::make_unique<std::byte[]>(size), size});
    used_ = 0;
  }
  return blocks_[block_].bytes.get() + used_;
}

void TapeRecord::count_bytes() {
  std::size_t bytes = sizeof(TapeRecord) + slots_.num_bytes() + nodes_.capacity() * sizeof(nodes_[0]) +
                      values_.capacity() * sizeof(values_[0]) + shapes_.capacity() * sizeof(shapes_[0]) +
                      makers_.capacity() * sizeof(makers_[0]);
  for (const Block& block : blocks_) bytes += block.size;
  counted_.set(bytes);
}

SlotMask TapeRecord::find_wanted(std::span<const Tensor* const> inputs) {
  found_.resize(inputs.size());
  SlotMask wanted = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorRecord& record = *inputs[i]->record();
    found_[i] = is_floating(record.dtype) ? slots_.find(record.id) : kNoSlot;
    if (found_[i] == kNoSlot && record.has(TensorRecord::kTrainable) && is_floating(record.dtype))
      found_[i] = slots_.add(record.id);
    if (found_[i] != kNoSlot) wanted |= slot(i);
  }
  return wanted;
}

// The node that can recompute this input, when that pays.
std::uint32_t TapeRecord::maker_of(const Tensor& input, std::uint32_t slot) const noexcept {
  if (slot >= makers_.size() || makers_[slot] == kNoNodeOfTape) return kNoNodeOfTape;
  return input.shape().is_known() && input.nbytes() >= kRemadeBytes ? makers_[slot] : kNoNodeOfTape;
}

// The node that can recompute the first output of the next one: itself, or the maker of what it only reshapes.
std::uint32_t TapeRecord::new_maker(const OpFacts& facts, std::span<const Tensor* const> inputs,
                                    std::span<const Tensor> outputs) const noexcept {
  if (facts.remakes) return static_cast<std::uint32_t>(nodes_.size());
  if (!facts.is_view || !inputs[0]->shape().is_known() || !outputs[0].shape().is_known()) return kNoNodeOfTape;
  return inputs[0]->nbytes() == outputs[0].nbytes() ? maker_of(*inputs[0], found_[0]) : kNoNodeOfTape;
}

std::uint32_t TapeRecord::shape_number(const Shape& shape) {
  if (shapes_.empty() || !(shapes_.back() == shape)) shapes_.push_back(shape);
  return static_cast<std::uint32_t>(shapes_.size() - 1);
}

void TapeRecord::add(const Op& op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs) {
  const SlotMask wanted = find_wanted(inputs);
  if (wanted == 0 || !op.facts().has_gradient) return;
  const SavedSlots saved = op.saved(wanted);
  const std::size_t capacity = nodes_.capacity() + values_.capacity() + shapes_.capacity(), blocks = blocks_.size();
  make_room(nodes_, 1);
  make_room(values_, inputs.size() + outputs.size());
  make_room(shapes_, inputs.size() + outputs.size());
  const std::uint32_t maker_of_output = new_maker(op.facts(), inputs, outputs);
  if (maker_of_output != kNoNodeOfTape) make_room(makers_, slots_.size() + outputs.size() - makers_.size());
  const std::size_t bytes = op.object_bytes();
  void* const memory = op_memory(bytes);
  slots_.make_room(outputs.size());
  if (capacity != nodes_.capacity() + values_.capacity() + shapes_.capacity() || blocks != blocks_.size())
    count_bytes();
  Op* const kept = op.copy_to(memory);
  used_ += rounded(bytes);
  const auto maker_for = [&](std::size_t i) {
    return saved.inputs & saved.remade & slot(i) ? maker_of(*inputs[i], found_[i]) : kNoNodeOfTape;
  };
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (const std::uint32_t maker = maker_for(i); maker != kNoNodeOfTape) leave_to_maker(maker);
  const EnterThread inside(ThreadMemory::current());
  nodes_.push_back({kept, static_cast<std::uint32_t>(values_.size()), static_cast<std::uint32_t>(inputs.size()),
                    static_cast<std::uint32_t>(outputs.size()), ThreadContext::current().name_scope});
  const auto add_value = [&](const Tensor& tensor, std::uint32_t slot_number, bool save) -> TapeValue& {
    const TensorRecord& record = *tensor.record();
    StorageRef bytes = save ? StorageRef::share(record.storage.load(std::memory_order_relaxed)) : StorageRef();
    return values_.emplace_back(TapeValue{.id = record.id,
                                          .saved = std::move(bytes),
                                          .offset = record.offset,
                                          .slot = slot_number,
                                          .shape = shape_number(record.shape()),
                                          .dtype = record.dtype});
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool save = (saved.inputs & slot(i)) != 0;
    const std::uint32_t maker = maker_for(i);
    add_value(*inputs[i], found_[i], save && maker == kNoNodeOfTape).maker = maker;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i)
    add_value(outputs[i], slots_.add(outputs[i].record()->id), (saved.outputs & slot(i)) != 0);
  if (maker_of_output == kNoNodeOfTape) return;
  const std::uint32_t made = this->outputs(nodes_.back())[0].slot;
  if (makers_.size() <= made) makers_.resize(made + 1, kNoNodeOfTape);
  makers_[made] = maker_of_output;
}

// Another reader of the first output of a node that can recompute it. If the node itself saved it, it no longer does.
void TapeRecord::leave_to_maker(std::uint32_t maker) noexcept {
  TapeValue& output = outputs(nodes_[maker])[0];
  ++output.makings;
  if (!output.saved) return;
  drop(output);
  output.maker = maker;
  ++output.makings;
}

void TapeRecord::release(const TapeNode& node) noexcept {
  for (std::uint32_t i = 0; i < node.inputs + node.outputs; ++i) {
    TapeValue& value = values_[node.first_value + i];
    if (value.saved) drop(value);
  }
}

void TapeRecord::drop(TapeValue& value) noexcept {
  StorageRef dropped;  // Freed outside the gate.
  const EnterThread inside(ThreadMemory::current());
  dropped = std::move(value.saved);
}

void TapeRecord::save(TapeValue& value, const Tensor& tensor) noexcept {
  const EnterThread inside(ThreadMemory::current());
  value.saved = StorageRef::share(tensor.record()->storage.load(std::memory_order_relaxed));
  value.offset = tensor.record()->offset;
}

void TapeRecord::clear() noexcept {
  for (const TapeNode& node : nodes_) {
    release(node);
    node.op->~Op();
  }
  const EnterThread inside(ThreadMemory::current());
  nodes_.clear();
  values_.clear();
  shapes_.clear();
  makers_.clear();
  slots_.clear();
  block_ = used_ = 0;
}

}  // namespace plimsoll::internal
