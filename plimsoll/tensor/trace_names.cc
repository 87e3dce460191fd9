#include "plimsoll/tensor/trace_names.h"

#include <string>
#include <vector>

#include "plimsoll/memory/chunk.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/tensor/ledger_walk.h"

namespace plimsoll::internal {

void tell_trace_name(const Tensor& tensor) noexcept {
  if (!trace_is_recording()) return;
  const TensorRecord& record = *tensor.record();
  const Storage* const storage = record.storage.load(std::memory_order_acquire);
  if (record.has(TensorRecord::kView) || !storage || !storage->chunk() || !record.name()) return;
  const BlockLabel& label = storage->chunk()->label;
  trace_named(label.id, category_name(label.category), record.name());
}

void tell_trace_all_names() {
  struct Named {
    std::uint64_t block;
    Category category;
    std::string name;
  };
  std::vector<Named> all;
  LedgerWalk::run([&](const LedgerRow& row) {
    if (!row.record || !row.record->name() || row.record->has(TensorRecord::kView)) return;
    if (const BlockLabel* label = LedgerWalk::label_of(*row.storage))
      all.push_back({label->id, label->category, row.record->name()});
  });
  for (const Named& named : all) trace_named(named.block, category_name(named.category), named.name);
}

}  // namespace plimsoll::internal
