#include "plimsoll/tensor/evict/eager.h"

#include "plimsoll/memory/budget_node.h"
#include "plimsoll/tensor/evict/domain.h"

namespace plimsoll::evict {

Domain* domain_of(const Meter& meter) noexcept {
  return static_cast<Domain*>(static_cast<const BudgetNode*>(meter.center)->evictor());
}

}  // namespace plimsoll::evict
