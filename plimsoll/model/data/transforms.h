// Transforms of datasets: batches, repeats, maps, parts, windows.
//
// Each forwards queries (memory held, size of batches) to the node that it transforms.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "plimsoll/model/data/dataset.h"

namespace plimsoll::internal {

using ExampleFilter = std::function<bool(Example&)>;  // Changes the example, or says that it is to be left out.

std::shared_ptr<const DatasetNode> make_batch(std::shared_ptr<const DatasetNode> from, std::size_t count,
                                              bool drop_remainder);
// Without end when `count` is negative.
std::shared_ptr<const DatasetNode> make_repeat(std::shared_ptr<const DatasetNode> from, std::int64_t count);
// `filters`: whether examples may be left out; their number is then not known.
std::shared_ptr<const DatasetNode> make_map(std::shared_ptr<const DatasetNode> from, ExampleFilter f, bool filters);
// At most `count` examples starting at `begin`. Rows stay rows, which can be read in any order.
std::shared_ptr<const DatasetNode> make_part(std::shared_ptr<const DatasetNode> from, std::size_t begin,
                                             std::size_t count);
// For examples that come one by one.
std::shared_ptr<const DatasetNode> make_window(std::shared_ptr<const DatasetNode> from, std::size_t count,
                                               const StreamWindowOptions& options);

}  // namespace plimsoll::internal
