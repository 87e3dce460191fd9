// Names of the tensors in a tree, as stored in files: {"layers": [{"w": x}]} is "layers/0/w".
//
// tree_from_names() rebuilds the tree: names are split at "/", and a map of "0", "1", ... becomes a list. When a name
// is also the beginning of another, or has empty or more than 64 parts, all names stay whole, in one map. So a tree is
// restored unchanged, except that empty lists and maps disappear and keys with "/" or made of digits nest.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/tensor/tensor_tree.h"

namespace plimsoll::internal {

using NamedLeaf = std::pair<std::string, Tensor>;

// In the order of flatten(). Throws InvalidArgument for a tree that is a tensor (it has no name) and for two tensors of
// the same name.
PLIMSOLL_API std::vector<NamedLeaf> tree_names(const TensorTree& tree, const char* where);
PLIMSOLL_API TensorTree tree_from_names(std::vector<NamedLeaf> leaves);

}  // namespace plimsoll::internal
