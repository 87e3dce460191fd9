// The heap counter, for this folder's tests.
#include "plimsoll/base/heap_count_testing.cc"  // NOLINT(bugprone-suspicious-include)
