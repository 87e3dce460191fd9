#include "plimsoll/model/data/shuffle.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "plimsoll/base/philox.h"
#include "plimsoll/model/data/permutation.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/ops/random.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {
namespace {

using NodePointer = std::shared_ptr<const DatasetNode>;

Tensor make_numbers(std::size_t count, DType dtype) {
  return make_tensor({.op = "shuffle", .category = Category::kInputs}, {static_cast<std::int64_t>(count)}, dtype,
                     current_host_device());
}

template <class F>
void fill_numbers(const Tensor& numbers, F&& next) {
  const std::size_t count = numbers.size();
  if (numbers.dtype() == i32) {
    auto* to = writable(numbers).data<std::int32_t>();
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<std::int32_t>(next(i));
  } else {
    auto* to = writable(numbers).data<std::int64_t>();
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<std::int64_t>(next(i));
  }
}

DType dtype_for(const RowsNode& rows) { return rows.end() <= INT32_MAX ? i32 : i64; }

// The rows of a node in another order.
class PermutedRows final : public RowSource {
 public:
  PermutedRows(std::shared_ptr<const RowsNode> rows, std::uint64_t key, std::uint64_t pass)
      : rows_(std::move(rows)), order_(count(), key, pass) {}
  std::size_t size() const noexcept override { return count(); }
  Example range(std::int64_t begin, std::int64_t end) const override {
    const Tensor numbers = make_numbers(static_cast<std::size_t>(end - begin), dtype_for(*rows_));
    fill_numbers(numbers, [&](std::size_t i) { return row_at(static_cast<std::uint64_t>(begin) + i); });
    return rows_->source()->gather(numbers);
  }
  std::size_t held_bytes() const noexcept override { return rows_->source()->held_bytes(); }
  Example gather(const Tensor& rows) const override {
    const Tensor numbers = make_numbers(rows.size(), dtype_for(*rows_));
    if (rows.dtype() == i32) {
      const auto from = rows.data<std::int32_t>();
      fill_numbers(numbers, [&](std::size_t i) { return row_at(static_cast<std::uint64_t>(from[i])); });
    } else {
      const auto from = rows.data<std::int64_t>();
      fill_numbers(numbers, [&](std::size_t i) { return row_at(static_cast<std::uint64_t>(from[i])); });
    }
    return rows_->source()->gather(numbers);
  }

 private:
  std::size_t count() const noexcept { return static_cast<std::size_t>(rows_->end() - rows_->begin()); }
  std::uint64_t row_at(std::uint64_t i) const noexcept {
    return static_cast<std::uint64_t>(rows_->begin()) + order_(i);
  }

  const std::shared_ptr<const RowsNode> rows_;
  const Permutation order_;
};

std::shared_ptr<const RowsNode> permuted(const RowsNode& rows, std::uint64_t key, std::uint64_t pass) {
  auto source = std::make_shared<PermutedRows>(rows.shared_from_this(), key, pass);
  const auto count = static_cast<std::int64_t>(source->size());
  return std::make_shared<RowsNode>(std::move(source), 0, count);
}

// Draws rows from a buffer of row numbers, which is refilled.
class BufferedRowsStream final : public RowStream {
 public:
  BufferedRowsStream(std::shared_ptr<const RowsNode> rows, std::size_t buffer, Philox random)
      : rows_(std::move(rows)), random_(random), next_(rows_->begin()) {
    const Untracked outside;
    const auto all = static_cast<std::size_t>(rows_->end() - rows_->begin());
    held_ = std::min({buffer, all, std::size_t{UINT32_MAX}});
    numbers_ = make_numbers(held_, i64);
    fill_numbers(numbers_, [&](std::size_t) { return next_++; });
  }
  std::size_t next_rows(std::size_t count, Example& out) override {
    const std::size_t left = held_ + static_cast<std::size_t>(rows_->end() - next_);
    const std::size_t taken = std::min(left, count);
    if (taken == 0) return 0;
    const Untracked outside;
    const Tensor drawn = make_numbers(taken, dtype_for(*rows_));
    auto* const numbers = writable(numbers_).data<std::int64_t>();
    fill_numbers(drawn, [&](std::size_t) {
      std::int64_t& place = numbers[random_.below(static_cast<std::uint32_t>(held_))];
      return std::exchange(place, next_ < rows_->end() ? next_++ : numbers[--held_]);
    });
    out = rows_->source()->gather(drawn);
    return taken;
  }

