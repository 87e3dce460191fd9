// Shuffling: examples in a mixed order.
//
// Rows of tensors and windows that are mixed as a whole come in an order that is computed, not held. Rows mixed within
// a smaller buffer hold the numbers of as many rows; rows of a stream lie in one pool; examples that come one by one
// are held themselves.
#pragma once

#include <memory>

#include "plimsoll/model/data/dataset.h"

namespace plimsoll::internal {

std::shared_ptr<const DatasetNode> make_shuffle(std::shared_ptr<const DatasetNode> from, std::size_t buffer,
                                                const ShuffleOptions& options);

}  // namespace plimsoll::internal
