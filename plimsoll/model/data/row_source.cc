#include "plimsoll/model/data/row_source.h"

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/context_guards.h"

namespace plimsoll::internal {
namespace {

Example first_row(const Example& batch) {
  Example row;
  const auto rest = [](const Tensor& tensor) {
    return tensor.is_empty_handle()
               ? tensor
               : tensor.reshape(Shape(std::vector<std::int64_t>(tensor.shape().begin() + 1, tensor.shape().end())));
  };
  for (const Tensor& tensor : batch.inputs) row.inputs.push_back(rest(tensor));
  for (const Tensor& tensor : batch.targets) row.targets.push_back(rest(tensor));
  row.weights = rest(batch.weights);
  return row;
}

class OrderedStream final : public RowStream {
 public:
  explicit OrderedStream(std::shared_ptr<const RowsNode> rows) : rows_(std::move(rows)), next_(rows_->begin()) {}
  std::size_t next_rows(std::size_t count, Example& out) override {
    const std::int64_t left = rows_->end() - next_;
    const std::int64_t taken = std::min(left, static_cast<std::int64_t>(count));
    if (taken == 0) return 0;
    const Untracked outside;
    out = rows_->source()->range(next_, next_ + taken);
    next_ += taken;
    return static_cast<std::size_t>(taken);
  }
  std::size_t skip_rows(std::size_t count) override {
    const std::int64_t taken = std::min(rows_->end() - next_, static_cast<std::int64_t>(count));
    next_ += taken;
    return static_cast<std::size_t>(taken);
  }

 private:
  const std::shared_ptr<const RowsNode> rows_;
  std::int64_t next_;
};

}  // namespace

bool RowStream::next(Example& out) {
  Example one;
  if (next_rows(1, one) == 0) return false;
  const Untracked outside;
  out = first_row(one);
  return true;
}

std::size_t whole_blocks_of(const std::vector<std::size_t>& tensor_bytes) {
  std::size_t bytes = 0;
  for (const std::size_t each : tensor_bytes) bytes += whole_blocks(each);
  return bytes;
}

std::size_t bytes_of(const Example& example) {
  std::size_t bytes = 0;
  visit_tensors(example, [&](const Tensor& tensor) { bytes += tensor.is_empty_handle() ? 0 : tensor.nbytes(); });
  return bytes;
}

Example stack_examples(const std::vector<Example>& rows) {
  for (const Example& row : rows)
    if (row.inputs.size() != rows[0].inputs.size() || row.targets.size() != rows[0].targets.size())
      throw InvalidArgument("batch: examples with different numbers of tensors; make them the same with map");
  const Untracked outside;
  const auto together = [&](const auto& tensor_of) {
    std::vector<Tensor> parts;
    for (const Example& each : rows) parts.push_back(tensor_of(each));
    return stack(parts);
  };
  Example out;
  for (std::size_t i = 0; i < rows[0].inputs.size(); ++i)
    out.inputs.push_back(together([i](const Example& each) { return each.inputs[i]; }));
  for (std::size_t i = 0; i < rows[0].targets.size(); ++i)
    out.targets.push_back(together([i](const Example& each) { return each.targets[i]; }));
  if (!rows[0].weights.is_empty_handle()) out.weights = together([](const Example& each) { return each.weights; });
  return out;
}

std::unique_ptr<ExampleStream> RowsNode::open() const { return std::make_unique<OrderedStream>(shared_from_this()); }

}  // namespace plimsoll::internal
