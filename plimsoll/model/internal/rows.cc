#include "plimsoll/model/internal/rows.h"

#include <algorithm>

#include "plimsoll/base/philox.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
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

// A stream that knows how to give several rows at once gives one so.
class RowStream : public ExampleStream {
 public:
  bool next(Example& out) override {
    Example one;
    if (next_rows(1, one) == 0) return false;
    const OutsideScopes outside;
    out = first_row(one);
    return true;
  }
};

class OrderedStream final : public RowStream {
 public:
  explicit OrderedStream(std::shared_ptr<const RowsNode> rows) : rows_(std::move(rows)), next_(rows_->begin()) {}
  std::size_t next_rows(std::size_t count, Example& out) override {
    const std::int64_t left = rows_->end() - next_;
    const std::int64_t taken = std::min(left, static_cast<std::int64_t>(count));
    if (taken == 0) return 0;
    const OutsideScopes outside;
    out = rows_->source()->range(next_, next_ + taken);
    next_ += taken;
    return static_cast<std::size_t>(taken);
  }

 private:
  const std::shared_ptr<const RowsNode> rows_;
  std::int64_t next_;
};

class ShuffledStream final : public RowStream {
 public:
  ShuffledStream(std::shared_ptr<const RowsNode> rows, Tensor order)
      : rows_(std::move(rows)), order_(std::move(order)) {}
  std::size_t next_rows(std::size_t count, Example& out) override {
    const std::int64_t left = order_.shape()[0] - next_;
    const std::int64_t taken = std::min(left, static_cast<std::int64_t>(count));
    if (taken == 0) return 0;
    const OutsideScopes outside;
    out = rows_->source()->gather(order_.slice({next_}, {taken}));
    next_ += taken;
    return static_cast<std::size_t>(taken);
  }

 private:
  const std::shared_ptr<const RowsNode> rows_;
  const Tensor order_;
  std::int64_t next_ = 0;
};

// Rows in the order in which a buffer of `buffer` of them, drawn from at random and filled up, gives them.
template <class T>
void fill_order(T* order, std::int64_t begin, std::int64_t count, std::int64_t buffer, Philox& random) {
  for (std::int64_t i = 0; i < count; ++i) order[i] = static_cast<T>(begin + i);
  // Place i is final once its row is drawn from those that are in the buffer: i .. i + buffer.
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t choices = std::min(buffer, count - i);
    std::swap(order[i], order[i + static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(choices)))]);
  }
}

}  // namespace

std::size_t bytes_of(const Example& example) {
  std::size_t bytes = 0;
  visit_tensors(example, [&](const Tensor& tensor) { bytes += tensor.is_empty_handle() ? 0 : tensor.nbytes(); });
  return bytes;
}

OutsideScopes::OutsideScopes() noexcept : before_(ThreadContext::current()) {
  ThreadContext& now = ThreadContext::current();
  now.scope = nullptr;
  now.interceptor = nullptr;
  now.category = Category::kInputs;
}
OutsideScopes::~OutsideScopes() {
  ThreadContext& now = ThreadContext::current();
  now.scope = before_.scope;
  now.interceptor = before_.interceptor;
  now.category = before_.category;
}

std::unique_ptr<ExampleStream> RowsNode::open() const { return std::make_unique<OrderedStream>(shared_from_this()); }

std::unique_ptr<ExampleStream> open_shuffled(const RowsNode& rows, std::size_t buffer, std::uint64_t seed,
                                             std::uint64_t pass) {
  const OutsideScopes outside;
  const std::int64_t count = rows.end() - rows.begin();
  const DType dtype = rows.end() <= INT32_MAX ? i32 : i64;
  const Tensor order = make_tensor({.op = "shuffle", .category = Category::kInputs}, {count}, dtype, current_device());
  Philox random(seed, 0, pass);
  const auto window = static_cast<std::int64_t>(std::min<std::size_t>(buffer, UINT32_MAX));
  if (dtype == i32)
    fill_order(writable(order).data<std::int32_t>(), rows.begin(), count, window, random);
  else
    fill_order(writable(order).data<std::int64_t>(), rows.begin(), count, window, random);
  return std::make_unique<ShuffledStream>(rows.shared_from_this(), order);
}

}  // namespace plimsoll
