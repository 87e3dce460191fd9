// Fuzz target: any bytes are either a trace or Corruption, however they are split.
#include "plimsoll/cli/replay/pieces_testing.h"
#include "plimsoll/cli/replay/trace_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto [whole, pieces] = plimsoll::parse_whole_and_in_pieces<plimsoll::TraceParser>(data, size);
  if (!whole) return 0;
  PLIMSOLL_CHECK(whole->operations.size() == pieces->operations.size());
  PLIMSOLL_CHECK(whole->peak_live == pieces->peak_live && whole->slots == pieces->slots);
  PLIMSOLL_CHECK(whole->never_freed <= whole->slots && whole->slots <= whole->allocations);
  for (const plimsoll::TraceOperation& operation : whole->operations) PLIMSOLL_CHECK(operation.slot < whole->slots);
  return 0;
}
