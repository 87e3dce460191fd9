// Dataset: a sequence of examples that can be iterated any number of times: sliced, shuffled, batched, mapped,
// prefetched.
//
//   Dataset train = Dataset::from_tensors(x, y).shuffle(1000, {.seed = 1}).batch(32).prefetch(2);
//   for (const auto& [inputs, targets] : train) ...        // [32, ..] and [32, ..]; the last may be shorter
//   auto [first, second, rest] = dataset.split({0.7, 0.15, 0.15});
//   Dataset table = Dataset::from_csv("houses.csv", {.targets = {"price"}, .categorical = {"town"}});
//   CsvTable a = load_csv("a.csv", {.categorical = {"town"}}), b = load_csv("b.csv", {.categories = a.categories});
//   Dataset windows = timeseries_windows(series, {.look_back = 20, .horizon = 1});   // x [20, features], y [features]
//
// A Dataset is a description and cheap to copy; each loop over it is a new pass, shuffled differently (with a seed,
// pass k always in the same way). What a pass needs (batches, examples waiting in a shuffle or a prefetch) is in
// tensors of the arena, is charged to the budget of the looping thread, and is freed when the loop moves on or ends.
// Batches of rows in order share the bytes of what they were cut from.
//
// Thread safety: passes on several threads are independent, except for which one is pass k.
// Throws InvalidArgument for tensors of different lengths, sizes below 1, and invalid fractions.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

// Inputs, targets and, if any, the weights of an example or a batch. Binds to [x, y]: the first of each.
struct PLIMSOLL_API Example {
  std::vector<Tensor> inputs;
  std::vector<Tensor> targets;
  Tensor weights = {};
  // For a part of a batch: the examples of the whole, and the index of the first one here. 0: this is the whole.
  std::size_t whole_examples = 0, first_example = 0;

  const Tensor& x() const { return inputs.at(0); }
  const Tensor& y() const;  // An empty handle when there are no targets.
  template <std::size_t I>
  const Tensor& get() const {
    if constexpr (I == 0)
      return x();
    else
      return y();
  }
  template <class F>
  friend void visit_tensors(const Example& example, F&& f) {
    for (const Tensor& tensor : example.inputs) f(tensor);
    for (const Tensor& tensor : example.targets) f(tensor);
    f(example.weights);
  }
};

// One pass over a dataset.
class PLIMSOLL_API ExampleStream {
 public:
  virtual ~ExampleStream();
  virtual bool next(Example& out) = 0;  // False at the end.
  // Up to `count` examples at once, along a new first axis; returns how many there were.
  virtual std::size_t next_rows(std::size_t count, Example& out);
  virtual std::size_t skip_rows(std::size_t count);  // The same without making them.
};

// The most memory that a pass holds in addition to the current example.
struct HeldBytes {
  std::size_t resident = 0;  // From one example to the next.
  std::size_t loading = 0;   // In addition, while the next one is made.
  bool at_once = false;      // Batches are made without making their examples first.
};

class PLIMSOLL_API DatasetNode {
 public:
  virtual ~DatasetNode();
  virtual std::unique_ptr<ExampleStream> open() const = 0;
  virtual std::optional<std::size_t> size() const = 0;  // Examples of a pass, when that is known.
  virtual std::optional<std::size_t> batch_size() const { return std::nullopt; }  // Of batches, when that is known.
  // Rows of the last batch of a pass, when that is known to be smaller than the first.
  virtual std::optional<std::size_t> last_batch_size() const { return std::nullopt; }
  // For a pass whose examples have tensors of these sizes.
  virtual HeldBytes held(const std::vector<std::size_t>& /*tensor_bytes*/) const { return {}; }
  // The same with every pass in the same order; nullptr when that is already so. `draws`: an order is drawn if
  // necessary; otherwise any order will do, for callers that only inspect it, and later passes are not affected.
  virtual std::shared_ptr<const DatasetNode> frozen(bool /*draws*/) const { return nullptr; }
  // The same with only some rows of each batch, [first, last) of so many; at least one. nullptr where whole batches
  // must be made to know.
  using RowsOfBatch = std::function<std::pair<std::size_t, std::size_t>(std::size_t examples)>;
  virtual std::shared_ptr<const DatasetNode> part_of_batches(const RowsOfBatch& /*rows*/) const { return nullptr; }
  // The same with shuffles without a seed using this one, so that processes agree; nullptr when there are none.
  virtual std::shared_ptr<const DatasetNode> seeded(std::uint64_t /*seed*/) const { return nullptr; }
};

