// Fuzz target: any bytes are either a trace or Corruption, whatever the pieces they arrive in.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "plimsoll/base/error.h"
#include "plimsoll/cli/replay/trace_csv.h"

namespace {

std::optional<plimsoll::Trace> parse(std::string_view text, std::size_t piece) {
  try {
    plimsoll::TraceParser parser("fuzz");
    for (std::size_t at = 0; at < text.size(); at += piece) parser.feed(text.substr(at, piece));
    return parser.finish();
  } catch (const plimsoll::Corruption&) {
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto whole = parse(text, SIZE_MAX);
  const auto pieces = parse(text, data[0] % 16 + 1u);
  PLIMSOLL_CHECK(whole.has_value() == pieces.has_value());
  if (!whole) return 0;
  PLIMSOLL_CHECK(whole->operations.size() == pieces->operations.size());
  PLIMSOLL_CHECK(whole->peak_live == pieces->peak_live && whole->slots == pieces->slots);
  PLIMSOLL_CHECK(whole->never_freed <= whole->slots && whole->slots <= whole->allocations);
  for (const plimsoll::TraceOperation& operation : whole->operations) PLIMSOLL_CHECK(operation.slot < whole->slots);
  return 0;
}
