#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/model/dataset.h"
#include "plimsoll/model/internal/csv_columns.h"
#include "plimsoll/model/internal/gzip_file.h"
#include "plimsoll/model/internal/rows.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

Tensor matrix(std::size_t rows, std::size_t columns) {
  return make_tensor({.op = "csv", .category = Category::kInputs},
                     {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)}, f32, current_device());
}

// One pass over a file.
class CsvPass {
 public:
  CsvPass(const std::string& path, char delimiter, const CsvColumns& columns)
      : file_(path), reader_([this](std::span<char> to) { return file_.read(to); }, path, delimiter) {
    columns.skip_header(reader_);
  }
  CsvReader& reader() noexcept { return reader_; }

 private:
  GzipFile file_;
  CsvReader reader_;
};

class CsvNode final : public DatasetNode, public std::enable_shared_from_this<CsvNode> {
 public:
  CsvNode(const std::string& path, const CsvOptions& options)
      : path_(path), delimiter_(options.delimiter), columns_(path, options) {}
  std::unique_ptr<ExampleStream> open() const override { return std::make_unique<Stream>(shared_from_this()); }
  std::optional<std::size_t> size() const override { return columns_.num_rows(); }
  HeldBytes held(const std::vector<std::size_t>&) const override { return {.at_once = true}; }

 private:
  class Stream final : public ExampleStream {
   public:
    explicit Stream(std::shared_ptr<const CsvNode> node)
        : node_(std::move(node)), pass_(node_->path_, node_->delimiter_, node_->columns_) {}
    bool next(Example& out) override {
      Example rows;
      if (next_rows(1, rows) == 0) return false;
      const OutsideScopes outside;
      out = {};
      out.inputs = {rows.x().reshape({-1})};
      if (!rows.targets.empty()) out.targets = {rows.y().reshape({-1})};
      return true;
    }
    std::size_t next_rows(std::size_t count, Example& out) override {
      const OutsideScopes outside;
      const CsvColumns& columns = node_->columns_;
      const Tensor x = matrix(count, columns.num_features()), y = matrix(count, columns.num_targets());
      float* to_x = writable(x).data<float>();
      float* to_y = writable(y).data<float>();
      std::size_t rows = 0;
      for (; rows < count && columns.read(pass_.reader(), to_x, to_y); ++rows) {
        to_x += columns.num_features();
        to_y += columns.num_targets();
      }
      if (rows == 0) return 0;
      const auto kept = static_cast<std::int64_t>(rows);
      out = {.inputs = {x.slice({0}, {kept})}, .targets = {}};
      if (columns.num_targets() > 0) out.targets = {y.slice({0}, {kept})};
      return rows;
    }

   private:
    const std::shared_ptr<const CsvNode> node_;
    CsvPass pass_;
  };

  const std::string path_;
  const char delimiter_;
  const CsvColumns columns_;
};

}  // namespace

CsvTable load_csv(const std::string& path, const CsvOptions& options) {
  const CsvColumns columns(path, options);
  CsvTable table{.features = matrix(columns.num_rows(), columns.num_features()),
                 .targets = matrix(columns.num_rows(), columns.num_targets()),
                 .feature_names = columns.names(false),
                 .target_names = columns.names(true),
                 .column_names = columns.all_names(),
                 .has_header = columns.has_header(),
                 .categories = columns.categories(),
                 .dropped_rows = columns.dropped_rows()};
  CsvPass pass(path, options.delimiter, columns);
  float* x = writable(table.features).data<float>();
  float* y = writable(table.targets).data<float>();
  for (std::size_t row = 0; row < columns.num_rows(); ++row) {
    if (!columns.read(pass.reader(), x, y)) pass.reader().corrupt("the file has changed while it was read");
    x += columns.num_features();
    y += columns.num_targets();
  }
  return table;
}

CsvCategories load_csv_categories(const std::string& path, const CsvOptions& options) {
  return CsvColumns(path, options).categories();
}

std::vector<std::string> load_csv_first_line(const std::string& path, char delimiter) {
  GzipFile file(path);
  CsvReader reader([&](std::span<char> to) { return file.read(to); }, path, delimiter);
  if (!reader.next()) throw Corruption(fmt::format("{}: has no lines", path));
  return reader.fields();
}

Dataset Dataset::from_csv(const std::string& path, const CsvOptions& options) {
  if (options.stream) return Dataset(std::make_shared<CsvNode>(path, options));
  const OutsideScopes outside;
  const CsvTable table = load_csv(path, options);
  return from_tensors(table.features, table.target_names.empty() ? Tensor() : table.targets);
}

}  // namespace plimsoll
