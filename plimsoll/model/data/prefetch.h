// Prefetching: a thread that runs ahead of a pass by a few examples.
#pragma once

#include <memory>

#include "plimsoll/model/data/dataset.h"

namespace plimsoll::internal {

// What goes wrong on the thread is thrown by the pass's next call. The thread ends with the pass.
std::shared_ptr<const DatasetNode> make_prefetch(std::shared_ptr<const DatasetNode> from, std::size_t count,
                                                 std::size_t max_bytes);

}  // namespace plimsoll::internal
