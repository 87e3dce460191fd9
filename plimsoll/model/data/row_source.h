// RowSource: examples that can be read in any order: rows of tensors, windows over a series.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "plimsoll/model/data/dataset.h"

namespace plimsoll::internal {

class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual std::size_t size() const noexcept = 0;
  virtual Example range(std::int64_t begin, std::int64_t end) const = 0;  // Along a first axis, shared where possible.
  virtual Example gather(const Tensor& rows) const = 0;                   // i32 or i64 [count].
  virtual std::size_t held_bytes() const noexcept { return 0; }           // While a pass runs, on its budget.
};

// Tensors that the first user loads, on its budget. Thread safety: several threads may ask at once.
class LazyTensors {
 public:
  LazyTensors(std::size_t bytes, std::function<Example()> load) : bytes_(bytes), load_(std::move(load)) {}
  const Example& get() const;
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  const std::size_t bytes_;
  const std::function<Example()> load_;
  mutable std::mutex lock_;
  mutable std::optional<Example> loaded_;
};

// Rows of tensors; windows over them: `look_back` rows of inputs and the targets of the following `horizon` rows.
std::shared_ptr<const DatasetNode> make_lazy_rows(std::shared_ptr<const LazyTensors> tensors, std::size_t rows);
std::shared_ptr<const DatasetNode> make_lazy_windows(std::shared_ptr<const LazyTensors> tensors, std::size_t rows,
                                                     const WindowOptions& options);

// Some of the rows, in order.
class RowsNode final : public DatasetNode, public std::enable_shared_from_this<RowsNode> {
 public:
  RowsNode(std::shared_ptr<const RowSource> source, std::int64_t begin, std::int64_t end)
      : source_(std::move(source)), begin_(begin), end_(end) {}
  std::unique_ptr<ExampleStream> open() const override;
  std::optional<std::size_t> size() const override { return count(); }
  HeldBytes held(const std::vector<std::size_t>&) const override {
    return {.resident = source_->held_bytes(), .at_once = true};
  }
  std::size_t count() const noexcept { return static_cast<std::size_t>(end_ - begin_); }
  const std::shared_ptr<const RowSource>& source() const noexcept { return source_; }
  std::int64_t begin() const noexcept { return begin_; }
  std::int64_t end() const noexcept { return end_; }

 private:
  const std::shared_ptr<const RowSource> source_;
  const std::int64_t begin_, end_;
};

// A stream that makes several rows at once; a single row is a batch of one.
class RowStream : public ExampleStream {
 public:
  bool next(Example& out) override;
};

// What a block of this many bytes takes from a budget; tensors of these sizes.
constexpr std::size_t whole_blocks(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }
std::size_t whole_blocks_of(const std::vector<std::size_t>& tensor_bytes);

std::size_t bytes_of(const Example& example);

// Along a new first axis. Throws InvalidArgument for examples of different numbers of tensors.
Example stack_examples(const std::vector<Example>& rows);

}  // namespace plimsoll::internal
