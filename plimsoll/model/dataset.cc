#include "plimsoll/model/dataset.h"

#include <fmt/format.h>

#include <cmath>
#include <deque>

#include "plimsoll/base/error.h"
#include "plimsoll/model/internal/prefetch.h"
#include "plimsoll/model/internal/rows.h"
#include "plimsoll/model/internal/shuffle.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll {
namespace {

using NodePointer = std::shared_ptr<const DatasetNode>;

void require_positive(const char* where, std::size_t value) {
  if (value == 0) throw InvalidArgument(fmt::format("{}: 0 is given; give 1 or more", where));
}

// Along a new first axis.
Example stack_examples(const std::vector<Example>& rows) {
  for (const Example& row : rows)
    if (row.inputs.size() != rows[0].inputs.size() || row.targets.size() != rows[0].targets.size())
      throw InvalidArgument("batch: examples of different numbers of tensors; make them alike with map");
  const OutsideScopes outside;
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

std::vector<std::size_t> parts_of(std::vector<std::size_t> bytes, std::size_t count) {
  for (std::size_t& each : bytes) each = (each + count - 1) / count;
  return bytes;
}

// What stands between another node and a pass, and passes on what it is asked.
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

 protected:
  virtual NodePointer with(NodePointer from) const = 0;  // The same over another node.
  const NodePointer from_;
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
    return drop_ ? *all / count_ : (*all + count_ - 1) / count_;
  }
  std::optional<std::size_t> batch_size() const override { return count_; }
  HeldBytes held(const std::vector<std::size_t>& tensor_bytes) const override {
    const std::vector<std::size_t> row = parts_of(tensor_bytes, count_);
    HeldBytes held = from_->held(row);
    held.loading += held.at_once ? whole_blocks(count_ * 8) : count_ * whole_blocks_of(row);
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
          if (fresh && left_ < 0) return false;  // Nothing, repeated without end, is nothing.
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

 private:
  NodePointer with(NodePointer from) const override { return std::make_shared<RepeatNode>(std::move(from), count_); }

  const std::int64_t count_;
};

// map and filter in one: `f` changes the example, or says that it is to be left out.
class MapNode final : public BetweenNode {
 public:
  using Function = std::function<bool(Example&)>;
  MapNode(NodePointer from, Function f, bool filters)
      : BetweenNode(std::move(from)), f_(std::move(f)), filters_(filters) {}
  std::unique_ptr<ExampleStream> open() const override {
    class Stream final : public ExampleStream {
     public:
      Stream(std::unique_ptr<ExampleStream> from, Function f) : from_(std::move(from)), f_(std::move(f)) {}
      bool next(Example& out) override {
        while (from_->next(out)) {
          const OutsideScopes outside;
          if (f_(out)) return true;
        }
        return false;
      }

     private:
      const std::unique_ptr<ExampleStream> from_;
      const Function f_;
    };
    return std::make_unique<Stream>(from_->open(), f_);
  }
  std::optional<std::size_t> size() const override { return filters_ ? std::nullopt : from_->size(); }

 private:
  NodePointer with(NodePointer from) const override { return std::make_shared<MapNode>(std::move(from), f_, filters_); }

  const Function f_;
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

NodePointer part_of(const NodePointer& from, std::size_t begin, std::size_t count) {
  if (const auto* rows = dynamic_cast<const RowsNode*>(from.get())) {
    const auto all = static_cast<std::size_t>(rows->end() - rows->begin());
    const std::size_t first = std::min(begin, all), last = first + std::min(count, all - first);
    return std::make_shared<RowsNode>(rows->source(), rows->begin() + static_cast<std::int64_t>(first),
                                      rows->begin() + static_cast<std::int64_t>(last));
  }
  return std::make_shared<PartNode>(from, begin, count);
}

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

class GeneratorNode final : public DatasetNode {
 public:
  explicit GeneratorNode(std::function<Dataset::Generator()> make) : make_(std::move(make)) {}
  std::unique_ptr<ExampleStream> open() const override {
    class Stream final : public ExampleStream {
     public:
      explicit Stream(Dataset::Generator generator) : generator_(std::move(generator)) {}
      bool next(Example& out) override {
        const OutsideScopes outside;
        std::optional<Example> made = generator_();
        if (!made) return false;
        out = std::move(*made);
        return true;
      }

     private:
      const Dataset::Generator generator_;
    };
    return std::make_unique<Stream>(make_());
  }
  std::optional<std::size_t> size() const override { return std::nullopt; }

