// Lifetimes as CSV: what `plimsoll plan` reads and writes, and how plans are kept.
//
//   id,lower,upper,size                       id,lower,upper,size,alignment,gaps,offset
//   a,0,4,1024                                a,0,9,1024,64,2-3 5-7@0:256,0
//   b,2,6,512                                 b,2,6,512,64,,1024
//
// Columns may come in any order. Required: id, lower, upper, size; lifetimes are half-open. Optional: alignment, gaps
// ("lower-upper", blank between two, "@low:high" for the bytes that stay in use), alias_set, alias_offset, offset (a
// plan). A first line "# plimsoll plan instance=<16 hex digits> peak=<bytes>" ties a kept plan to its instance. Thread
// safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/plan/plan.h"

namespace plimsoll::internal {

struct Lifetimes {
  std::vector<std::string> ids;  // One per buffer, all different.
  std::vector<Buffer> buffers;
  std::vector<std::size_t> offsets;  // One per buffer, or none when the file has no such column.
};

// Throws Corruption "<name>:<line>:<column>: <reason>; ..." for a missing, unknown or repeated column, a row with too
// few or too many fields, a number that is none, a lifetime that is empty, an id that was used, a hash of another
// instance.
PLIMSOLL_API Lifetimes parse_lifetimes(std::string_view text, std::string_view name);

// Throws NotFound when there is no such file, or Corruption as above.
PLIMSOLL_API Lifetimes read_lifetimes(const std::string& path);

// Optional columns appear when a buffer needs them; with offsets the first line holds the hash. Ends with a newline.
PLIMSOLL_API std::string format_lifetimes(const Lifetimes& lifetimes);

// Depends on everything that shapes a plan (sizes, lifetimes, alignments, gaps, alias sets, their order), not on ids.
PLIMSOLL_API std::uint64_t instance_hash(const std::vector<Buffer>& buffers);

}  // namespace plimsoll::internal
