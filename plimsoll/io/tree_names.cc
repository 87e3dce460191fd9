#include "plimsoll/io/tree_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kMaxParts = 64;

void collect(const TensorTree& tree, const std::string& name, std::vector<NamedLeaf>& leaves) {
  if (tree.is_tensor()) {
    leaves.emplace_back(name, tree.tensor());
    return;
  }
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const std::string part = tree.is_map() ? tree.keys()[i] : std::to_string(i);
    collect(tree[i], name.empty() ? part : fmt::format("{}/{}", name, part), leaves);
  }
}

// Whether every name can be split at its slashes, none being the beginning of another. `leaves` are sorted by name.
bool can_nest(const std::vector<NamedLeaf>& leaves) {
  for (const auto& [name, tensor] : leaves) {
    if (name.empty() || name.front() == '/' || name.back() == '/' || name.find("//") != std::string::npos) return false;
    if (std::count(name.begin(), name.end(), '/') >= static_cast<std::ptrdiff_t>(kMaxParts)) return false;
    const std::string below = name + "/";
    const auto next =
        std::lower_bound(leaves.begin(), leaves.end(), below,
                         [](const NamedLeaf& leaf, const std::string& text) { return leaf.first < text; });
    if (next != leaves.end() && next->first.starts_with(below)) return false;
  }
  return true;
}

// The leaves [begin, end), whose names agree in the first `skip` characters.
TensorTree nest(std::span<const NamedLeaf> leaves, std::size_t skip) {
  std::vector<std::pair<std::string, TensorTree>> children;
  for (std::size_t begin = 0; begin < leaves.size();) {
    const std::string_view rest = std::string_view(leaves[begin].first).substr(skip);
    const std::size_t slash = rest.find('/');
    if (slash == std::string_view::npos) {
      children.emplace_back(rest, leaves[begin++].second);
      continue;
    }
    const std::string_view part = rest.substr(0, slash + 1);
    std::size_t end = begin;
    while (end < leaves.size() && std::string_view(leaves[end].first).substr(skip).starts_with(part)) ++end;
    children.emplace_back(part.substr(0, slash), nest(leaves.subspan(begin, end - begin), skip + slash + 1));
    begin = end;
  }
  std::vector<const TensorTree*> positions(children.size());
  for (const auto& [key, child] : children) {
    std::size_t position = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), position);
    const bool is_number = error == std::errc() && end == key.data() + key.size() && key == std::to_string(position);
    if (is_number && position < positions.size()) positions[position] = &child;
  }
  TensorTree tree;
  if (std::find(positions.begin(), positions.end(), nullptr) == positions.end())
    for (const TensorTree* child : positions) tree.append(*child);
  else
    for (auto& [key, child] : children) tree.insert(key, std::move(child));
  return tree;
}

}  // namespace

std::vector<NamedLeaf> tree_names(const TensorTree& tree, const char* where) {
  if (tree.is_tensor())
    throw InvalidArgument(fmt::format("{}: a single tensor has no name; give a map: {{{{\"x\", tensor}}}}", where));
  std::vector<NamedLeaf> leaves;
  collect(tree, "", leaves);
  std::vector<std::string_view> names;
  for (const NamedLeaf& leaf : leaves) names.push_back(leaf.first);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    throw InvalidArgument(fmt::format("{}: two tensors of the tree have the name \"{}\"; rename one", where, *twice));
  return leaves;
}

TensorTree tree_from_names(std::vector<NamedLeaf> leaves) {
  std::sort(leaves.begin(), leaves.end(), [](const NamedLeaf& a, const NamedLeaf& b) { return a.first < b.first; });
  if (can_nest(leaves)) return nest(leaves, 0);
  TensorTree flat;
  for (auto& [name, tensor] : leaves) flat.insert(name, tensor);
  return flat;
}

}  // namespace plimsoll::internal
