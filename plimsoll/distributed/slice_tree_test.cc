#include "plimsoll/distributed/slice_tree.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>

namespace plimsoll::distributed {
namespace {

std::string tree_text(std::size_t slices, int ranks) {
  const SliceTree tree(slices, ranks);
  const auto merge = [](std::string& left, const std::string& right) { left = "(" + left + "+" + right + ")"; };
  SliceSums<std::string> all(tree);
  for (int rank = 0; rank < ranks; ++rank) {
    SliceSums<std::string> own(tree);
    for (std::size_t slice = tree.begin(rank); slice < tree.end(rank); ++slice)
      own.add({slice, slice + 1, rank}, std::to_string(slice), merge);
    EXPECT_EQ(own.pieces(), tree.pieces(rank));
    for (std::size_t i = 0; i < own.pieces().size(); ++i) all.add(own.pieces()[i], own.values()[i], merge);
  }
  EXPECT_EQ(all.pieces().size(), 1u) << slices << " over " << ranks;
  return all.values()[0];
}

TEST(SliceTree, AddsInOneOrderForEveryNumberOfRanks) {
  EXPECT_EQ(tree_text(5, 1), "(((0+1)+(2+3))+4)");
  for (std::size_t slices = 1; slices <= 40; ++slices)
    for (int ranks = 2; ranks <= 9; ++ranks)
      EXPECT_EQ(tree_text(slices, ranks), tree_text(slices, 1)) << slices << " over " << ranks;
}

TEST(SliceTree, GivesEachSliceToOneRank) {
  const SliceTree tree(32, 7);
  EXPECT_EQ(tree.begin(0), 0u);
  for (int rank = 0; rank < 7; ++rank) {
    const std::size_t count = tree.end(rank) - tree.begin(rank);
    EXPECT_TRUE(count == 4 || count == 5);
  }
  EXPECT_EQ(tree.end(6), 32u);
}

TEST(SliceTree, HoldsALogarithmOfValues) {
  for (std::size_t each = 1; each <= 64; each *= 2)
    for (int ranks : {1, 2, 4, 8}) {
      const SliceTree tree(each * static_cast<std::size_t>(ranks), ranks);
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(tree.pieces(rank).size(), 1u);
        EXPECT_EQ(tree.most_held(rank), static_cast<std::size_t>(std::bit_width(each)));
      }
    }
}

}  // namespace
}  // namespace plimsoll::distributed
