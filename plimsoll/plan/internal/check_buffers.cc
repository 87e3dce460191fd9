#include "plimsoll/plan/internal/check_buffers.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

std::string range(auto low, auto high) { return fmt::format("[{}, {})", low, high); }

[[noreturn]] void refuse(std::size_t index, const std::string& what) {
  throw InvalidArgument("plan: buffer " + std::to_string(index) + ": " + what);
}

void check_gaps(const Buffer& buffer, std::size_t index) {
  std::vector<Gap> gaps = buffer.gaps;
  std::sort(gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) { return a.lower < b.lower; });
  std::int64_t free_from = buffer.lower;
  for (const Gap& gap : gaps) {
    if (gap.lower >= gap.upper || gap.lower < buffer.lower || gap.upper > buffer.upper)
      refuse(index, "gap " + range(gap.lower, gap.upper) + " is empty or outside of the lifetime " +
                        range(buffer.lower, buffer.upper) + "; cut it to the lifetime");
    if (gap.lower < free_from)
      refuse(index, "gap " + range(gap.lower, gap.upper) + " overlaps the gap before it; merge them");
    if (gap.window_lower > gap.window_upper || gap.window_upper > buffer.size)
      refuse(index, "window " + range(gap.window_lower, gap.window_upper) + " is outside of the buffer's " +
                        std::to_string(buffer.size) + " bytes");
    free_from = gap.upper;
  }
}

void check_buffer(const Buffer& buffer, std::size_t index) {
  if (buffer.lower >= buffer.upper)
    refuse(index, "lifetime " + range(buffer.lower, buffer.upper) + " is empty; upper must be greater than lower");
  if (buffer.alignment == 0) refuse(index, "alignment is 0; use 1 for none");
  if (buffer.alias_set < kNoAliasSet)
    refuse(index, "alias set is " + std::to_string(buffer.alias_set) + "; use a number from 0, or -1 for none");
  if (buffer.alias_set == kNoAliasSet && buffer.alias_offset != 0)
    refuse(index, "alias offset " + std::to_string(buffer.alias_offset) + " without an alias set");
  if (buffer.alias_offset % buffer.alignment != 0)
    refuse(index, "alias offset " + std::to_string(buffer.alias_offset) + " is not a multiple of the alignment " +
                      std::to_string(buffer.alignment));
  check_gaps(buffer, index);
}

}  // namespace

void check_buffers(std::span<const Buffer> buffers, const Constraints& constraints) {
  if (constraints.alignment == 0) throw InvalidArgument("plan: alignment is 0; use 1 for none");
  // Sums stay below 2^62 bytes; alignments count twice because an offset may be rounded up to one.
  __extension__ using Wide = unsigned __int128;
  Wide sum = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    check_buffer(buffers[i], i);
    if (buffers[i].alias_offset % constraints.alignment != 0)
      refuse(i, "alias offset " + std::to_string(buffers[i].alias_offset) + " is not a multiple of the alignment " +
                    std::to_string(constraints.alignment));
    const Wide alignment = Wide{buffers[i].alignment} * constraints.alignment;
    sum += Wide{buffers[i].size} + buffers[i].alias_offset + (alignment > 1 ? 2 * alignment : Wide{0});
    if (sum >> 62 != 0)
      refuse(i,
             "size " + std::to_string(buffers[i].size) + " makes the sum of all sizes and alignments pass 2^62 bytes");
  }
}

}  // namespace plimsoll::internal
