#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/model/data/csv_columns.h"
#include "plimsoll/model/data/csv_file.h"
#include "plimsoll/model/data/csv_rows.h"
#include "plimsoll/model/data/row_source.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

Tensor matrix(std::size_t rows, std::size_t columns) {
  return make_tensor({.op = "csv", .category = Category::kInputs},
                     {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)}, f32, current_host_device());
}

// Reads the numbers of some rows of a file, from its beginning.
class CsvRowReader {
 public:
  CsvRowReader(std::shared_ptr<const CsvColumns> columns, const CsvPart& part,
               const CsvColumns::Progress& progress = {})
      : columns_(std::move(columns)), part_(part), pass_(columns_->open(progress)) {}
  bool next(float* features, float* targets) {
    do {
      if (++row_ >= part_.end || !columns_->skip(pass_->reader())) return false;
    } while (!part_.has(row_));
    columns_->take(pass_->reader(), features, targets);
    return true;
  }
  [[noreturn]] void has_changed() { pass_->reader().corrupt("the file has changed while it was read"); }

 private:
  const std::shared_ptr<const CsvColumns> columns_;
  const CsvPart part_;
  std::int64_t row_ = -1;
  const std::unique_ptr<CsvPass> pass_;
};

class CsvStream final : public RowStream {
 public:
  CsvStream(std::shared_ptr<const CsvColumns> columns, const CsvPart& part, std::size_t examples)
      : columns_(columns), left_(examples), rows_(std::move(columns), part) {}
  std::size_t next_rows(std::size_t wanted, Example& out) override {
    const Untracked outside;
    const std::size_t count = std::min(wanted, left_);
    if (count == 0) return 0;
    const Tensor x = matrix(count, columns_->num_features()), y = matrix(count, columns_->num_targets());
    float* to_x = writable(x).data<float>();
    float* to_y = writable(y).data<float>();
    std::size_t rows = 0;
    for (; rows < count && rows_.next(to_x, to_y); ++rows) {
      to_x += columns_->num_features();
      to_y += columns_->num_targets();
    }
    left_ = rows < count ? 0 : left_ - rows;
    if (rows == 0) return 0;
    const auto kept = static_cast<std::int64_t>(rows);
    out = {.inputs = {x.slice({0}, {kept})}, .targets = {}};
    if (columns_->num_targets() > 0) out.targets = {y.slice({0}, {kept})};
    return rows;
  }

 private:
  const std::shared_ptr<const CsvColumns> columns_;
  std::size_t left_;  // The last batch takes no more memory than its rows.
  CsvRowReader rows_;
};

// Windows over the rows: keeps the last `look_back + horizon` rows in a ring; the next one replaces the oldest.
class CsvWindowStream final : public RowStream {
 public:
  CsvWindowStream(std::shared_ptr<const CsvColumns> columns, const CsvPart& part, std::size_t examples)
      : columns_(columns),
        left_(examples),
        back_(static_cast<std::size_t>(columns->look_back())),
        ahead_(static_cast<std::size_t>(columns->horizon())),
        rows_(std::move(columns), part) {
    const Untracked outside;
    x_ = matrix(back_ + ahead_, columns_->num_features());
    y_ = matrix(back_ + ahead_, columns_->num_targets());
  }
  std::size_t next_rows(std::size_t wanted, Example& out) override {
    const Untracked outside;
    const std::size_t count = std::min(wanted, left_);
    if (count == 0) return 0;
    const std::size_t features = columns_->num_features(), targets = columns_->num_targets();
    const Tensor x =
        make_tensor({.op = "csv", .category = Category::kInputs},
                    {static_cast<std::int64_t>(count), columns_->look_back(), static_cast<std::int64_t>(features)}, f32,
                    current_host_device());
    const Tensor y = matrix(count, ahead_ * targets);
    std::size_t windows = 0;
    for (; windows < count && step(); ++windows) {
      copy(x_, 0, back_, features, writable(x).data<float>() + windows * back_ * features);
      copy(y_, back_, ahead_, targets, writable(y).data<float>() + windows * ahead_ * targets);
    }
    left_ = windows < count ? 0 : left_ - windows;
    if (windows == 0) return 0;
    const auto kept = static_cast<std::int64_t>(windows);
    out = {.inputs = {x.slice({0}, {kept})}, .targets = {}};
    if (targets > 0) out.targets = {y.slice({0}, {kept})};
    return windows;
  }

 private:
  // Reads until the next window is complete.
  bool step() {
    const std::size_t size = back_ + ahead_;
    do {
      const std::size_t place = read_ % size;
      if (!rows_.next(writable(x_).data<float>() + place * columns_->num_features(),
                      writable(y_).data<float>() + place * columns_->num_targets()))
        return false;
    } while (++read_ < size);
    return true;
  }
  // Copies rows of the window, oldest first.
  void copy(const Tensor& ring, std::size_t first, std::size_t count, std::size_t width, float* to) const {
    const std::size_t size = back_ + ahead_;
    const float* const from = writable(ring).data<float>();
    for (std::size_t i = 0; i < count && width > 0; ++i, to += width)
      std::memcpy(to, from + (read_ + first + i) % size * width, width * sizeof(float));
  }

