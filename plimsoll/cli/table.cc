#include "plimsoll/cli/table.h"

#include <algorithm>

namespace plimsoll::internal {
namespace {

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, bool left) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return left ? text + space : space + text;
}

}  // namespace

void Table::add(std::vector<std::string> row) {
  row.resize(header_.size());
  rows_.push_back(std::move(row));
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> result;
  for (std::size_t column = 0; column < header_.size(); ++column) {
    std::size_t width = width_of(header_[column]);
    for (const auto& row : rows_) width = std::max(width, width_of(row[column]));
    result.push_back(width);
  }
  return result;
}

std::string Table::text() const {
  const std::vector<std::size_t> width = widths();
  const auto left = [&](std::size_t column) { return column == 0 || header_[column].empty(); };
  std::string result;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t column = 0; column < cells.size(); ++column)
      text += (column == 0 ? "" : "  ") + padded(cells[column], width[column], left(column));
    text.erase(text.find_last_not_of(' ') + 1);
    result += text + '\n';
  };
  line(header_);
  for (const auto& row : rows_) line(row);
  return result;
}

std::string Table::markdown() const {
  const std::vector<std::size_t> width = widths();
  const auto left = [&](std::size_t column) { return column == 0 || header_[column].empty(); };
  std::string result;
  const auto line = [&](const std::vector<std::string>& cells) {
    for (std::size_t column = 0; column < cells.size(); ++column)
      result += "| " + padded(cells[column], width[column], left(column)) + " ";
    result += "|\n";
  };
  line(header_);
  for (std::size_t column = 0; column < header_.size(); ++column)
    result +=
        left(column) ? "|" + std::string(width[column] + 2, '-') : "|" + std::string(width[column] + 1, '-') + ":";
  result += "|\n";
  for (const auto& row : rows_) line(row);
  return result;
}

}  // namespace plimsoll::internal
