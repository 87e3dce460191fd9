// Trace records: texts in a trace that programs read. "@word {json}"; docs/trace_format.md lists the words.
#pragma once

#include "plimsoll/observe/trace_history.h"

namespace plimsoll::internal {

// A name and a category given to a block after it was made.
struct TracedName {
  std::uint64_t block = 0;
  Category category = Category::kOther;
  std::string name;
};

// Adds a mark whose text is a record to the history. True when the mark itself need not be shown. Text that only looks
// like a record stays text. Never throws for bad text.
bool read_trace_record(TracedMark& mark, TraceHistory& history, std::vector<TracedName>& names);

}  // namespace plimsoll::internal