  const std::shared_ptr<const CsvColumns> columns_;
  std::size_t left_;
  const std::size_t back_, ahead_;
  CsvRowReader rows_;
  Tensor x_, y_;
  std::size_t read_ = 0;
};

class CsvNode final : public DatasetNode {
 public:
  CsvNode(std::shared_ptr<const CsvColumns> columns, const CsvPart& part, std::size_t examples)
      : columns_(std::move(columns)), part_(part), examples_(examples) {}
  std::unique_ptr<ExampleStream> open() const override {
    if (columns_->look_back() > 0) return std::make_unique<CsvWindowStream>(columns_, part_, examples_);
    return std::make_unique<CsvStream>(columns_, part_, examples_);
  }
  std::optional<std::size_t> size() const override { return examples_; }
  HeldBytes held(const std::vector<std::size_t>&) const override {
    if (columns_->look_back() == 0) return {.at_once = true};
    const auto rows = static_cast<std::size_t>(columns_->look_back() + columns_->horizon());
    return {.resident = whole_blocks(rows * columns_->num_features() * sizeof(float)) +
                        whole_blocks(rows * columns_->num_targets() * sizeof(float)),
            .at_once = true};
  }

 private:
  const std::shared_ptr<const CsvColumns> columns_;
  const CsvPart part_;
  const std::size_t examples_;
};

}  // namespace

Example internal::read_csv_rows(const std::shared_ptr<const CsvColumns>& columns, const CsvPart& part, std::size_t rows,
                                const CsvColumns::Progress& progress) {
  Example table{.inputs = {matrix(rows, columns->num_features())}, .targets = {matrix(rows, columns->num_targets())}};
  CsvRowReader reader(columns, part, progress);
  float* x = writable(table.inputs[0]).data<float>();
  float* y = writable(table.targets[0]).data<float>();
  for (std::size_t row = 0; row < rows; ++row) {
    if (!reader.next(x, y)) reader.has_changed();
    x += columns->num_features();
    y += columns->num_targets();
  }
  return table;
}

std::size_t internal::csv_rows_of(const CsvColumns& columns, const CsvPart& part) {
  const auto all = std::min(part.end, static_cast<std::int64_t>(columns.num_rows()));
  if (part.from <= 0 && part.to >= 1) return static_cast<std::size_t>(std::max<std::int64_t>(all - part.begin, 0));
  std::size_t rows = 0;
  for (std::int64_t row = part.begin; row < all; ++row) rows += part.has(row);
  return rows;
}

std::size_t internal::csv_examples_of(const CsvColumns& columns, const CsvPart& part) {
  const std::size_t rows = csv_rows_of(columns, part);
  if (columns.look_back() == 0) return rows;
  const auto each = static_cast<std::size_t>(columns.look_back() + columns.horizon());
  return rows < each ? 0 : rows - each + 1;
}

Dataset internal::stream_csv(std::shared_ptr<const CsvColumns> columns, const CsvPart& part) {
  const std::size_t examples = csv_examples_of(*columns, part);
  return Dataset(std::make_shared<CsvNode>(std::move(columns), part, examples));
}

namespace {

// Rows of these tensors, or windows over them.
Dataset rows_of(const CsvColumns& columns, std::shared_ptr<const LazyTensors> tensors, std::size_t rows) {
  if (columns.look_back() == 0) return Dataset(make_lazy_rows(std::move(tensors), rows));
  return Dataset(
      make_lazy_windows(std::move(tensors), rows, {.look_back = columns.look_back(), .horizon = columns.horizon()}));
}

}  // namespace

Dataset internal::hold_csv(const std::shared_ptr<const CsvColumns>& columns, const CsvPart& part,
                           const CsvColumns::Progress& progress) {
  const std::size_t rows = csv_rows_of(*columns, part);
  const std::size_t bytes = whole_blocks(rows * columns->num_features() * sizeof(float)) +
                            whole_blocks(rows * columns->num_targets() * sizeof(float));
  const auto tensors = std::make_shared<LazyTensors>(bytes, [columns, part, rows, progress] {
    Example table = read_csv_rows(columns, part, rows, progress);
    if (columns->num_targets() == 0) table.targets.clear();
    return table;
  });
  return rows_of(*columns, tensors, rows);
}

Dataset Dataset::from_csv(const std::string& path, const CsvOptions& options) {
  const auto columns = std::make_shared<const CsvColumns>(path, options);
  if (options.stream) return stream_csv(columns, {});
  const Untracked outside;
  Example table = read_csv_rows(columns, {}, columns->num_rows());  // The caller's own, as other files are.
  if (columns->num_targets() == 0) table.targets.clear();
  return rows_of(*columns, std::make_shared<LazyTensors>(0, [table] { return table; }), columns->num_rows());
}

}  // namespace plimsoll
