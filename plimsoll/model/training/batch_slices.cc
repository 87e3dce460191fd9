#include "plimsoll/model/training/batch_slices.h"

#include <algorithm>
#include <span>
#include <vector>

#include "plimsoll/base/crc32c.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {
namespace {

std::size_t slice_begin(std::size_t examples, std::size_t slices, std::size_t slice) {
  return examples * slice / slices;
}

}  // namespace

std::size_t examples_in(const Example& batch) {
  return batch.whole_examples > 0 ? batch.whole_examples : static_cast<std::size_t>(batch.x().shape()[0]);
}

RowRange slice_rows(const Example& batch, const distributed::SliceTree& tree, std::size_t slice) {
  const std::size_t examples = examples_in(batch);
  return {slice_begin(examples, tree.slices(), slice) - batch.first_example,
          slice_begin(examples, tree.slices(), slice + 1) - batch.first_example};
}

Example rows_of(const Example& batch, const RowRange& range) {
  const Untracked outside;
  const auto cut = [&](const Tensor& tensor) {
    if (tensor.is_empty_handle()) return Tensor();
    std::vector<std::int64_t> sizes(tensor.shape().begin(), tensor.shape().end());
    const std::size_t row = tensor.nbytes() / static_cast<std::size_t>(sizes[0]);
    sizes[0] = static_cast<std::int64_t>(range.end - range.begin);
    return make_view(tensor, "slice", Shape(sizes), range.begin * row);
  };
  Example rows;
  for (const Tensor& input : batch.inputs) rows.inputs.push_back(cut(input));
  for (const Tensor& target : batch.targets) rows.targets.push_back(cut(target));
  rows.weights = cut(batch.weights);
  return rows;
}

std::pair<std::size_t, std::size_t> rows_of_rank(std::size_t examples, std::size_t slices, int ranks, int rank) {
  const distributed::SliceTree tree(std::min(slices, examples), ranks);
  const std::size_t first = slice_begin(examples, tree.slices(), tree.begin(rank));
  const std::size_t last = slice_begin(examples, tree.slices(), tree.end(rank));
  return first < last ? std::pair(first, last) : std::pair(std::size_t{0}, std::size_t{1});
}

std::uint64_t form_hash(const Example& batch) {
  std::uint32_t crc = 1;
  const auto add = [&](std::int64_t number) { crc = crc32c(std::as_bytes(std::span(&number, 1)), crc); };
  add(static_cast<std::int64_t>(examples_in(batch)));
  visit_tensors(batch, [&](const Tensor& tensor) {
    if (tensor.is_empty_handle()) return add(-1);
    add(static_cast<std::int64_t>(tensor.dtype()));
    for (std::size_t axis = 1; axis < tensor.rank(); ++axis) add(tensor.shape()[axis]);
  });
  return crc;
}

}  // namespace plimsoll::internal
