#include "plimsoll/tensor/growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <unordered_map>
#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/call_site.h"
#include "plimsoll/tensor/ledger_text.h"

namespace plimsoll {
namespace {

// Names are compared by address while threads wait, by text afterwards.
struct Key {
  const char* op;
  const char* scope;
  std::uint32_t site;
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    const auto mix = [](std::size_t hash, std::size_t value) { return (hash ^ value) * 0x9e3779b97f4a7c15u; };
    const std::hash<const char*> address;
    return mix(mix(mix(0, address(key.op)), address(key.scope)), key.site);
  }
};

Key key_of(const LedgerRow& row) {
  if (row.record) return {row.record->op(), row.record->scope(), row.record->site()};
  const BlockLabel* label = LedgerWalk::label_of(*row.storage);
  return label ? Key{label->op, label->scope, label->site} : Key{"buffer", "", 0};
}

std::string signed_bytes(std::int64_t bytes) {
  return (bytes < 0 ? "-" : "") + format_bytes(static_cast<std::size_t>(bytes < 0 ? -bytes : bytes));
}

}  // namespace

Growth::Growth() : last_(look()) {}

Growth::Groups Growth::look() {
  std::unordered_map<Key, Sum, KeyHash> found;
  LedgerWalk::run([&](const LedgerRow& row) {
    Sum& sum = found[key_of(row)];
    ++sum.count;
    sum.bytes += static_cast<std::int64_t>(row.bytes);
  });
  Groups groups;
  for (const auto& [key, sum] : found) {
    Sum& group = groups[{key.op, key.scope, key.site}];
    group.count += sum.count;
    group.bytes += sum.bytes;
  }
  return groups;
}

std::vector<GrowthRow> Growth::take() {
  Groups now = look();
  std::vector<GrowthRow> rows;
  for (const auto& [key, sum] : now) {
    const auto before = last_.find(key);
    const Sum base = before == last_.end() ? Sum{} : before->second;
    const auto& [op, scope, site] = key;
    GrowthRow row{op, scope, site_text(site), static_cast<int>(sum.count - base.count), sum.bytes - base.bytes};
    if (row.count > 0 || row.bytes > 0) rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const GrowthRow& a, const GrowthRow& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.count > b.count;
  });
  last_ = std::move(now);
  return rows;
}

std::vector<GrowthRow> Growth::show() { return show(std::cout); }

std::vector<GrowthRow> Growth::show(std::ostream& out) {
  std::vector<GrowthRow> rows = take();
  if (rows.empty()) {
    out << "growth: nothing is more than at the last look\n";
    return rows;
  }
  std::size_t widest = std::string_view("operation").size();
  for (const GrowthRow& row : rows) widest = std::max(widest, row.op.size());
  out << fmt::format("{:>11}  {:>8}  {:<{}}  {}\n", "gained", "tensors", "operation", widest, "scope");
  for (const GrowthRow& row : rows)
    out << fmt::format("{:>11}  {:>+8}  {:<{}}  {}{}{}\n", signed_bytes(row.bytes), row.count, row.op, widest,
                       row.scope.empty() ? "-" : row.scope, row.site.empty() ? "" : ", ", row.site);
  return rows;
}

}  // namespace plimsoll
