#include "plimsoll/model/data/transforms.h"

#include <deque>

#include "plimsoll/base/rounding.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/tensor/context_guards.h"

namespace plimsoll::internal {
namespace {

using NodePointer = std::shared_ptr<const DatasetNode>;

std::vector<std::size_t> parts_of(std::vector<std::size_t> bytes, std::size_t count) {
  for (std::size_t& each : bytes) each = divide_up(each, count);
  return bytes;
}

// A transform of another node, to which it forwards queries.
class BetweenNode : public DatasetNode {
 public:
  explicit BetweenNode(NodePointer from) : from_(std::move(from)) {}
  std::optional<std::size_t> batch_size() const override { return from_->batch_size(); }
  HeldBytes held(const std::vector<std::size_t>& tensor_bytes) const override {
    HeldBytes held = from_->held(tensor_bytes);
    held.at_once = false;
    return held;
  }
  NodePointer frozen(bool draws) const final {
    NodePointer frozen_from = from_->frozen(draws);
    return frozen_from ? with(std::move(frozen_from)) : nullptr;
  }
  NodePointer seeded(std::uint64_t seed) const final {
    NodePointer seeded_from = from_->seeded(seed);
    return seeded_from ? with(std::move(seeded_from)) : nullptr;
  }

 protected:
  virtual NodePointer with(NodePointer from) const = 0;  // The same over another node.
  const NodePointer from_;
};

// Some rows of each batch, where the number of all rows is known.
class PartOfBatchNode final : public BetweenNode {
 public:
  PartOfBatchNode(NodePointer from, std::size_t count, bool drop, RowsOfBatch rows)
      : BetweenNode(std::move(from)), count_(count), drop_(drop), rows_(std::move(rows)) {}
  std::unique_ptr<ExampleStream> open() const override {
    return std::make_unique<Stream>(from_->open(), *this, *from_->size());
  }
  std::optional<std::size_t> size() const override {
    return drop_ ? *from_->size() / count_ : divide_up(*from_->size(), count_);
  }
  std::optional<std::size_t> batch_size() const override { return count_; }
  HeldBytes held(const std::vector<std::size_t>& tensor_bytes) const override {
    const auto [first, last] = rows_(count_);
    const std::vector<std::size_t> row = parts_of(tensor_bytes, last - first);
    HeldBytes held = from_->held(row);
    held.loading += held.at_once ? whole_blocks((last - first) * 8) : (last - first) * whole_blocks_of(row);
    held.at_once = false;
    return held;
  }

 private:
  class Stream final : public ExampleStream {
   public:
    Stream(std::unique_ptr<ExampleStream> from, const PartOfBatchNode& node, std::size_t left)
        : from_(std::move(from)), count_(node.count_), drop_(node.drop_), rows_(node.rows_), left_(left) {}
    bool next(Example& out) override {
      out = {};
      const std::size_t all = std::min(count_, left_);
      if (all == 0 || (drop_ && all < count_)) return false;
      const auto [first, last] = rows_(all);
      from_->skip_rows(first);
      const bool is_there = from_->next_rows(last - first, out) == last - first;
      from_->skip_rows(all - last);
      left_ -= all;
      out.whole_examples = all;
      out.first_example = first;
      return is_there;
    }

   private:
    const std::unique_ptr<ExampleStream> from_;
    const std::size_t count_;
    const bool drop_;
    const RowsOfBatch rows_;
    std::size_t left_;
  };
  NodePointer with(NodePointer from) const override {
    return std::make_shared<PartOfBatchNode>(std::move(from), count_, drop_, rows_);
  }

