// TapeRecord: what a tape has recorded: nodes in order, each an op with its inputs and outputs and what it saved.
//
// Values are numbered: a slot is a value that depends on something watched. Nothing here is a tensor: buffers that a
// gradient will read are held as storages, except for large ones that the op that made them can cheaply recompute. Its
// thread keeps the memory of a finished record for the next tape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plimsoll/autograd/slot_map.h"
#include "plimsoll/tensor/counted_overhead.h"
#include "plimsoll/tensor/op.h"
#include "plimsoll/tensor/storage.h"

namespace plimsoll::internal {

inline constexpr std::uint32_t kNoSlot = UINT32_MAX;

inline constexpr std::uint32_t kNoNodeOfTape = UINT32_MAX;

// An input or output of a node.
struct TapeValue {
  std::uint64_t id = 0;
  StorageRef saved;  // Set when the gradient reads it and it is not recomputed.
  std::size_t offset = 0;
  std::uint32_t slot = kNoSlot;
  std::uint32_t shape = 0;  // Index of its shape in the record.
  // For a value that is read but not saved: the node that recomputes it. For that node's output: the number of readers.
  std::uint32_t maker = kNoNodeOfTape;
  std::uint32_t makings = 0;
  DType dtype = f32;
};

struct TapeNode {
  Op* op;
  std::uint32_t first_value;  // Inputs, then outputs.
  std::uint32_t inputs, outputs;
  const char* scope;  // The name scope it ran in; its gradient is made there too.
};

class TapeRecord {
 public:
  TapeRecord() = default;
  ~TapeRecord() { clear(); }
  TapeRecord(const TapeRecord&) = delete;
  TapeRecord& operator=(const TapeRecord&) = delete;

  static std::unique_ptr<TapeRecord> obtain();  // A cleared record of this thread, or a new one.
  static void give_back(std::unique_ptr<TapeRecord> record) noexcept;

  std::uint32_t find(std::uint64_t id) const noexcept { return slots_.find(id); }
  std::uint32_t add_slot(std::uint64_t id);  // Returns the existing one when there is one.
  std::uint32_t num_slots() const noexcept { return slots_.size(); }

  // Adds a node when an input depends on something watched, or belongs to a trainable variable, and the op has a
  // gradient. When it throws, nothing was added.
  void add(const Op& op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs);

  std::size_t size() const noexcept { return nodes_.size(); }
  const TapeNode& node(std::size_t index) const noexcept { return nodes_[index]; }
  std::span<TapeValue> inputs(const TapeNode& node) noexcept { return {&values_[node.first_value], node.inputs}; }
  std::span<TapeValue> outputs(const TapeNode& node) noexcept {
    return {&values_[node.first_value] + node.inputs, node.outputs};
  }
  std::span<const TapeValue> values() const noexcept { return values_; }
  const Shape& shape(const TapeValue& value) const noexcept { return shapes_[value.shape]; }
  std::span<const TapeNode> nodes() const noexcept { return nodes_; }

  void release(const TapeNode& node) noexcept;  // Frees what it saved.
  static void drop(TapeValue& value) noexcept;  // The same for one value.
  static void save(TapeValue& value, const Tensor& tensor) noexcept;
  void clear() noexcept;

 private:
  void* op_memory(std::size_t bytes);
  SlotMask find_wanted(std::span<const Tensor* const> inputs);
  std::uint32_t maker_of(const Tensor& input, std::uint32_t slot) const noexcept;
  std::uint32_t new_maker(const OpFacts& facts, std::span<const Tensor* const> inputs,
                          std::span<const Tensor> outputs) const noexcept;
  void leave_to_maker(std::uint32_t maker) noexcept;
  std::uint32_t shape_number(const Shape& shape);
  void count_bytes();

  SlotMap slots_;
  std::vector<TapeNode> nodes_;
  std::vector<TapeValue> values_;
  std::vector<Shape> shapes_;          // Of values; equal ones in a row are stored once.
  std::vector<std::uint32_t> found_;   // Slots of the inputs of the node that is being added.
  std::vector<std::uint32_t> makers_;  // By slot, as far as there are any: the node that can recompute it.
  struct Block {
    std::unique_ptr<std::byte[]> bytes;
    std::size_t size;
  };
  std::vector<Block> blocks_;  // Ops are stored here, one after the other.
  std::size_t block_ = 0, used_ = 0;
  CountedOverhead counted_;  // Its own memory; not what it saved, which is in the ledger.
};

}  // namespace plimsoll::internal
