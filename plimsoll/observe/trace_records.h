// Trace records: texts in a trace that programs read. "@word {json}"; docs/trace_format.md lists the words.
#pragma once

#include "plimsoll/observe/trace_history.h"

namespace plimsoll {

// When the mark's text is a record: puts what it says into the history. True when that was all there is to it, so that
// no mark is to be shown. Text that only looks like a record stays text. Never throws for bad text.
bool read_trace_record(TracedMark& mark, TraceHistory& history);

}  // namespace plimsoll
