#include "plimsoll/tensor/tensor_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "plimsoll/base/error.h"
#include "plimsoll/tensor/memory_info.h"
#include "plimsoll/tensor/tensor_testing.h"
#include "plimsoll/tensor/tidy.h"

namespace plimsoll {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Converts to a tensor, as variables do.
struct Convertible {
  operator Tensor() const { return tensor; }
  Tensor tensor;
};

class Tree : public testing::Test {
 protected:
  const Tensor a_ = tensor_of<int>(Shape::scalar(), {2});
  const Tensor b_ = tensor_of<float>({3}, {1, 2, 3});
  const Tensor c_ = tensor_of<float>({2, 2}, {1, 2, 3, 4});
  const TensorTree tree_ = {{"w", c_}, {"layers", {b_, a_}}};

  static std::vector<std::uint64_t> ids(const std::vector<Tensor>& tensors) {
    std::vector<std::uint64_t> result;
    for (const Tensor& tensor : tensors) result.push_back(tensor.id());
    return result;
  }
};

TEST_F(Tree, IsMadeOfBraces) {
  EXPECT_TRUE(tree_.is_map());
  EXPECT_EQ(tree_.size(), 2u);
  EXPECT_THAT(tree_.keys(), ElementsAre("layers", "w"));
  EXPECT_TRUE(tree_["layers"].is_list());
  EXPECT_EQ(tree_["layers"].size(), 2u);
  EXPECT_EQ(tree_["layers"][0].tensor().id(), b_.id());
  EXPECT_EQ(tree_["layers"][1].tensor().id(), a_.id());
  EXPECT_EQ(tree_["w"].tensor().id(), c_.id());
  EXPECT_TRUE(tree_.contains("w"));
  EXPECT_FALSE(tree_.contains("b"));
}

TEST_F(Tree, TakesEveryShapeOfBraces) {
  const TensorTree leaf = c_, list = {a_, b_}, one = {a_}, empty = {}, pair = {{"w", c_}}, lists = {{a_, b_}, {c_}};
  EXPECT_EQ(leaf.to_string(), "float32(2, 2)");
  EXPECT_EQ(list.to_string(), "[int32(), float32(3,)]");
  EXPECT_EQ(one.to_string(), "[int32()]");
  EXPECT_EQ(empty.to_string(), "[]");
  EXPECT_EQ(pair.to_string(), "{\"w\": float32(2, 2)}");
  EXPECT_EQ(lists.to_string(), "[[int32(), float32(3,)], [float32(2, 2)]]");
  const std::string name = "named";
  const TensorTree deep = {{name, {{"x", {a_}}, {"y", {}}, {std::string_view("z"), pair}}}};
  EXPECT_EQ(deep.to_string(), "{\"named\": {\"x\": [int32()], \"y\": [], \"z\": {\"w\": float32(2, 2)}}}");
  const Convertible variable{b_};
  const TensorTree mixed = {{"v", variable}, {"list", {variable, a_}}}, single = variable;
  EXPECT_EQ(mixed.to_string(), "{\"list\": [float32(3,), int32()], \"v\": float32(3,)}");
  EXPECT_EQ(single.tensor().id(), b_.id());
}

TEST_F(Tree, RefusesNamesThatNameNothing) {
  EXPECT_THAT(([&] { TensorTree({"w", c_}); }), ThrowsMessage<InvalidArgument>(HasSubstr("\"w\"")));
  EXPECT_THROW((TensorTree{{"w", c_}, b_}), InvalidArgument);
  EXPECT_THROW((TensorTree{{"w", "v"}}), InvalidArgument);
  EXPECT_THROW((TensorTree{{"w", {"v", c_}}}), InvalidArgument);
  EXPECT_THAT(([&] { TensorTree({{"w", c_}, {"w", b_}}); }), ThrowsMessage<InvalidArgument>(HasSubstr("\"w\"")));
}

TEST_F(Tree, CopiesWithEqualsAndSharesTensors) {
  TensorTree copy = tree_;
  EXPECT_TRUE(copy.same_structure(tree_));
  copy["w"] = a_;
  EXPECT_EQ(copy["w"].tensor().id(), a_.id());
  EXPECT_EQ(tree_["w"].tensor().id(), c_.id());
}

TEST_F(Tree, SaysWhatThereIsWhenAnIndexFails) {
  EXPECT_THAT([&] { tree_["bias"]; }, ThrowsMessage<NotFound>(HasSubstr("\"layers\", \"w\"")));
  EXPECT_THAT([&] { tree_["layers"][2]; }, ThrowsMessage<InvalidArgument>(HasSubstr("a list of 2")));
  EXPECT_THAT([&] { tree_["layers"][-1]; }, ThrowsMessage<InvalidArgument>(HasSubstr("a list of 2")));
  EXPECT_THAT([&] { tree_["layers"]["w"]; }, ThrowsMessage<InvalidArgument>(HasSubstr("a list of 2")));
  EXPECT_THAT([&] { tree_["w"]["x"]; }, ThrowsMessage<InvalidArgument>(HasSubstr("a tensor")));
  EXPECT_THROW(tree_["w"][0], InvalidArgument);
  EXPECT_THAT([&] { tree_.tensor(); }, ThrowsMessage<InvalidArgument>(HasSubstr("\"layers\", \"w\"")));
  EXPECT_THROW(TensorTree()["x"], NotFound);
}

TEST_F(Tree, FlattensMapsInTheOrderOfTheirKeys) {
  EXPECT_THAT(ids(tree_.flatten()), ElementsAre(b_.id(), a_.id(), c_.id()));
  const TensorTree same = {{"layers", {b_, a_}}, {"w", c_}};
  EXPECT_EQ(ids(same.flatten()), ids(tree_.flatten()));
  EXPECT_EQ(tree_.num_tensors(), 3u);
  EXPECT_EQ(tree_.nbytes(), 12u + 4u + 16u);
  EXPECT_EQ(tree_[0][0].tensor().id(), b_.id());
}

TEST_F(Tree, TakesOtherLeavesInItsStructure) {
  const std::vector<Tensor> leaves = {c_, c_, a_};
  const TensorTree other = tree_.with_leaves(leaves);
  EXPECT_TRUE(other.same_structure(tree_));
  EXPECT_EQ(ids(other.flatten()), ids(leaves));
  EXPECT_THAT([&] { tree_.with_leaves(std::span(leaves).first(2)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("2 tensors for a tree of 3")));
}

Tensor as_view(const Tensor& tensor) { return make_view(tensor, "view", {1}, 0); }

TEST_F(Tree, MapsItsTensors) {
  const TensorTree views = tree_.map(as_view);
  EXPECT_TRUE(views.same_structure(tree_));
  EXPECT_EQ(views.to_string(), "{\"layers\": [float32(1,), int32(1,)], \"w\": float32(1,)}");
  int calls = 0;
  EXPECT_EQ(TensorTree(c_).map([&](Tensor tensor) { return ++calls, tensor; }).tensor().id(), c_.id());
  EXPECT_EQ(calls, 1);
}

TEST_F(Tree, ComparesStructureOnly) {
  const TensorTree other = {{"w", a_}, {"layers", {a_, a_}}};
  EXPECT_TRUE(other.same_structure(tree_));
  EXPECT_FALSE((TensorTree{{"v", a_}, {"layers", {a_, a_}}}).same_structure(tree_));
  EXPECT_FALSE((TensorTree{{"w", a_}, {"layers", {a_}}}).same_structure(tree_));
  EXPECT_FALSE((TensorTree{{"w", {a_}}, {"layers", {a_, a_}}}).same_structure(tree_));
}

TEST_F(Tree, GrowsByKeysOrByPositions) {
  TensorTree map, list;
  map.insert("b", b_);
  map.insert("a", {{"inner", a_}});
  EXPECT_EQ(map.to_string(), "{\"a\": {\"inner\": int32()}, \"b\": float32(3,)}");
  EXPECT_EQ(map["b"].tensor().id(), b_.id());
  EXPECT_THROW(map.insert("a", a_), InvalidArgument);
  EXPECT_THROW(map.append(a_), InvalidArgument);
  list.append(a_);
  list.append({b_, c_});
  EXPECT_EQ(list.to_string(), "[int32(), [float32(3,), float32(2, 2)]]");
  EXPECT_THROW(list.insert("a", a_), InvalidArgument);
  EXPECT_THROW(list[0].append(a_), InvalidArgument);
}

TEST_F(Tree, PrintsDisposedAndMissingTensors) {
  const TensorTree tree = {tensor_of<float>({2}, {1, 2}), Tensor()};
  dispose(tree);
  std::ostringstream out;
  out << tree;
  EXPECT_EQ(out.str(), "[float32(2,) disposed, none]");
}

TEST_F(Tree, ComesOutOfATidyAndIsDisposedWhole) {
  const std::size_t before = memory().num_tensors;
  const TensorTree made = tidy([] {
    const Tensor lost = some();
    return TensorTree{{"x", some()}, {"list", {some(), some()}}};
  });
  EXPECT_EQ(memory().num_tensors, before + 3);
  EXPECT_FALSE(made["list"][1].tensor().is_disposed());
  dispose(made);
  EXPECT_EQ(memory().num_tensors, before);
  EXPECT_TRUE(made["x"].tensor().is_disposed());
}

}  // namespace
}  // namespace plimsoll