struct ShuffleOptions {
  std::optional<std::uint64_t> seed = {};
  bool reshuffle_each_iteration = true;  // Otherwise every pass has the order of the first.
  std::size_t max_bytes = 0;             // For a stream: limit of the examples held, at least one; 0: none.
};
struct BatchOptions {
  bool drop_remainder = false;  // Drops a last batch that is shorter.
};
struct PrefetchOptions {
  std::size_t max_bytes = 0;  // Limit for the examples that are ready (one is always allowed); 0: none.
};
struct StreamWindowOptions {
  std::size_t shift = 1;       // Examples from one window to the next.
  bool drop_remainder = true;  // Drops shorter windows at the end.
};
// Columns of text, by name or number, and their texts: the first one is 0, the next 1, ..
using CsvCategories = std::vector<std::pair<std::string, std::vector<std::string>>>;
// Makes the numbers of a column comparable with others: (value - mean) / deviation.
struct CsvScale {
  std::string column;
  double mean = 0, deviation = 1;
};
struct CsvOptions {
  std::vector<std::string> targets = {};      // Columns, by name or by number from 0; default: the last one.
  std::vector<std::string> features = {};     // Default: all others.
  std::vector<std::string> categorical = {};  // Text: 0, 1, .. in alphabetical order.
  CsvCategories categories = {};              // Text whose numbers are known, from another file; other text is refused.
  // Default: the first line is a header if it has the name of a requested column, or text where the next line has a
  // number (in a used column that is not text).
  std::optional<bool> header = {};
  // What to do with an empty field, NA or NaN: "error", "zero", "nan", or "drop" its line. Targets are never filled in.
  std::string missing = "error";
  char delimiter = ',';
  bool stream = false;                  // Read again in each pass, a line at a time, instead of held in memory.
  bool all_features = false;            // There are no targets.
  std::vector<std::string> dates = {};  // Columns such as 2024-03-01 12:30: seconds since 1970, UTC.
  std::vector<CsvScale> scales = {};    // For columns that are not categories; others stay unchanged.
  // Above 0: examples are windows over the rows, `look_back` rows of features, [look_back, features], and the targets
  // of the `horizon` rows after them, [horizon * targets].
  std::int64_t look_back = 0;
  std::int64_t horizon = 1;
};
// A feature of a tf.Example: its values fill this shape; floats, 64-bit integers, or bytes as u8.
struct ExampleFeature {
  std::string name;
  Shape shape = {};
  DType dtype = f32;
};
struct TfRecordOptions {
  std::vector<ExampleFeature> inputs = {};
  std::vector<ExampleFeature> targets = {};
};

class PLIMSOLL_API Dataset {
 public:
  Dataset() = default;  // Empty: is_set() is false.
  explicit Dataset(std::shared_ptr<const DatasetNode> node) : node_(std::move(node)) {}

  // Rows of tensors: the first axis counts examples.
  static Dataset from_tensors(const Tensor& x, const Tensor& y = {}, const Tensor& weights = {});
  static Dataset from_tensors(const std::vector<Tensor>& inputs, const std::vector<Tensor>& targets = {},
                              const Tensor& weights = {});
  // TensorFlow's name for from_tensors().
  static Dataset from_tensor_slices(const Tensor& x, const Tensor& y = {}, const Tensor& weights = {}) {
    return from_tensors(x, y, weights);
  }
  static Dataset from_tensor_slices(const std::vector<Tensor>& inputs, const std::vector<Tensor>& targets = {},
                                    const Tensor& weights = {}) {
    return from_tensors(inputs, targets, weights);
  }
  // Rows of tensors that the first pass loads, on its budget, and that stay in memory. They then take `bytes`.
  static Dataset from_loader(std::size_t rows, std::size_t bytes, std::function<Example()> load);
  // The result of `make` is called until it returns nothing; each pass makes a new one.
  using Generator = std::function<std::optional<Example>()>;
  static Dataset from_generator(std::function<Generator()> make);
  // Files in one of these formats; the functions below say what they throw. Text and idx files may be gzipped.
  static Dataset from_csv(const std::string& path, const CsvOptions& options = {});
  // Arrays x and y (or x_train and y_train), or those named.
  static Dataset from_npz(const std::string& path, const std::string& x = "", const std::string& y = "");
  static Dataset from_npy(const std::string& x_path, const std::string& y_path = "");
  static Dataset from_idx(const std::string& x_path, const std::string& y_path = "");  // MNIST's format.
  // Records of tf.Example, read in each pass, one at a time. An example that lacks a feature or has another number of
  // values is Corruption, with the file and the offset.
  static Dataset from_tfrecords(const std::vector<std::string>& paths, const TfRecordOptions& options);