 private:
  const std::shared_ptr<const RowsNode> rows_;
  Philox random_;
  std::int64_t next_;     // The next row that is not in the buffer yet.
  std::size_t held_ = 0;  // Rows in it.
  Tensor numbers_;
};

// Draws rows of a stream from a pool of them that is refilled. Batches are made without making their examples first.
class PooledStream final : public RowStream {
 public:
  PooledStream(std::unique_ptr<ExampleStream> from, std::size_t buffer, std::size_t max_bytes, Philox random)
      : from_(std::move(from)), buffer_(buffer), max_bytes_(max_bytes), random_(random) {}
  std::size_t next_rows(std::size_t count, Example& out) override {
    const Untracked outside;
    if (!std::exchange(begun_, true)) fill();
    Example more;
    const std::size_t came = held_ < room_ ? 0 : from_->next_rows(count, more);
    const std::size_t taken = std::min(held_ + came, count);
    if (taken == 0) return 0;
    out = like(pool_, taken);
    for (std::size_t i = 0; i < taken; ++i) {
      const std::size_t place = random_.below(static_cast<std::uint32_t>(held_));
      copy_row(pool_, place, out, i);
      if (i < came)
        copy_row(more, i, pool_, place);
      else if (place != --held_)
        copy_row(pool_, held_, pool_, place);
    }
    return taken;
  }
  static std::size_t rows_within(std::size_t buffer, std::size_t max_bytes, std::size_t row_bytes) {
    const std::size_t rows =
        max_bytes == 0 ? buffer : std::min(buffer, max_bytes / std::max<std::size_t>(row_bytes, 1));
    return std::clamp<std::size_t>(rows, 1, UINT32_MAX);
  }

 private:
  // Tensors like those of the example, with another number of rows.
  static Example like(const Example& batch, std::size_t rows) {
    const auto with_rows = [rows](const Tensor& tensor) {
      if (tensor.is_empty_handle()) return Tensor();
      std::vector<std::int64_t> sizes(tensor.shape().begin(), tensor.shape().end());
      sizes[0] = static_cast<std::int64_t>(rows);
      return make_tensor({.op = "shuffle", .category = Category::kInputs}, Shape(sizes), tensor.dtype(),
                         current_host_device());
    };
    Example result;
    for (const Tensor& tensor : batch.inputs) result.inputs.push_back(with_rows(tensor));
    for (const Tensor& tensor : batch.targets) result.targets.push_back(with_rows(tensor));
    result.weights = with_rows(batch.weights);
    return result;
  }
  static void copy_row(const Example& from, std::size_t row, const Example& to, std::size_t place) {
    const auto copy = [&](const Tensor& source, const Tensor& target) {
      if (source.is_empty_handle()) return;
      const std::size_t bytes = source.nbytes() / static_cast<std::size_t>(source.shape()[0]);
      std::memcpy(writable(target).bytes() + place * bytes, source.view().bytes() + row * bytes, bytes);
    };
    for (std::size_t i = 0; i < from.inputs.size(); ++i) copy(from.inputs[i], to.inputs[i]);
    for (std::size_t i = 0; i < from.targets.size(); ++i) copy(from.targets[i], to.targets[i]);
    copy(from.weights, to.weights);
  }
  void fill() {
    constexpr std::size_t kAtOnce = 64;
    Example more;
    std::size_t came = from_->next_rows(1, more);
    if (came == 0) return;
    room_ = rows_within(buffer_, max_bytes_, bytes_of(more));
    pool_ = like(more, room_);
    while (came > 0) {
      for (std::size_t i = 0; i < came; ++i) copy_row(more, i, pool_, held_++);
      more = {};
      came = held_ == room_ ? 0 : from_->next_rows(std::min(kAtOnce, room_ - held_), more);
    }
  }

  const std::unique_ptr<ExampleStream> from_;
  const std::size_t buffer_, max_bytes_;
  Philox random_;
  Example pool_;
  std::size_t room_ = 0, held_ = 0;  // Capacity of the pool in rows, and rows in it. Fewer: the stream has ended.
  bool begun_ = false;
};

class ShuffleStream final : public ExampleStream {  // For examples that come one by one.
 public:
  ShuffleStream(std::unique_ptr<ExampleStream> from, std::size_t buffer, std::size_t max_bytes, Philox random)
      : from_(std::move(from)), buffer_(buffer), max_bytes_(max_bytes), random_(random) {}
  bool next(Example& out) override {
    Example more;
    while (!ended_ && has_room()) {
      if (from_->next(more)) {
        bytes_ += bytes_of(more);
        held_.push_back(std::move(more));
      } else {
        ended_ = true;
      }
    }
    if (held_.empty()) return false;
    std::swap(held_[random_.below(static_cast<std::uint32_t>(held_.size()))], held_.back());
    out = std::move(held_.back());
    held_.pop_back();
    bytes_ -= bytes_of(out);
    return true;
  }

 private:
  bool has_room() const {
    return held_.empty() || (held_.size() < buffer_ && (max_bytes_ == 0 || bytes_ < max_bytes_));
  }

