// Trace records: texts in a trace that programs read. "@word {json}"; docs/trace_format.md lists the words.
#pragma once

#include "plimsoll/observe/trace_history.h"

namespace plimsoll {

// A block that was given a name and a category after it was made.
struct TracedName {
  std::uint64_t block = 0;
  Category category = Category::kOther;
  std::string name;
};

// When the mark's text is a record: puts what it says into the history. True when that was all there is to it, so that
// no mark is to be shown. Text that only looks like a record stays text. Never throws for bad text.
bool read_trace_record(TracedMark& mark, TraceHistory& history, std::vector<TracedName>& names);

}  // namespace plimsoll
