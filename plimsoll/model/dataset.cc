#include "plimsoll/model/dataset.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <deque>

#include "plimsoll/base/error.h"
#include "plimsoll/base/philox.h"
#include "plimsoll/model/internal/prefetch.h"
#include "plimsoll/model/internal/rows.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/random.h"

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

class ShuffleStream final : public ExampleStream {  // Of examples that come one by one.
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
  ShuffleNode(NodePointer from, std::size_t buffer, const ShuffleOptions& options)
      : from_(std::move(from)), buffer_(buffer), max_bytes_(options.max_bytes), seed_(options.seed) {}
  std::unique_ptr<ExampleStream> open() const override {
    std::uint64_t key = 0, pass = 0;
    if (seed_) {
      key = *seed_;
      pass = passes_.fetch_add(1);
    } else {
      const RandomDraw drawn = draw_random({}, 4);
      key = drawn.key;
      pass = drawn.offset + (std::uint64_t{1} << 63);
    }
    if (const auto* rows = dynamic_cast<const RowsNode*>(from_.get())) return open_shuffled(*rows, buffer_, key, pass);
    return std::make_unique<ShuffleStream>(from_->open(), buffer_, max_bytes_, Philox(key, 0, pass));
  }
  std::optional<std::size_t> size() const override { return from_->size(); }

 private:
  const NodePointer from_;
  const std::size_t buffer_, max_bytes_;
  const std::optional<std::uint64_t> seed_;
  mutable std::atomic<std::uint64_t> passes_{0};
};

class BatchNode final : public DatasetNode {
 public:
  BatchNode(NodePointer from, std::size_t count, bool drop) : from_(std::move(from)), count_(count), drop_(drop) {}
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

 private:
  const NodePointer from_;
  const std::size_t count_;
  const bool drop_;
};

class RepeatNode final : public DatasetNode {
 public:
  RepeatNode(NodePointer from, std::int64_t count) : from_(std::move(from)), count_(count) {}
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
  const NodePointer from_;
  const std::int64_t count_;
};

// map and filter in one: `f` changes the example, or says that it is to be left out.
class MapNode final : public DatasetNode {
 public:
  using Function = std::function<bool(Example&)>;
  MapNode(NodePointer from, Function f, bool filters) : from_(std::move(from)), f_(std::move(f)), filters_(filters) {}
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
  const NodePointer from_;
  const Function f_;
  const bool filters_;
};

class PartNode final : public DatasetNode {
 public:
  PartNode(NodePointer from, std::size_t begin, std::size_t count)
      : from_(std::move(from)), begin_(begin), count_(count) {}
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
  const NodePointer from_;
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
class WindowNode final : public DatasetNode {
 public:
  WindowNode(NodePointer from, std::size_t count, const StreamWindowOptions& options)
      : from_(std::move(from)), count_(count), options_(options) {}
  std::unique_ptr<ExampleStream> open() const override { return std::make_unique<Stream>(*this, from_->open()); }
  std::optional<std::size_t> size() const override {
    const auto all = from_->size();
    if (!all) return std::nullopt;
    if (!options_.drop_remainder) return (*all + options_.shift - 1) / options_.shift;
    return *all < count_ ? 0 : (*all - count_) / options_.shift + 1;
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

  const NodePointer from_;
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
  return Dataset(std::make_shared<ShuffleNode>(require_set(*this), buffer, options));
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
  std::size_t begin = 0;
  double until = 0;
  const bool whole = sum > 1 - 1e-6;
  for (std::size_t i = 0; i < count; ++i) {
    until += fractions[i];
    const auto end = i + 1 == count && whole
                         ? *all
                         : std::min(*all, static_cast<std::size_t>(std::llround(until * static_cast<double>(*all))));
    out[i] = Dataset(part_of(node_, begin, end - begin));
    begin = end;
  }
}

std::optional<std::size_t> Dataset::size() const { return require_set(*this)->size(); }
std::unique_ptr<ExampleStream> Dataset::open() const { return require_set(*this)->open(); }

}  // namespace plimsoll
