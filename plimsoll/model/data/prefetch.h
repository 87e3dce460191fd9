// Prefetching: a thread that stays a few examples ahead of a pass.
#pragma once

#include <memory>

#include "plimsoll/model/data/dataset.h"

namespace plimsoll::internal {

// Errors on the thread are thrown by the pass's next call. The thread ends with the pass.
std::shared_ptr<const DatasetNode> make_prefetch(std::shared_ptr<const DatasetNode> from, std::size_t count,
                                                 std::size_t max_bytes);

}  // namespace plimsoll::internal
