#include "plimsoll/memory/holders.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/arena_list.h"
#include "plimsoll/memory/budget_node.h"

namespace plimsoll {
namespace {

struct Group {
  std::size_t bytes = 0, count = 0, largest = 0;
  BlockLabel label;  // Of the largest block.
};

bool charged_to(const Chunk& chunk, const BudgetNode& budget) {
  for (const BudgetNode* node = chunk.budget; node; node = node->parent())
    if (node == &budget) return true;
  return false;
}

std::string shape_text(const BlockLabel& label) {
  if (!label.has_shape) return "";
  std::string text = "[";
  for (std::size_t i = 0; i < std::min<std::size_t>(label.rank, BlockLabel::kSizes); ++i)
    text += fmt::format("{}{}", i ? ", " : "", label.sizes[i]);
  return text + (label.rank > BlockLabel::kSizes ? ", ...]" : "]");
}

}  // namespace

std::vector<MemoryHolder> find_holders(const Arena& arena, const BudgetNode* budget) {
  std::map<std::tuple<std::string_view, std::string_view, Category>, Group> groups;
  const auto add = [&](const Chunk& chunk) {
    if (budget && !charged_to(chunk, *budget)) return;
    Group& group = groups[{chunk.label.op, chunk.label.scope, chunk.label.category}];
    group.bytes += chunk.size;
    ++group.count;
    if (chunk.size < group.largest) return;
    group.largest = chunk.size;
    group.label = chunk.label;
  };
  if (budget)
    ArenaList::instance().for_each([&](const Arena& any) { any.for_each_live(add); });
  else
    arena.for_each_live(add);
  std::vector<MemoryHolder> holders;
  for (const auto& [key, group] : groups)
    holders.push_back({group.label.op, group.label.scope, category_name(group.label.category), shape_text(group.label),
                       group.bytes, group.count});
  std::stable_sort(holders.begin(), holders.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  constexpr std::size_t kShown = 10;
  if (holders.size() > kShown) holders.resize(kShown);
  return holders;
}

std::string describe_refusal(const std::string& who, const BlockLabel& label, const OutOfMemoryDetails& details) {
  std::string text =
      fmt::format("{}: cannot allocate {} for \"{}\"", who, format_bytes_exactly(details.requested), label.op);
  if (*label.scope) text += fmt::format(" in scope \"{}\"", label.scope);
  text += fmt::format("; used {} of {}", format_bytes(details.in_use), format_bytes_exactly(details.limit));
  for (std::size_t i = 0; i < std::min<std::size_t>(details.holders.size(), 3); ++i) {
    const MemoryHolder& holder = details.holders[i];
    text +=
        fmt::format("{} {} x \"{}\"{} {}", i ? "," : "; held by", holder.count, holder.op,
                    holder.scope.empty() ? "" : fmt::format(" in \"{}\"", holder.scope), format_bytes(holder.bytes));
  }
  text += "; tried to";
  for (std::size_t i = 0; i < details.tried.size(); ++i)
    text += fmt::format("{} {} ({})", i ? "," : "", details.tried[i].name, format_bytes(details.tried[i].bytes_freed));
  text += fmt::format("; it takes a limit of at least {}", format_bytes_exactly(details.smallest_sufficient_limit));
  constexpr std::size_t kSuspicious = 64_KiB;  // Who writes so small a number may have meant another unit.
  if (details.limit <= kSuspicious) text += fmt::format("; limits are in bytes: did you mean {}_MiB?", details.limit);
  return text;
}

}  // namespace plimsoll