  // Each example is drawn from the next `buffer` ones: from all of them when it is as large as the dataset. Rows of
  // tensors shuffled as a whole need no memory for it, in a smaller buffer 8 bytes per row; examples that come one by
  // one are held.
  Dataset shuffle(std::size_t buffer, const ShuffleOptions& options = {}) const;
  Dataset batch(std::size_t size, const BatchOptions& options = {}) const;
  Dataset repeat(std::int64_t count = -1) const;  // -1: endlessly.
  Dataset map(std::function<Example(const Example&)> f) const;
  Dataset filter(std::function<bool(const Example&)> f) const;
  Dataset take(std::size_t count) const;
  Dataset skip(std::size_t count) const;
  // On a separate thread, up to `count` ahead, using the budget and the device of the thread that started the pass.
  Dataset prefetch(std::size_t count, const PrefetchOptions& options = {}) const;
  // `size` consecutive examples along a new first axis.
  Dataset window(std::size_t size, const StreamWindowOptions& options = {}) const;
  // Consecutive parts, each with that fraction of the examples, the last with the rest. Fractions add up to at most 1.
  // After a shuffle the parts come from one order, so that no example ever changes sides; shuffle a part again to mix
  // it in each pass. Throws InvalidArgument when the size is not known.
  template <std::size_t N>
  std::array<Dataset, N> split(const double (&fractions)[N]) const {
    std::array<Dataset, N> result;
    split_into(fractions, N, result.data());
    return result;
  }

  bool is_set() const noexcept { return node_ != nullptr; }
  std::optional<std::size_t> size() const;
  std::unique_ptr<ExampleStream> open() const;
  const std::shared_ptr<const DatasetNode>& node() const noexcept { return node_; }

  struct End {};
  class PLIMSOLL_API Iterator {
   public:
    explicit Iterator(std::unique_ptr<ExampleStream> stream) : stream_(std::move(stream)) { ++*this; }
    const Example& operator*() const noexcept { return example_; }
    const Example* operator->() const noexcept { return &example_; }
    Iterator& operator++();
    bool operator==(End) const noexcept { return stream_ == nullptr; }

   private:
    std::unique_ptr<ExampleStream> stream_;
    Example example_;
  };
  Iterator begin() const { return Iterator(open()); }
  End end() const noexcept { return {}; }

 private:
  void split_into(const double* fractions, std::size_t count, Dataset* out) const;
  std::shared_ptr<const DatasetNode> node_;
};

// A tidy leaves datasets alone.
template <class F>
void visit_tensors(const Dataset&, F&&) {}

struct WindowOptions {
  std::int64_t look_back = 1;
  std::int64_t horizon = 1;
  std::int64_t stride = 1;  // Steps from one window to the next.
};
// Windows over a series [time, features] (or [time]): x is `look_back` steps, [look_back, features], y the following
// `horizon` steps in one row, [horizon * features]. Throws InvalidArgument for a series that is too short.
PLIMSOLL_API Dataset timeseries_windows(const Tensor& series, const WindowOptions& options);

// The contents of a CSV file, as numbers.
struct CsvTable {
  Tensor features;  // f32 [rows, columns]
  Tensor targets;   // f32 [rows, columns]
  std::vector<std::string> feature_names, target_names;
  std::vector<std::string> column_names;  // Of all columns of the file; their numbers without a header.
  bool has_header = false;
  CsvCategories categories;  // Of each categorical column; pass them as CsvOptions::categories for the next file.
  std::size_t dropped_rows = 0;

  template <class F>
  friend void visit_tensors(const CsvTable& table, F&& f) {
    f(table.features);
    f(table.targets);
  }
};
// Fields are separated and quoted as in RFC 4180; empty lines are skipped. Throws NotFound for a file or column that
// does not exist, Corruption, with the line and the column, for a field that is not a number or not a known category
// and for lines of different lengths, InvalidArgument for options.
PLIMSOLL_API CsvTable load_csv(const std::string& path, const CsvOptions& options = {});
// Only the categories, for a file that is streamed. Takes no tensor memory; throws as load_csv does for lines.
PLIMSOLL_API CsvCategories load_csv_categories(const std::string& path, const CsvOptions& options);
// The fields of its first line, unchanged. Throws NotFound, Corruption.
PLIMSOLL_API std::vector<std::string> load_csv_first_line(const std::string& path, char delimiter = ',');
// An array in MNIST's file format. Throws NotFound, Corruption with the offset.
PLIMSOLL_API Tensor load_idx(const std::string& path);

}  // namespace plimsoll

template <>
struct std::tuple_size<plimsoll::Example> : std::integral_constant<std::size_t, 2> {};
template <std::size_t I>
struct std::tuple_element<I, plimsoll::Example> {
  using type = plimsoll::Tensor;
};
