// The ledger knows what every live block is (label.h); it is always on. These functions read it.
//
//   find_holders(arena, nullptr)[0]     // the group of blocks with most bytes: its op, scope, category, count
//
// A block's label is in its chunk (chunk.h) from take() to give(). Arena::for_each_live() visits the blocks of one
// arena while all threads are stopped; their sizes add up to stats().bytes_in_use, exactly. tensor/ledger_walk.h, a
// layer above, has a row for every tensor.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/error.h"
#include "plimsoll/memory/label.h"

namespace plimsoll {
class Arena;
}  // namespace plimsoll

namespace plimsoll::internal {

class BudgetNode;

// Groups live blocks by operation, scope and category and returns the ten groups with the most bytes. With a budget,
// only what is charged to it or below it, on every device.
std::vector<MemoryHolder> find_holders(const Arena& arena, const BudgetNode* budget);

}  // namespace plimsoll::internal
