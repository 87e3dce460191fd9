// Fuzz target: any bytes are either an operator log with a valid program or Corruption, however they are split.
#include "plimsoll/cli/replay/operator_log.h"
#include "plimsoll/cli/replay/pieces_testing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto [whole, pieces] = plimsoll::parse_whole_and_in_pieces<plimsoll::OperatorLogParser>(data, size);
  if (!whole) return 0;
  PLIMSOLL_CHECK(whole->program.steps.size() == pieces->program.steps.size());
  PLIMSOLL_CHECK(whole->peak_bytes == pieces->peak_bytes);
  const plimsoll::Floors floors = plimsoll::floors_of(whole->program);  // Throws if the program is invalid.
  PLIMSOLL_CHECK(floors.spill.bytes <= floors.recompute.bytes && floors.recompute.bytes <= floors.natural_peak);
  if (whole->program.steps.size() > 200) return 0;
  const std::size_t limit = (floors.recompute.bytes + floors.natural_peak) / 2;
  const plimsoll::StepSchedule schedule = plimsoll::recompute(whole->program, limit, {.work = 20'000});
  if (schedule.completed) PLIMSOLL_CHECK(plimsoll::validate_schedule(whole->program, schedule, limit).empty());
  return 0;
}
