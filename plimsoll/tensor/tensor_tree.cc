#include "plimsoll/tensor/tensor_tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

#include "plimsoll/base/error.h"

namespace plimsoll {

TensorTree::TensorTree(std::initializer_list<Item> items) {
  const bool pairs =
      std::all_of(items.begin(), items.end(), [](const Item& item) { return item.kind_ == Item::Kind::kPair; });
  children_.reserve(items.size());
  for (const Item& item : items) {
    if (pairs) {
      insert(item.name_, item.tree_);
      continue;
    }
    if (item.kind_ != Item::Kind::kTree)
      throw InvalidArgument(
          fmt::format("TensorTree: the name \"{}\" stands in a list; a map is braces around pairs only, also around a "
                      "single one: {{{{\"{}\", tensor}}}}",
                      item.name_, item.name_));
    append(item.tree_);
  }
}

TensorTree::Item::Item(std::initializer_list<Item> items) {
  const auto is_tree = [](const Item& item) { return item.kind_ == Kind::kTree; };
  if (items.size() == 2 && items.begin()[0].kind_ == Kind::kName && is_tree(items.begin()[1])) {
    kind_ = Kind::kPair;
    name_ = items.begin()[0].name_;
    tree_ = items.begin()[1].tree_;
  } else {
    tree_ = TensorTree(items);
  }
}

std::string TensorTree::kind_name() const {
  if (is_tensor()) return "a tensor";
  if (is_map()) return fmt::format("a map of \"{}\"", fmt::join(keys_, "\", \""));
  return fmt::format("a list of {}", children_.size());
}

bool TensorTree::contains(std::string_view key) const noexcept {
  return std::binary_search(keys_.begin(), keys_.end(), key);
}

std::size_t TensorTree::find(std::string_view key) const {
  if (!is_map() && !(is_list() && children_.empty()))
    throw InvalidArgument(fmt::format("TensorTree: key \"{}\" of {}; give a position", key, kind_name()));
  const auto place = std::lower_bound(keys_.begin(), keys_.end(), key);
  if (place == keys_.end() || *place != key)
    throw NotFound(fmt::format("TensorTree: there is no \"{}\"; this is {}", key, kind_name()));
  return static_cast<std::size_t>(place - keys_.begin());
}

std::size_t TensorTree::check(std::size_t position) const {
  if (is_tensor()) throw InvalidArgument(fmt::format("TensorTree: position {} of a tensor; use tensor()", position));
  if (position >= children_.size())
    throw InvalidArgument(fmt::format("TensorTree: there is no position {}; this is {}", position, kind_name()));
  return position;
}

const Tensor& TensorTree::tensor() const {
  if (!is_tensor()) throw InvalidArgument(fmt::format("TensorTree: tensor() of {}; index it first", kind_name()));
  return tensor_;
}

void TensorTree::insert(std::string_view key, TensorTree tree) {
  if (!is_map() && !(is_list() && children_.empty()))
    throw InvalidArgument(fmt::format("TensorTree: insert \"{}\" into {}; only maps have keys", key, kind_name()));
  const auto place = std::lower_bound(keys_.begin(), keys_.end(), key);
  if (place != keys_.end() && *place == key)
    throw InvalidArgument(fmt::format("TensorTree: \"{}\" is there already; assign to it", key));
  const auto position = place - keys_.begin();
  if (children_.size() == children_.capacity())
    children_.reserve(2 * children_.size() + 1);  // This may throw, the next line cannot.
  keys_.emplace(place, key);
  children_.insert(children_.begin() + position, std::move(tree));
  kind_ = Kind::kMap;
}

void TensorTree::append(TensorTree tree) {
  if (!is_list()) throw InvalidArgument(fmt::format("TensorTree: append to {}; only lists grow so", kind_name()));
  children_.push_back(std::move(tree));
}

void TensorTree::for_each(FunctionRef<void(const Tensor&)> f) const {
  if (is_tensor()) return f(tensor_);
  for (const TensorTree& child : children_) child.for_each(f);
}

std::vector<Tensor> TensorTree::flatten() const {
  std::vector<Tensor> leaves;
  for_each([&](const Tensor& tensor) { leaves.push_back(tensor); });
  return leaves;
}

TensorTree TensorTree::map_leaves(FunctionRef<Tensor(const Tensor&)> f) const {
  if (is_tensor()) return f(tensor_);
  TensorTree result;
  result.kind_ = kind_;
  result.keys_ = keys_;
  result.children_.reserve(children_.size());
  for (const TensorTree& child : children_) result.children_.push_back(child.map_leaves(f));
  return result;
}

TensorTree TensorTree::with_leaves(std::span<const Tensor> leaves) const {
  if (const std::size_t places = num_tensors(); places != leaves.size())
    throw InvalidArgument(
        fmt::format("TensorTree: {} tensors for a tree of {}; give as many as flatten() does", leaves.size(), places));
  std::size_t next = 0;
  return map_leaves([&](const Tensor&) { return leaves[next++]; });
}

std::size_t TensorTree::num_tensors() const noexcept {
  std::size_t count = 0;
  for_each([&](const Tensor&) { ++count; });
  return count;
}

std::size_t TensorTree::nbytes() const noexcept {
  std::size_t bytes = 0;
  for_each([&](const Tensor& tensor) { bytes += tensor.nbytes(); });
  return bytes;
}

bool TensorTree::same_structure(const TensorTree& other) const noexcept {
  return kind_ == other.kind_ && keys_ == other.keys_ &&
         std::equal(children_.begin(), children_.end(), other.children_.begin(), other.children_.end(),
                    [](const TensorTree& a, const TensorTree& b) { return a.same_structure(b); });
}

void TensorTree::append_text(std::string& out) const {
  if (is_tensor()) {
    out += tensor_.is_empty_handle()
               ? "none"
               : fmt::format("{}{}{}", dtype_name(tensor_.dtype()), tensor_.shape().to_tuple_string(),
                             tensor_.is_disposed() ? " disposed" : "");
    return;
  }
  out += is_map() ? '{' : '[';
  for (std::size_t i = 0; i < children_.size(); ++i) {
    if (i > 0) out += ", ";
    if (is_map()) out += fmt::format("\"{}\": ", keys_[i]);
    children_[i].append_text(out);
  }
  out += is_map() ? '}' : ']';
}

std::string TensorTree::to_string() const {
  std::string out;
  append_text(out);
  return out;
}

std::ostream& operator<<(std::ostream& out, const TensorTree& tree) { return out << tree.to_string(); }

}  // namespace plimsoll
