#include "plimsoll/io/tree_names.h"

#include "plimsoll/io/io_testing.h"

namespace plimsoll {
namespace {

TensorTree again(const TensorTree& tree) { return tree_from_names(tree_names(tree, "test")); }

TEST(TreeNames, NameEveryTensorAndRebuildTheTree) {
  const Tensor x = tensor_of<float>({1}, {1}), y = tensor_of<float>({1}, {2});
  const TensorTree tree = {{"w", x}, {"layers", {x, {{"a", y}, {"b", x}}}}};
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tree_names(tree, "test")) names.push_back(name);
  EXPECT_THAT(names, testing::ElementsAre("layers/0", "layers/1/a", "layers/1/b", "w"));
  EXPECT_TRUE(again(tree).same_structure(tree));
  TensorTree list;
  for (int i = 0; i < 12; ++i) list.append(i % 2 ? x : y);  // "10" comes before "2" among names.
  EXPECT_TRUE(again(list).same_structure(list));
  EXPECT_EQ(again(list)[11].tensor().id(), x.id());
  EXPECT_TRUE(again(TensorTree()).is_list());
}

TEST(TreeNames, StayWholeWhereTheyCannotBeSplit) {
  const Tensor x = tensor_of<float>({1}, {1});
  for (const std::vector<std::string>& names :
       std::vector<std::vector<std::string>>{{"a", "a/b"}, {"/a"}, {"a//b"}, {"a/"}, {""}, {"a", "a-", "a/b/c"}}) {
    std::vector<NamedLeaf> leaves;
    for (const std::string& name : names) leaves.emplace_back(name, x);
    const TensorTree tree = tree_from_names(leaves);
    EXPECT_EQ(tree.size(), names.size()) << names[0];
    EXPECT_TRUE(tree.contains(names.back())) << names[0];
  }
  std::string deep = "a";
  for (int i = 0; i < 100000; ++i) deep += "/a";
  EXPECT_TRUE(tree_from_names({{deep, x}}).contains(deep));
  EXPECT_TRUE(tree_from_names({{"1", x}, {"2", x}}).is_map());
  EXPECT_TRUE(tree_from_names({{"00", x}}).is_map());
  EXPECT_TRUE(tree_from_names({{"99999999999999999999", x}}).is_map());
}

TEST(TreeNames, RefuseTensorsWithoutAndWithEqualNames) {
  const Tensor x = tensor_of<float>({1}, {1});
  EXPECT_THROW(tree_names(x, "test"), InvalidArgument);
  EXPECT_THROW(tree_names({{"a/b", x}, {"a", {{"b", x}, {"c", x}}}}, "test"), InvalidArgument);
}

}  // namespace
}  // namespace plimsoll
