// Fuzz target: any bytes are either an operator log whose program holds together, or Corruption; whatever the pieces.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "plimsoll/base/error.h"
#include "plimsoll/cli/replay/operator_log.h"

namespace {

std::optional<plimsoll::OperatorLog> parse(std::string_view text, std::size_t piece) {
  try {
    plimsoll::OperatorLogParser parser("fuzz");
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
  PLIMSOLL_CHECK(whole->program.steps.size() == pieces->program.steps.size());
  PLIMSOLL_CHECK(whole->peak_bytes == pieces->peak_bytes);
  const plimsoll::Floors floors = plimsoll::floors_of(whole->program);  // Throws if the program does not hold together.
  PLIMSOLL_CHECK(floors.spill.bytes <= floors.recompute.bytes && floors.recompute.bytes <= floors.natural_peak);
  if (whole->program.steps.size() > 200) return 0;
  const std::size_t limit = (floors.recompute.bytes + floors.natural_peak) / 2;
  const plimsoll::Schedule schedule = plimsoll::recompute(whole->program, limit, {.work = 20'000});
  if (schedule.completed) PLIMSOLL_CHECK(plimsoll::validate_schedule(whole->program, schedule, limit).empty());
  return 0;
}
