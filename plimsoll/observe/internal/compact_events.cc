#include "plimsoll/observe/internal/compact_events.h"

#include <algorithm>
#include <utility>

namespace plimsoll::internal {
namespace {

std::size_t hash_of(const TracedLabel& label) noexcept {
  std::size_t hash = 0;
  const auto mix = [&](std::size_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29; };
  for (const std::uint32_t value : {label.op, label.scope, label.name, label.budget, label.site}) mix(value);
  mix(static_cast<std::size_t>(label.category) | static_cast<std::size_t>(label.dtype) << 8 |
      static_cast<std::size_t>(label.rank) << 16 | static_cast<std::size_t>(label.has_shape) << 24 |
      static_cast<std::size_t>(label.is_unused) << 25);
  for (const std::uint32_t size : label.sizes) mix(size);
  return hash;
}

}  // namespace

std::uint32_t LabelSet::number_of(const TracedLabel& label) {
  if (2 * (labels_.size() + 1) > table_.size()) grow();
  const std::size_t mask = table_.size() - 1;
  std::size_t place = hash_of(label) & mask;
  for (; table_[place] != 0; place = (place + 1) & mask)
    if (labels_[table_[place] - 1] == label) return table_[place] - 1;
  labels_.push_back(label);
  table_[place] = static_cast<std::uint32_t>(labels_.size());
  return table_[place] - 1;
}

void LabelSet::grow() {
  table_.assign(std::max<std::size_t>(64, 2 * table_.size()), 0);
  const std::size_t mask = table_.size() - 1;
  for (std::uint32_t number = 0; number < labels_.size(); ++number) {
    std::size_t place = hash_of(labels_[number]) & mask;
    while (table_[place] != 0) place = (place + 1) & mask;
    table_[place] = number + 1;
  }
}

TracedLabel label_of(const TraceEvent& event) {
  TracedLabel label{.op = event.op,
                    .scope = event.scope,
                    .name = event.name,
                    .budget = event.budget,
                    .site = event.site,
                    .category = event.category,
                    .dtype = event.dtype,
                    .rank = event.rank,
                    .has_shape = event.has_shape};
  for (std::size_t i = 0; i < label.sizes.size(); ++i) label.sizes[i] = event.sizes[i];
  return label;
}

void CompactEvents::add(TraceEvent event) {
  CompactEvent compact{.time_ns = event.time_ns,
                       .block = event.block,
                       .size = event.size,
                       .requested = event.requested,
                       .offset = event.offset,
                       .thread = event.thread,
                       .arena = event.arena,
                       .kind = event.kind};
  switch (event.kind) {
    case TraceEventKind::kAllocate:
    case TraceEventKind::kExisting:
      compact.label = labels_.number_of(label_of(event));
      break;
    case TraceEventKind::kFree:
    case TraceEventKind::kCommitted:
    case TraceEventKind::kArenaEnded:
      break;
    default:
      compact.label = static_cast<std::uint32_t>(whole_.size());
      whole_.push_back(std::move(event));
  }
  all_.push_back(compact);
}

void CompactEvents::sort() {
  labels_.finish();
  const auto earlier = [](const CompactEvent& a, const CompactEvent& b) { return a.time_ns < b.time_ns; };
  if (!std::is_sorted(all_.begin(), all_.end(), earlier)) std::stable_sort(all_.begin(), all_.end(), earlier);
}

}  // namespace plimsoll::internal
