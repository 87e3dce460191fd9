#include "plimsoll/memory/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "plimsoll/base/bytes.h"
#include "plimsoll/memory/arena.h"
#include "plimsoll/memory/arena_list.h"
#include "plimsoll/memory/budget_node.h"

namespace plimsoll::internal {
namespace {

struct Group {
  std::size_t bytes = 0, count = 0, largest = 0;
  BlockLabel label;  // The label of the largest block.
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

}  // namespace plimsoll::internal
