// Who holds an arena's memory, grouped for people: the list and the words of an OutOfMemory.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/memory/label.h"

namespace plimsoll {

class Arena;
class BudgetNode;

// Live blocks by operation, scope and category, most bytes first, the ten largest groups. With a budget, what is
// charged to it or below it, on every device.
std::vector<MemoryHolder> find_holders(const Arena& arena, const BudgetNode* budget);

// `who: cannot allocate ... for op "..."; used ... of ...; held by ...; tried ...; it takes a limit of at least ...`
std::string describe_refusal(const std::string& who, const BlockLabel& label, const OutOfMemoryDetails& details);

}  // namespace plimsoll