  const std::size_t count_;
  const bool drop_;
  const RowsOfBatch rows_;
};

class BatchNode final : public BetweenNode {
 public:
  BatchNode(NodePointer from, std::size_t count, bool drop)
      : BetweenNode(std::move(from)), count_(count), drop_(drop) {}
  std::unique_ptr<ExampleStream> open() const override {
    class Stream final : public ExampleStream {
     public:
      Stream(std::unique_ptr<ExampleStream> from, std::size_t count, bool drop)
          : from_(std::move(from)), count_(count), drop_(drop) {}
      bool next(Example& out) override {
        out = {};
        const std::size_t taken = from_->next_rows(count_, out);
        return taken == count_ || (taken > 0 && !drop_);
      }

     private:
      const std::unique_ptr<ExampleStream> from_;
      const std::size_t count_;
      const bool drop_;
    };
    return std::make_unique<Stream>(from_->open(), count_, drop_);
  }
  std::optional<std::size_t> size() const override {
    const auto all = from_->size();
    if (!all) return std::nullopt;
    return drop_ ? *all / count_ : divide_up(*all, count_);
  }
  std::optional<std::size_t> batch_size() const override { return count_; }
  std::optional<std::size_t> last_batch_size() const override {
    const auto all = from_->size();
    if (drop_ || !all || *all < count_ || *all % count_ == 0) return std::nullopt;
    return *all % count_;
  }
  NodePointer part_of_batches(const RowsOfBatch& rows) const override {
    if (!from_->size()) return nullptr;
    return std::make_shared<PartOfBatchNode>(from_, count_, drop_, rows);
  }
  HeldBytes held(const std::vector<std::size_t>& tensor_bytes) const override {
    const std::size_t rows = std::max<std::size_t>(std::min(count_, from_->size().value_or(count_)), 1);
    const std::vector<std::size_t> row = parts_of(tensor_bytes, rows);
    HeldBytes held = from_->held(row);
    held.loading += held.at_once ? whole_blocks(rows * 8) : rows * whole_blocks_of(row);
    held.at_once = false;
    return held;
  }

 private:
  NodePointer with(NodePointer from) const override {
    return std::make_shared<BatchNode>(std::move(from), count_, drop_);
  }

  const std::size_t count_;
  const bool drop_;
};

class RepeatNode final : public BetweenNode {
 public:
  RepeatNode(NodePointer from, std::int64_t count) : BetweenNode(std::move(from)), count_(count) {}
  std::unique_ptr<ExampleStream> open() const override {
    class Stream final : public ExampleStream {
     public:
      Stream(NodePointer from, std::int64_t left) : from_(std::move(from)), left_(left) {}
      bool next(Example& out) override {
        for (bool fresh = false; left_ != 0;) {
          if (!stream_) {
            stream_ = from_->open();
            fresh = true;
          }
          if (stream_->next(out)) return true;
          stream_.reset();
          if (left_ > 0) --left_;
          if (fresh && left_ < 0) return false;  // Repeating nothing endlessly gives nothing.
        }
        return false;
      }

     private:
      const NodePointer from_;
      std::int64_t left_;
      std::unique_ptr<ExampleStream> stream_;
    };
    return std::make_unique<Stream>(from_, count_);
  }
  std::optional<std::size_t> size() const override {
    const auto all = from_->size();
    if (count_ < 0 || !all) return std::nullopt;
    return *all * static_cast<std::size_t>(count_);
  }
  std::optional<std::size_t> last_batch_size() const override { return from_->last_batch_size(); }

 private:
  NodePointer with(NodePointer from) const override { return std::make_shared<RepeatNode>(std::move(from), count_); }

  const std::int64_t count_;
};

// map and filter in one: `f` changes the example, or says that it is to be left out.
class MapNode final : public BetweenNode {
 public:
  MapNode(NodePointer from, ExampleFilter f, bool filters)
      : BetweenNode(std::move(from)), f_(std::move(f)), filters_(filters) {}
  std::unique_ptr<ExampleStream> open() const override {
    class Stream final : public ExampleStream {
     public:
      Stream(std::unique_ptr<ExampleStream> from, ExampleFilter f) : from_(std::move(from)), f_(std::move(f)) {}
      bool next(Example& out) override {
        while (from_->next(out)) {
          const Untracked outside;
          if (f_(out)) return true;
        }
        return false;
      }

     private:
      const std::unique_ptr<ExampleStream> from_;
      const ExampleFilter f_;
    };
    return std::make_unique<Stream>(from_->open(), f_);
  }
  std::optional<std::size_t> size() const override { return filters_ ? std::nullopt : from_->size(); }
  std::optional<std::size_t> last_batch_size() const override {
    return filters_ ? std::nullopt : from_->last_batch_size();
  }

 private:
  NodePointer with(NodePointer from) const override { return std::make_shared<MapNode>(std::move(from), f_, filters_); }

