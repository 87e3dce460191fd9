// Counts what this folder's tests allocate, with the counter of base's.
#include "plimsoll/base/heap_count_testing.cc"