  const std::unique_ptr<ExampleStream> from_;
  const std::size_t buffer_, max_bytes_;
  Philox random_;
  std::vector<Example> held_;
  std::size_t bytes_ = 0;
  bool ended_ = false;
};

class ShuffleNode final : public DatasetNode {
 public:
  struct Draw {
    std::uint64_t key = 0, pass = 0;
  };
  // `always`: the seed of every pass; otherwise a new one each time.
  ShuffleNode(NodePointer from, std::size_t buffer, std::size_t max_bytes, std::optional<std::uint64_t> seed,
              std::optional<Draw> always)
      : from_(std::move(from)), buffer_(buffer), max_bytes_(max_bytes), seed_(seed), always_(always) {}

  static Draw draw(const std::optional<std::uint64_t>& seed, std::uint64_t pass) {
    if (seed) return {*seed, pass};
    const RandomDraw drawn = draw_random({}, 4);
    return {drawn.key, drawn.offset + (std::uint64_t{1} << 63)};
  }
  std::unique_ptr<ExampleStream> open() const override {
    const Draw now = always_ ? *always_ : draw(seed_, seed_ ? passes_.fetch_add(1) : 0);
    const auto* const rows = dynamic_cast<const RowsNode*>(from_.get());
    if (rows && mixes_all(*rows)) return permuted(*rows, now.key, now.pass)->open();
    const Philox random(now.key, 0, now.pass);
    if (rows) return std::make_unique<BufferedRowsStream>(rows->shared_from_this(), buffer_, random);
    if (from_->held({}).at_once) {
      const std::size_t most = std::min(buffer_, from_->size().value_or(buffer_));
      return std::make_unique<PooledStream>(from_->open(), most, max_bytes_, random);
    }
    return std::make_unique<ShuffleStream>(from_->open(), buffer_, max_bytes_, random);
  }
  std::optional<std::size_t> size() const override { return from_->size(); }
  std::optional<std::size_t> batch_size() const override { return from_->batch_size(); }
  std::optional<std::size_t> last_batch_size() const override { return from_->last_batch_size(); }
  HeldBytes held(const std::vector<std::size_t>& tensor_bytes) const override {
    if (const auto* rows = dynamic_cast<const RowsNode*>(from_.get()))
      return {.resident = rows->source()->held_bytes() +
                          (mixes_all(*rows) ? 0 : whole_blocks(std::min(buffer_, rows->count()) * 8)),
              .at_once = true};
    HeldBytes held = from_->held(tensor_bytes);
    const std::size_t each = whole_blocks_of(tensor_bytes), most = std::min(buffer_, from_->size().value_or(buffer_));
    if (held.at_once) {
      std::size_t row = 0;
      for (const std::size_t bytes : tensor_bytes) row += bytes;
      const std::size_t rows = PooledStream::rows_within(most, max_bytes_, row);
      for (const std::size_t bytes : tensor_bytes) held.resident += whole_blocks(rows * bytes);
      return held;
    }
    held.resident += max_bytes_ == 0 ? most * each : std::min(most * each, whole_blocks(max_bytes_) + each);
    held.at_once = false;
    return held;
  }
  NodePointer frozen(bool draws) const override {
    const NodePointer frozen_from = from_->frozen(draws);
    if (always_ && !frozen_from) return nullptr;
    const Draw order = always_ ? *always_ : draws || seed_ ? draw(seed_, 0) : Draw();
    return make(frozen_from ? frozen_from : from_, buffer_, max_bytes_, order);
  }
  NodePointer seeded(std::uint64_t seed) const override {
    NodePointer seeded_from = from_->seeded(seed);
    if (!seeded_from && (seed_ || always_)) return nullptr;
    const std::optional<std::uint64_t> own = seed_ || always_ ? seed_ : std::optional(seed);
    return std::make_shared<ShuffleNode>(seeded_from ? seeded_from : from_, buffer_, max_bytes_, own, always_);
  }
  // Shuffled once for all passes. Rows stay rows, which can be cut without being read.
  static NodePointer make(const NodePointer& from, std::size_t buffer, std::size_t max_bytes, Draw always) {
    const auto* const rows = dynamic_cast<const RowsNode*>(from.get());
    if (rows && buffer >= rows->count()) return permuted(*rows, always.key, always.pass);
    return std::make_shared<ShuffleNode>(from, buffer, max_bytes, std::nullopt, always);
  }

 private:
  bool mixes_all(const RowsNode& rows) const noexcept { return buffer_ >= rows.count(); }

  const NodePointer from_;
  const std::size_t buffer_, max_bytes_;
  const std::optional<std::uint64_t> seed_;
  const std::optional<Draw> always_;
  mutable std::atomic<std::uint64_t> passes_{0};
};

}  // namespace

std::shared_ptr<const DatasetNode> make_shuffle(std::shared_ptr<const DatasetNode> from, std::size_t buffer,
                                                const ShuffleOptions& options) {
  if (!options.reshuffle_each_iteration)
    return ShuffleNode::make(from, buffer, options.max_bytes, ShuffleNode::draw(options.seed, 0));
  return std::make_shared<ShuffleNode>(std::move(from), buffer, options.max_bytes, options.seed, std::nullopt);
}

}  // namespace plimsoll::internal
