// Counts heap allocations of this folder's tests too.
#include "plimsoll/base/heap_count_testing.cc"  // NOLINT(bugprone-suspicious-include)
