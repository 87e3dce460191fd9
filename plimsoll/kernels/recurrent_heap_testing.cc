// Counts heap allocations in this folder's tests too.
#include "plimsoll/base/heap_count_testing.cc"