 private:
  const std::function<Dataset::Generator()> make_;
};

const NodePointer& require_set(const Dataset& dataset) {
  if (!dataset.is_set()) throw InvalidArgument("dataset: there is none; make one with from_tensors");
  return dataset.node();
}

}  // namespace

const Tensor& Example::y() const {
  static const Tensor kNone;
  return targets.empty() ? kNone : targets[0];
}

ExampleStream::~ExampleStream() = default;
DatasetNode::~DatasetNode() = default;

std::size_t ExampleStream::next_rows(std::size_t count, Example& out) {
  std::vector<Example> rows;
  Example row;
  while (rows.size() < count && next(row)) rows.push_back(std::move(row));
  if (!rows.empty()) out = stack_examples(rows);
  return rows.size();
}

Dataset::Iterator& Dataset::Iterator::operator++() {
  example_ = {};  // Before the next one takes memory.
  if (stream_ && !stream_->next(example_)) {
    example_ = {};
    stream_.reset();
  }
  return *this;
}

Dataset Dataset::from_generator(std::function<Generator()> make) {
  return Dataset(std::make_shared<GeneratorNode>(std::move(make)));
}

Dataset Dataset::shuffle(std::size_t buffer, const ShuffleOptions& options) const {
  require_positive("shuffle", buffer);
  return Dataset(make_shuffle(require_set(*this), buffer, options));
}
Dataset Dataset::batch(std::size_t size, const BatchOptions& options) const {
  require_positive("batch", size);
  return Dataset(std::make_shared<BatchNode>(require_set(*this), size, options.drop_remainder));
}
Dataset Dataset::repeat(std::int64_t count) const {
  return Dataset(std::make_shared<RepeatNode>(require_set(*this), count));
}
Dataset Dataset::map(std::function<Example(const Example&)> f) const {
  return Dataset(std::make_shared<MapNode>(
      require_set(*this),
      [f = std::move(f)](Example& example) {
        example = f(example);
        return true;
      },
      false));
}
Dataset Dataset::filter(std::function<bool(const Example&)> f) const {
  return Dataset(std::make_shared<MapNode>(
      require_set(*this), [f = std::move(f)](Example& example) { return f(example); }, true));
}
Dataset Dataset::take(std::size_t count) const { return Dataset(part_of(require_set(*this), 0, count)); }
Dataset Dataset::skip(std::size_t count) const { return Dataset(part_of(require_set(*this), count, SIZE_MAX)); }
Dataset Dataset::prefetch(std::size_t count, const PrefetchOptions& options) const {
  require_positive("prefetch", count);
  return Dataset(make_prefetch(require_set(*this), count, options.max_bytes));
}
Dataset Dataset::window(std::size_t size, const StreamWindowOptions& options) const {
  require_positive("window", size);
  require_positive("window: shift", options.shift);
  return Dataset(std::make_shared<WindowNode>(require_set(*this), size, options));
}

void Dataset::split_into(const double* fractions, std::size_t count, Dataset* out) const {
  const auto all = size();
  if (!all) throw InvalidArgument("split: how many examples there are is not known; use take and skip");
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum += fractions[i];
    if (!(fractions[i] >= 0 && sum <= 1 + 1e-6))
      throw InvalidArgument(fmt::format(
          "split: fraction {} is {}, their sum {}; give fractions that add up to 1 at most", i, fractions[i], sum));
  }
  const NodePointer frozen = node_->frozen(true);
  const NodePointer& from = frozen ? frozen : node_;
  std::size_t begin = 0;
  double until = 0;
  const bool whole = sum > 1 - 1e-6;
  for (std::size_t i = 0; i < count; ++i) {
    until += fractions[i];
    const auto end = i + 1 == count && whole
                         ? *all
                         : std::min(*all, static_cast<std::size_t>(std::llround(until * static_cast<double>(*all))));
    out[i] = Dataset(part_of(from, begin, end - begin));
    begin = end;
  }
}

std::optional<std::size_t> Dataset::size() const { return require_set(*this)->size(); }
std::unique_ptr<ExampleStream> Dataset::open() const { return require_set(*this)->open(); }

}  // namespace plimsoll
