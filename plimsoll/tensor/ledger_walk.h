// LedgerWalk: visits every tensor and buffer while all other threads are stopped at their gates.
//
//   LedgerWalk::run([&](const LedgerRow& row) { bytes += row.bytes; });     // bytes == memory().num_bytes
//
// There is a row for each live tensor, and one for each buffer that no tensor refers to: one held by a tape or a cache,
// or a kernel's scratch. A buffer's bytes are in one row: that of the tensor made with it if it is alive, else that of
// one of the views.
// Thread safety: any thread, outside its gate. Cost: linear in the largest number of tensors there ever were at once,
// about 10 ns for each.
#pragma once

#include <cstddef>

#include "plimsoll/base/function_ref.h"
#include "plimsoll/tensor/storage.h"
#include "plimsoll/tensor/tensor_record.h"

namespace plimsoll::internal {

struct LedgerRow {
  const TensorRecord* record;  // nullptr for a buffer that no tensor refers to.
  const Storage* storage;
  std::size_t bytes;
};

class LedgerWalk {
 public:
  using Visit = FunctionRef<void(const LedgerRow& row)>;

  // `f` must not make, drop or use tensors, nor allocate device memory. What a row points to is valid only inside `f`.
  static void run(Visit f);

  // The ledger's label of a buffer; nullptr when it has no bytes of ours. Call inside a walk.
  static const BlockLabel* label_of(const Storage& storage) noexcept;
  static std::size_t num_pins(const Storage& storage) noexcept;  // The number of data views on it.

 private:
  // Whether this row carries the bytes: true once in a walk.
  static bool claim(Storage& storage, std::uint32_t walk) noexcept;
  static std::size_t bytes_of(const Storage& storage) noexcept;
};

}  // namespace plimsoll::internal
