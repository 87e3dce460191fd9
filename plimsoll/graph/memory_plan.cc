#include "plimsoll/graph/memory_plan.h"

#include <fmt/format.h>

#include "plimsoll/base/bytes.h"
#include "plimsoll/plan/lifetimes_csv.h"

namespace plimsoll {

std::string MemoryPlan::to_csv() const {
  Lifetimes lifetimes;
  for (const PlannedBuffer& buffer : buffers) {
    if (buffer.is_result || buffer.bytes == 0) continue;
    lifetimes.ids.push_back(fmt::format("{}{}", buffer.name, lifetimes.ids.size()));
    lifetimes.buffers.push_back({.size = buffer.bytes, .lower = buffer.first, .upper = buffer.end, .alignment = 64});
    lifetimes.offsets.push_back(buffer.offset);
  }
  return format_lifetimes(lifetimes);
}

std::string MemoryPlan::to_string() const {
  std::string text = fmt::format("peak {} ({} bytes), lower bound {} ({} bytes)\n", format_bytes(peak_bytes),
                                 peak_bytes, format_bytes(lower_bound_bytes), lower_bound_bytes);
  text += fmt::format("extent {} bytes, results {} bytes, {} steps\n", extent_bytes, result_bytes, order.size());
  for (std::size_t i = 0; i < order.size(); ++i) text += fmt::format("{:>6}  {}\n", i, order[i]);
  for (const PlannedBuffer& buffer : buffers)
    text += fmt::format("{:>10} bytes at {:>10}  steps {} to {}  {}{}\n", buffer.bytes, buffer.offset, buffer.first,
                        buffer.end - 1, buffer.name, buffer.is_result ? " (result)" : "");
  return text;
}

}  // namespace plimsoll
