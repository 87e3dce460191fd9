#include "plimsoll/tensor/leak_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/tensor/ledger_text.h"

namespace plimsoll {
namespace {

constexpr std::size_t kListed = 10;

void for_each_since(std::uint32_t era, LedgerWalk::Visit f) {
  LedgerWalk::run([&](const LedgerRow& row) {
    if (row.record && row.record->era >= era) f(row);
  });
}

}  // namespace

LeakCheck::LeakCheck() {
  const StopThreads stopped;  // So that every tensor is made either before or after it.
  era_ = TensorRecord::newest_era.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::size_t LeakCheck::leaked() const {
  std::size_t count = 0;
  for_each_since(era_, [&](const LedgerRow&) { ++count; });
  return count;
}

void LeakCheck::expect_none() const {
  std::vector<LiveTensor> rows;
  std::size_t bytes = 0;
  for_each_since(era_, [&](const LedgerRow& row) {
    rows.push_back(describe_row(row));
    bytes += row.bytes;
  });
  if (rows.empty()) return;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const LiveTensor& a, const LiveTensor& b) { return a.bytes > b.bytes; });
  std::string text = fmt::format(
      "LeakCheck: {} {} made since it began {} alive, with {}; drop the handles, dispose() "
      "of them or make them in a tidy:",
      rows.size(), rows.size() == 1 ? "tensor" : "tensors", rows.size() == 1 ? "is" : "are",
      format_bytes_exactly(bytes));
  for (std::size_t i = 0; i < std::min(rows.size(), kListed); ++i) text += "\n  " + row_text(rows[i]);
  if (rows.size() > kListed) text += fmt::format("\n  and {} more", rows.size() - kListed);
  throw Leak(text);
}

}  // namespace plimsoll