  const ExampleFilter f_;
  const bool filters_;
};

class PartNode final : public BetweenNode {
 public:
  PartNode(NodePointer from, std::size_t begin, std::size_t count)
      : BetweenNode(std::move(from)), begin_(begin), count_(count) {}
  std::unique_ptr<ExampleStream> open() const override {
    class Stream final : public ExampleStream {
     public:
      Stream(std::unique_ptr<ExampleStream> from, std::size_t skip, std::size_t left)
          : from_(std::move(from)), skip_(skip), left_(left) {}
      bool next(Example& out) override {
        for (; skip_ > 0; --skip_)
          if (!from_->next(out)) return false;
        if (left_ == 0 || !from_->next(out)) return false;
        --left_;
        return true;
      }

     private:
      const std::unique_ptr<ExampleStream> from_;
      std::size_t skip_, left_;
    };
    return std::make_unique<Stream>(from_->open(), begin_, count_);
  }
  std::optional<std::size_t> size() const override {
    const auto all = from_->size();
    if (!all) return std::nullopt;
    return *all <= begin_ ? 0 : std::min(*all - begin_, count_);
  }

 private:
  NodePointer with(NodePointer from) const override {
    return std::make_shared<PartNode>(std::move(from), begin_, count_);
  }

  const std::size_t begin_, count_;
};

// Windows of examples that come one by one.
class WindowNode final : public BetweenNode {
 public:
  WindowNode(NodePointer from, std::size_t count, const StreamWindowOptions& options)
      : BetweenNode(std::move(from)), count_(count), options_(options) {}
  std::unique_ptr<ExampleStream> open() const override { return std::make_unique<Stream>(*this, from_->open()); }
  std::optional<std::size_t> size() const override {
    const auto all = from_->size();
    if (!all) return std::nullopt;
    if (!options_.drop_remainder) return (*all + options_.shift - 1) / options_.shift;
    return *all < count_ ? 0 : (*all - count_) / options_.shift + 1;
  }
  std::optional<std::size_t> batch_size() const override { return std::nullopt; }
  HeldBytes held(const std::vector<std::size_t>& tensor_bytes) const override {
    const std::vector<std::size_t> row = parts_of(tensor_bytes, count_);
    HeldBytes held = from_->held(row);
    held.resident += count_ * whole_blocks_of(row);
    held.at_once = false;
    return held;
  }

 private:
  class Stream final : public ExampleStream {
   public:
    Stream(const WindowNode& node, std::unique_ptr<ExampleStream> from)
        : from_(std::move(from)), count_(node.count_), options_(node.options_) {}
    bool next(Example& out) override {
      for (Example skipped; skip_ > 0; --skip_)
        if (!from_->next(skipped)) return false;
      for (Example more; held_.size() < count_ && from_->next(more);) held_.push_back(std::move(more));
      if (held_.empty() || (options_.drop_remainder && held_.size() < count_)) return false;
      out = stack_examples({held_.begin(), held_.end()});
      const std::size_t gone = std::min(options_.shift, held_.size());
      held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(gone));
      skip_ = options_.shift - gone;
      return true;
    }

   private:
    const std::unique_ptr<ExampleStream> from_;
    const std::size_t count_;
    const StreamWindowOptions options_;
    std::deque<Example> held_;
    std::size_t skip_ = 0;  // Examples between two windows.
  };

  NodePointer with(NodePointer from) const override {
    return std::make_shared<WindowNode>(std::move(from), count_, options_);
  }

  const std::size_t count_;
  const StreamWindowOptions options_;
};

}  // namespace

NodePointer make_batch(NodePointer from, std::size_t count, bool drop_remainder) {
  return std::make_shared<BatchNode>(std::move(from), count, drop_remainder);
}
NodePointer make_repeat(NodePointer from, std::int64_t count) {
  return std::make_shared<RepeatNode>(std::move(from), count);
}
NodePointer make_map(NodePointer from, ExampleFilter f, bool filters) {
  return std::make_shared<MapNode>(std::move(from), std::move(f), filters);
}
NodePointer make_part(NodePointer from, std::size_t begin, std::size_t count) {
  if (const auto* rows = dynamic_cast<const RowsNode*>(from.get())) {
    const auto all = static_cast<std::size_t>(rows->end() - rows->begin());
    const std::size_t first = std::min(begin, all), last = first + std::min(count, all - first);
    return std::make_shared<RowsNode>(rows->source(), rows->begin() + static_cast<std::int64_t>(first),
                                      rows->begin() + static_cast<std::int64_t>(last));
  }
  return std::make_shared<PartNode>(std::move(from), begin, count);
}
NodePointer make_window(NodePointer from, std::size_t count, const StreamWindowOptions& options) {
  return std::make_shared<WindowNode>(std::move(from), count, options);
}

}  // namespace plimsoll::internal
