// Shuffling: examples in random order.
//
// Rows of tensors and windows shuffled as a whole come in an order that is computed, not stored. Rows shuffled within a
// smaller buffer store the numbers of that many rows; rows of a stream are in one pool; examples that come one by one
// are held themselves.
#pragma once

#include <memory>

#include "plimsoll/model/data/dataset.h"

namespace plimsoll::internal {

std::shared_ptr<const DatasetNode> make_shuffle(std::shared_ptr<const DatasetNode> from, std::size_t buffer,
                                                const ShuffleOptions& options);

}  // namespace plimsoll::internal
