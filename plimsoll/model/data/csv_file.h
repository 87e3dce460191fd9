// CsvFile: a CSV file, scanned once, to train with as a whole or as a stream.
//
//   CsvLook look = look_at_csv("houses.csv");                  // Names and kinds of its columns, from its first lines.
//   CsvFile file("houses.csv", {.targets = {"price"}});        // One pass: counts rows, learns categories.
//   file.set_scales(scales_of(file.measure()));                // A second one: mean and deviation of each column.
//   Dataset held = file.held(), streamed = file.streamed();    // The same examples.
//   CsvPart train = {.to = 0.8}, test = {.from = 0.8};         // Fractions of the rows, selected by their numbers.
//
// A pass takes no memory that grows with the file, except for the texts of categories. `held` is loaded by the first
// pass over it, on that pass's budget; `streamed` is read again in each pass.
// Throws as load_csv does. Thread safety: const methods may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/model/data/dataset.h"

namespace plimsoll {
namespace internal {
class CsvColumns;
}  // namespace internal

enum class CsvKind : unsigned char { kEmpty, kNumber, kDate, kText };
struct CsvLookColumn {
  std::string name;  // Its number, from 0, when there is no header.
  CsvKind kind = CsvKind::kEmpty;
};
struct CsvLook {
  bool has_header = false;
  std::vector<CsvLookColumn> columns;
};
// From the first thousand lines. `header`: as in CsvOptions; by default a first line is a header if it has text above a
// number or a date, or one of `names`.
PLIMSOLL_API CsvLook look_at_csv(const std::string& path, std::optional<bool> header = {},
                                 const std::vector<std::string>& names = {});

// A part of the rows: those with these numbers whose draw, a number in [0, 1) that depends only on `seed` and the row's
// number, is in [from, to).
struct CsvPart {
  std::int64_t begin = 0, end = INT64_MAX;
  double from = 0, to = 1;
  std::uint64_t seed = 0;

  PLIMSOLL_API bool has(std::int64_t row) const noexcept;
};

struct CsvStatistics {
  std::string column;
  double mean = 0, deviation = 0, smallest = 0, largest = 0;  // Of the values that are present.
  bool is_whole = true;                                       // All of them are whole numbers.
  bool is_category = false, is_target = false;
  bool ascends = true;  // Each is at least the previous one.
};

class PLIMSOLL_API CsvFile {
 public:
  // Called now and then during a pass with the fraction of the file read so far, 0 to 1.
  using Progress = std::function<void(double)>;

  CsvFile(const std::string& path, const CsvOptions& options, Progress progress = {});

  // What load_csv reports, without its tensors.
  CsvTable described() const;
  std::size_t num_rows() const noexcept;
  std::size_t num_examples(const CsvPart& part = {}) const;  // Rows, or windows over them.
  std::size_t row_bytes() const noexcept;                    // Of one row of features and targets.
  // Features, then targets, as they are in the file.
  std::vector<CsvStatistics> measure(const CsvPart& part = {}) const;
  void set_scales(const std::vector<CsvScale>& scales);  // For datasets made from now on.

  Dataset held(const CsvPart& part = {}) const;
  Dataset streamed(const CsvPart& part = {}) const;

 private:
  std::shared_ptr<const CsvColumns> columns_;
  Progress progress_;
};

}  // namespace plimsoll
