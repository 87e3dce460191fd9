// The ledger: what every live block is (label.h), always on; here it is read.
//
//   find_holders(arena, nullptr)[0]     // the group of blocks with most bytes: its op, scope, category, count
//
// A block's label is in its chunk (chunk.h) from take() to give(). Arena::for_each_live() walks the blocks of one arena
// while all threads stand still; together their sizes are stats().bytes_in_use, exactly. Above, tensor/ledger_walk.h
// has a row for every tensor.
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

// Live blocks by operation, scope and category, most bytes first, the ten largest groups. With a budget, what is
// charged to it or below it, on every device.
std::vector<MemoryHolder> find_holders(const Arena& arena, const BudgetNode* budget);

}  // namespace plimsoll::internal
