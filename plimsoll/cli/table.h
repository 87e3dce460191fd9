// Table: rows of text in aligned columns, for people or as Markdown.
//
//   Table table({"trace", "ns"});
//   table.add({"resnet18", "21.5"});
//   std::cout << table.text();       // or table.markdown()
//
// The first column and columns without a header are aligned left, the others right. Widths count characters, not bytes
// (UTF-8).
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll::internal {

class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}

  // Missing cells are empty; cells beyond the header are dropped.
  void add(std::vector<std::string> row);
  std::string text() const;
  std::string markdown() const;

 private:
  std::vector<std::size_t> widths() const;

  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace plimsoll::internal
