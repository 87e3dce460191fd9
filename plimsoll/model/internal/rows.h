// RowSource: examples that can be taken in any order: rows of tensors, windows over a series.
#pragma once

#include <cstdint>
#include <memory>

#include "plimsoll/model/dataset.h"
#include "plimsoll/tensor/thread_context.h"

namespace plimsoll {

class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual std::size_t size() const noexcept = 0;
  virtual Example range(std::int64_t begin, std::int64_t end) const = 0;  // Along a first axis, shared where possible.
  virtual Example gather(const Tensor& rows) const = 0;                   // i32 or i64 [how many].
};

// Some of the rows, in order.
class RowsNode final : public DatasetNode, public std::enable_shared_from_this<RowsNode> {
 public:
  RowsNode(std::shared_ptr<const RowSource> source, std::int64_t begin, std::int64_t end)
      : source_(std::move(source)), begin_(begin), end_(end) {}
  std::unique_ptr<ExampleStream> open() const override;
  std::optional<std::size_t> size() const override { return static_cast<std::size_t>(end_ - begin_); }
  const std::shared_ptr<const RowSource>& source() const noexcept { return source_; }
  std::int64_t begin() const noexcept { return begin_; }
  std::int64_t end() const noexcept { return end_; }

 private:
  const std::shared_ptr<const RowSource> source_;
  const std::int64_t begin_, end_;
};

// A pass in a mixed order; `pass` counts them.
std::unique_ptr<ExampleStream> open_shuffled(const RowsNode& rows, std::size_t buffer, std::uint64_t seed,
                                             std::uint64_t pass);

std::size_t bytes_of(const Example& example);

// While it lives, what is made on this thread belongs to no tidy scope, is seen by no tape, and is an input.
class OutsideScopes {
 public:
  OutsideScopes() noexcept;
  ~OutsideScopes();
  OutsideScopes(const OutsideScopes&) = delete;
  OutsideScopes& operator=(const OutsideScopes&) = delete;

 private:
  const ThreadContext before_;
};

}  // namespace plimsoll
