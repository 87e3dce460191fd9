#include "plimsoll/model/training/logs.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

template <class Entries>
[[noreturn]] void refuse(const char* where, std::string_view name, const Entries& entries) {
  std::string known;
  for (const auto& [key, value] : entries) known += known.empty() ? key : ", " + key;
  throw NotFound(fmt::format("{}: \"{}\" is not there; there are: {}", where, name, known));
}

}  // namespace

const float* Logs::find(std::string_view name) const noexcept {
  for (const auto& [key, value] : entries_)
    if (key == name) return &value;
  return nullptr;
}

float Logs::operator[](std::string_view name) const {
  const float* value = find(name);
  if (value == nullptr) refuse("logs", name, entries_);
  return *value;
}

void Logs::set(std::string_view name, float value) {
  for (auto& [key, old] : entries_) {
    if (key != name) continue;
    old = value;
    return;
  }
  entries_.emplace_back(name, value);
}

bool History::contains(std::string_view name) const noexcept {
  for (const auto& [key, values] : rows_)
    if (key == name) return true;
  return false;
}

const std::vector<float>& History::operator[](std::string_view name) const {
  for (const auto& [key, values] : rows_)
    if (key == name) return values;
  refuse("history", name, rows_);
}

std::vector<std::string> History::names() const {
  std::vector<std::string> result;
  for (const auto& [key, values] : rows_) result.push_back(key);
  return result;
}

void History::add(const Logs& epoch) {
  ++num_epochs_;
  for (const auto& [name, value] : epoch) {
    auto row = rows_.begin();
    while (row != rows_.end() && row->first != name) ++row;
    if (row == rows_.end()) row = rows_.insert(rows_.end(), {name, {}});
    row->second.push_back(value);
  }
}

}  // namespace plimsoll
