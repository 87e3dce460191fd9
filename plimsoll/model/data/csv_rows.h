// Selected rows of a CSV file as tensors or datasets, shared by load_csv, Dataset::from_csv and CsvFile.
#pragma once

#include <cstddef>
#include <memory>

#include "plimsoll/model/data/csv_columns.h"
#include "plimsoll/model/data/csv_file.h"

namespace plimsoll::internal {

std::size_t csv_rows_of(const CsvColumns& columns, const CsvPart& part);
std::size_t csv_examples_of(const CsvColumns& columns, const CsvPart& part);  // Rows, or windows over them.
// Features and targets, f32 [rows, columns] each.
Example read_csv_rows(const std::shared_ptr<const CsvColumns>& columns, const CsvPart& part, std::size_t rows,
                      const CsvColumns::Progress& progress = {});
Dataset stream_csv(std::shared_ptr<const CsvColumns> columns, const CsvPart& part);
// Loaded by the first pass.
Dataset hold_csv(const std::shared_ptr<const CsvColumns>& columns, const CsvPart& part,
                 const CsvColumns::Progress& progress);

}  // namespace plimsoll::internal
