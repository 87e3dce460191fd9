#include "plimsoll/tensor/live_tensors.h"

#include <fmt/format.h>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/call_site.h"
#include "plimsoll/tensor/ledger_text.h"
#include "plimsoll/tensor/memory_info.h"

namespace plimsoll {
namespace {

// A label keeps only the leading sizes.
Shape shape_of(const BlockLabel& label) {
  if (!label.has_shape || label.rank > BlockLabel::kSizes) return {};
  std::vector<std::int64_t> sizes(label.sizes, label.sizes + label.rank);
  return Shape(sizes);
}

LiveTensor describe_buffer(const LedgerRow& row) {
  LiveTensor result;
  result.bytes = row.bytes;
  const BlockLabel* label = LedgerWalk::label_of(*row.storage);
  if (!label) {
    result.op = row.storage->is_wrapped() ? "wrap" : "buffer";
    result.category = category_name(Category::kOther);
    return result;
  }
  result.name = label->name;
  result.op = label->op;
  result.scope = label->scope;
  result.shape = shape_of(*label);
  result.dtype = static_cast<DType>(label->dtype);
  result.category = category_name(label->category);
  result.step = label->step;
  result.site = site_text(label->site);
  return result;
}

}  // namespace

LiveTensor internal::describe_row(const LedgerRow& row) {
  const TensorRecord* record = row.record;
  if (!record) return describe_buffer(row);
  return {.id = record->id,
          .name = record->name() ? record->name() : "",
          .op = record->op(),
          .scope = record->scope(),
          .shape = record->shape(),
          .dtype = record->dtype,
          .bytes = row.bytes,
          .category = category_name(record->category),
          .step = record->step,
          .site = site_text(record->site())};
}

std::string internal::row_text(const LiveTensor& row) {
  std::string out = row.op;
  if (row.shape.is_set()) out += fmt::format(" {} {}", row.shape.to_tuple_string(), dtype_name(row.dtype));
  out += fmt::format(", {}", format_bytes(row.bytes));
  if (!row.scope.empty()) out += fmt::format(", scope \"{}\"", row.scope);
  if (!row.name.empty()) out += fmt::format(", name \"{}\"", row.name);
  if (!row.site.empty()) out += fmt::format(", {}", row.site);
  return out;
}

std::vector<LiveTensor> live_tensors() {
  std::vector<LiveTensor> rows;
  const MemoryInfo now = memory();
  rows.reserve(now.num_tensors + now.num_tensors / 8 + 16);  // Mostly allocated before the others stop.
  LedgerWalk::run([&](const LedgerRow& row) { rows.push_back(describe_row(row)); });
  return rows;
}

}  // namespace plimsoll
