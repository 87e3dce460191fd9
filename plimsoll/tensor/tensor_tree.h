// TensorTree: tensors in nested lists and maps: the parameters of a model, the state of a loop, the contents of a file.
//
//   TensorTree tree = {{"w", w}, {"layers", {x, y}}};     // a map: every element is a pair that begins with a name
//   TensorTree list = {x, y};                              // otherwise a list
//   tree["layers"][1].tensor();                            // y
//   tree.flatten();                                        // {x, y, w}: maps in the order of their keys
//   tree.map([](const Tensor& t) { return t * 2.f; });     // the same structure, other tensors
//
// A copy has the same tensors; copy with `=`, since braces around a tree make a list of one. Trees can be returned from
// tidy and disposed of. Thread safety: a value, like any other. Cost: 64 bytes for each node, a binary search for each
// name.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/base/function_ref.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll {

class PLIMSOLL_API TensorTree {
 public:
  class Item;

  TensorTree() noexcept = default;  // An empty list; the first insert() makes it a map.
  template <class T>
  requires(std::convertible_to<const T&, Tensor> && !std::derived_from<T, TensorTree>) TensorTree(const T& tensor)
      : kind_(Kind::kTensor), tensor_(tensor) {}
  // Throws InvalidArgument for a name that does not begin a pair and for the same name twice.
  TensorTree(std::initializer_list<Item> items);

  bool is_tensor() const noexcept { return kind_ == Kind::kTensor; }
  bool is_list() const noexcept { return kind_ == Kind::kList; }
  bool is_map() const noexcept { return kind_ == Kind::kMap; }
  std::size_t size() const noexcept { return is_tensor() ? 1 : children_.size(); }  // At this level.
  const std::vector<std::string>& keys() const noexcept { return keys_; }           // Of a map, in order.
  bool contains(std::string_view key) const noexcept;

  // Throw NotFound for a missing key, naming those that exist, and InvalidArgument for a position out of range, for a
  // key when this is not a map and for a position in a tensor. Maps have positions too, in the order of their keys.
  const TensorTree& operator[](std::string_view key) const { return children_[find(key)]; }
  TensorTree& operator[](std::string_view key) { return children_[find(key)]; }
  const TensorTree& operator[](std::size_t position) const { return children_[check(position)]; }
  TensorTree& operator[](std::size_t position) { return children_[check(position)]; }
  const Tensor& tensor() const;  // Throws InvalidArgument unless this is a leaf.

  // Throws InvalidArgument for an existing key, and when this is neither a map nor empty.
  void insert(std::string_view key, TensorTree tree);
  void append(TensorTree tree);  // Throws InvalidArgument unless this is a list.

  std::vector<Tensor> flatten() const;  // All tensors, depth first.
  // The same structure with other tensors. Throws InvalidArgument when there are more or fewer than the tree has.
  TensorTree with_leaves(std::span<const Tensor> leaves) const;
  template <class F>
  TensorTree map(F&& f) const {
    return map_leaves([&f](const Tensor& tensor) -> Tensor { return f(tensor); });
  }
  void for_each(FunctionRef<void(const Tensor&)> f) const;  // In the order of flatten().

  std::size_t num_tensors() const noexcept;
  std::size_t nbytes() const noexcept;                          // Of all tensors together.
  bool same_structure(const TensorTree& other) const noexcept;  // Lists, maps and keys; not the tensors.
  std::string to_string() const;                                // {"layers": [float32(3,), int32()], "w": ...}
  friend PLIMSOLL_API std::ostream& operator<<(std::ostream& out, const TensorTree& tree);

  template <class F>
  friend void visit_tensors(const TensorTree& tree, F&& f) {
    tree.for_each([&f](const Tensor& tensor) { f(tensor); });
  }

 private:
  enum class Kind : unsigned char { kList, kMap, kTensor };

  std::size_t find(std::string_view key) const;
  std::size_t check(std::size_t position) const;
  std::string kind_name() const;
  TensorTree map_leaves(FunctionRef<Tensor(const Tensor&)> f) const;
  void append_text(std::string& out) const;

  Kind kind_ = Kind::kList;
  Tensor tensor_;
  std::vector<TensorTree> children_;
  std::vector<std::string> keys_;  // A map's keys, sorted.
};

// An item of the braces that construct a tree: a tree, a name, or more braces.
class PLIMSOLL_API TensorTree::Item {
 public:
  template <class T>
  requires(std::convertible_to<const T&, TensorTree> && !std::derived_from<T, Item>) Item(const T& tree)
      : tree_(tree) {}
  template <class T>
  requires(std::convertible_to<const T&, std::string_view>) Item(const T& name)
      : kind_(Kind::kName), name_(std::string_view(name)) {}
  Item(std::initializer_list<Item> items);

 private:
  friend class TensorTree;
  enum class Kind : unsigned char { kTree, kName, kPair };

  Kind kind_ = Kind::kTree;
  std::string name_;
  TensorTree tree_;
};

}  // namespace plimsoll
