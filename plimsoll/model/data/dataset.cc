#include "plimsoll/model/data/dataset.h"

#include <fmt/format.h>

#include <cmath>

#include "plimsoll/base/error.h"
#include "plimsoll/model/data/prefetch.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/model/data/shuffle.h"
#include "plimsoll/model/data/transforms.h"
#include "plimsoll/tensor/context_guards.h"

namespace plimsoll {
namespace {

using NodePointer = std::shared_ptr<const DatasetNode>;

void require_positive(const char* where, std::size_t value) {
  if (value == 0) throw InvalidArgument(fmt::format("{}: 0 is given; give 1 or more", where));
}

class GeneratorNode final : public DatasetNode {
 public:
  explicit GeneratorNode(std::function<Dataset::Generator()> make) : make_(std::move(make)) {}
  std::unique_ptr<ExampleStream> open() const override {
    class Stream final : public ExampleStream {
     public:
      explicit Stream(Dataset::Generator generator) : generator_(std::move(generator)) {}
      bool next(Example& out) override {
        const Untracked outside;
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

std::size_t ExampleStream::skip_rows(std::size_t count) {
  constexpr std::size_t kAtOnce = 16;
  std::size_t skipped = 0;
  while (skipped < count) {
    Example unused;
    const std::size_t came = next_rows(std::min(kAtOnce, count - skipped), unused);
    if (came == 0) break;
    skipped += came;
  }
  return skipped;
}

Dataset::Iterator& Dataset::Iterator::operator++() {
  example_ = {};  // Freed before the next one is allocated.
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
  return Dataset(make_batch(require_set(*this), size, options.drop_remainder));
}
Dataset Dataset::repeat(std::int64_t count) const { return Dataset(make_repeat(require_set(*this), count)); }
Dataset Dataset::map(std::function<Example(const Example&)> f) const {
  return Dataset(make_map(
      require_set(*this),
      [f = std::move(f)](Example& example) {
        example = f(example);
        return true;
      },
      false));
}
Dataset Dataset::filter(std::function<bool(const Example&)> f) const {
  return Dataset(make_map(
      require_set(*this), [f = std::move(f)](Example& example) { return f(example); }, true));
}
Dataset Dataset::take(std::size_t count) const { return Dataset(make_part(require_set(*this), 0, count)); }
Dataset Dataset::skip(std::size_t count) const { return Dataset(make_part(require_set(*this), count, SIZE_MAX)); }
Dataset Dataset::prefetch(std::size_t count, const PrefetchOptions& options) const {
  require_positive("prefetch", count);
  return Dataset(make_prefetch(require_set(*this), count, options.max_bytes));
}
Dataset Dataset::window(std::size_t size, const StreamWindowOptions& options) const {
  require_positive("window", size);
  require_positive("window: shift", options.shift);
  return Dataset(make_window(require_set(*this), size, options));
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
    out[i] = Dataset(make_part(from, begin, end - begin));
    begin = end;
  }
}

std::optional<std::size_t> Dataset::size() const { return require_set(*this)->size(); }
std::unique_ptr<ExampleStream> Dataset::open() const { return require_set(*this)->open(); }

}  // namespace plimsoll
