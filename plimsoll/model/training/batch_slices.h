// The rows of a batch, cut into the slices that the processes of a job compute.
//
//   const RowRange rows = slice_rows(batch, tree, slice);     // Of the part of the batch that is here.
//   const Example part = rows_of(batch, rows);                // Views of its bytes.
//
// Slices have about equal sizes, whatever the batch. A process may hold only its own rows of a batch: then
// first_example and whole_examples of the Example say which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "plimsoll/distributed/slice_tree.h"
#include "plimsoll/model/data/dataset.h"

namespace plimsoll::internal {

struct RowRange {
  std::size_t begin, end;
};

std::size_t examples_in(const Example& batch);  // Of the whole batch.
RowRange slice_rows(const Example& batch, const distributed::SliceTree& tree, std::size_t slice);
Example rows_of(const Example& batch, const RowRange& rows);
// The rows [first, second) of a batch that a rank computes. One without slices gets one row, to know its form.
std::pair<std::size_t, std::size_t> rows_of_rank(std::size_t examples, std::size_t slices, int ranks, int rank);
// Of the number of rows and the form of each: ranks whose batches differ in it do not have the same data.
std::uint64_t form_hash(const Example& batch);

}  // namespace plimsoll::internal
