#include "plimsoll/base/shape.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <unordered_set>

#include "plimsoll/base/error.h"
#include "plimsoll/base/heap_count_testing.h"

namespace plimsoll {
namespace {

struct Options {
  Shape shape;
  std::string name;
};
Shape given(Options options = {}) { return options.shape; }
Shape take(Shape shape) { return shape; }

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(Shape, DistinguishesUnsetFromScalar) {
  EXPECT_FALSE(given().is_set());
  EXPECT_FALSE(given({.name = "x"}).is_set());
  EXPECT_EQ(given({.shape = {3}}), Shape({3}));
  EXPECT_EQ(given({.shape = {3, 4}, .name = "x"}).rank(), 2u);
  EXPECT_TRUE(Shape::scalar().is_set());
  EXPECT_TRUE(Shape::scalar().is_scalar());
  EXPECT_NE(Shape(), Shape::scalar());
  EXPECT_EQ(Shape().or_scalar(), Shape::scalar());
  EXPECT_EQ(Shape::scalar().size(), 1u);
  EXPECT_FALSE(take({}).is_set());
}

TEST(Shape, IsBuiltFromBracesVectorsAndSpansOfAnyInteger) {
  const std::size_t batch = 8;
  const std::vector<int> ints = {2, 3};
  const std::vector<std::int64_t> longs = {2, 3};
  EXPECT_EQ(take({batch, 4}), (Shape{8, 4}));
  EXPECT_EQ(take(ints), (Shape{2, 3}));
  EXPECT_EQ(take(longs), (Shape{2, 3}));
  EXPECT_EQ(Shape(std::span<const std::int64_t>(longs)), (Shape{2, 3}));
  EXPECT_EQ(Shape({0}).rank(), 1u);
  EXPECT_EQ(Shape{Shape{5}}, Shape({5}));
}

TEST(Shape, CountsElements) {
  EXPECT_EQ((Shape{2, 3, 4}).size(), 24u);
  EXPECT_EQ((Shape{2, 0, 4}).size(), 0u);
  EXPECT_EQ((Shape{2, 3}).num_elements(), 6u);
  EXPECT_EQ((Shape{Shape::kMostElements}).size(), static_cast<std::size_t>(Shape::kMostElements));
  EXPECT_THROW((Shape{Shape::kMostElements + 1}), InvalidArgument);
  EXPECT_THROW((Shape{INT64_MAX}), InvalidArgument);
  EXPECT_THROW((Shape{0, INT64_MAX}), InvalidArgument);
}

TEST(Shape, RefusesNegativeSizes) {
  EXPECT_EQ(message_of([] {
              Shape({2, -3});
            }),
            "shape [2, -3]: size -3 is negative; use sizes of 0 and more, or -1 for unknown");
}

TEST(Shape, RefusesMoreElementsThanCanBeCounted) {
  EXPECT_THROW(Shape({1L << 32, 1L << 31}), InvalidArgument);
  EXPECT_THROW(Shape({0, 1L << 32, 1L << 31}), InvalidArgument) << "an empty batch does not excuse the rest";
  EXPECT_THROW(Shape({UINT64_MAX}), InvalidArgument);
}

TEST(Shape, RefusesMoreThanTheLargestRank) {
  EXPECT_EQ(Shape(std::vector<int>(kMaxRank, 1)).rank(), kMaxRank);
  EXPECT_THROW(Shape(std::vector<int>(kMaxRank + 1, 1)), InvalidArgument);
  EXPECT_THROW(
      Shape({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}),
      InvalidArgument);
}

TEST(Shape, HoldsUnknownSizesButDoesNotCountThem) {
  const Shape shape = {kUnknownSize, 4};
  EXPECT_TRUE(shape.is_set());
  EXPECT_FALSE(shape.is_known());
  EXPECT_EQ(shape[0], -1);
  EXPECT_EQ(message_of([&] { shape.size(); }), "shape [?, 4]: has a size that is not known yet, so no element count");
  EXPECT_EQ(message_of([] { Shape().size(); }), "shape: not given, so it has no element count");
  EXPECT_NE(shape, (Shape{1, 4}));
}

TEST(Shape, KeepsItsSizesThroughCopiesAndMovesAtEveryRank) {
  for (int rank = 0; rank <= static_cast<int>(kMaxRank); ++rank) {
    std::vector<int> sizes;
    for (int i = 0; i < rank; ++i) sizes.push_back(i % 2 + 1);
    const Shape first = rank == 0 ? Shape::scalar() : Shape(sizes);
    Shape copy = first, assigned;
    assigned = copy;
    assigned = *&assigned;
    Shape moved = std::move(copy);
    EXPECT_FALSE(copy.is_set());  // NOLINT(bugprone-use-after-move): that is the promise.
    copy = std::move(moved);
    EXPECT_EQ(copy, first);
    EXPECT_EQ(assigned, first);
    EXPECT_TRUE(std::equal(first.begin(), first.end(), sizes.begin(), sizes.end()));
    assigned = Shape{7};
    EXPECT_EQ(assigned[0], 7);
    EXPECT_EQ(first.rank(), static_cast<std::size_t>(rank));
  }
}

TEST(Shape, CopiesWithoutAllocatingAtAnyRank) {
  const Shape flat = {2, 3, 4, 5, 6, 7}, deep = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::size_t before = heap_allocations();
  const Shape made = {2, 3}, a = flat, b = deep;
  Shape c;
  c = b;
  EXPECT_EQ(heap_allocations(), before);
  EXPECT_EQ(c, deep);
  EXPECT_EQ(a.size(), 5040u);
}

TEST(Shape, ReadsAxesFromBothEnds) {
  const Shape shape = {2, 3, 4};
  EXPECT_EQ(shape.at(0), 2);
  EXPECT_EQ(shape.at(-1), 4);
  EXPECT_EQ(shape.back(), 4);
  EXPECT_EQ(message_of([&] { shape.at(3); }), "shape: axis 3 is outside of -3 to 2");
  EXPECT_EQ(message_of([&] { shape.at(-4); }), "shape: axis -4 is outside of -3 to 2");
  EXPECT_EQ(message_of([] { resolve_axis(0, 0, "sum"); }), "sum: axis 0 of a scalar; a scalar has no axes");
}

TEST(Shape, PrintsListsAndTuples) {
  EXPECT_EQ((Shape{2, 3}).to_string(), "[2, 3]");
  EXPECT_EQ(Shape::scalar().to_string(), "[]");
  EXPECT_EQ((Shape{-1, 3}).to_string(), "[?, 3]");
  EXPECT_EQ(Shape().to_string(), "unset");
  EXPECT_EQ((Shape{2, 2}).to_tuple_string(), "(2, 2)");
  EXPECT_EQ((Shape{2}).to_tuple_string(), "(2,)");
  EXPECT_EQ(Shape::scalar().to_tuple_string(), "()");
  EXPECT_EQ((Shape{-1, 3}).to_tuple_string(), "(None, 3)");
  std::ostringstream out;
  out << Shape{1};
  EXPECT_EQ(out.str(), "[1]");
}

TEST(Shape, HashesEqualShapesAlike) {
  std::unordered_set<Shape> seen = {Shape(), Shape::scalar(), {1}, {1, 1}, {2, 3}, {3, 2}, {2, 3}};
  EXPECT_EQ(seen.size(), 6u);
  EXPECT_TRUE(seen.contains(Shape(std::vector<int>{2, 3})));
}

TEST(BroadcastShapes, FollowsNumPy) {
  EXPECT_EQ(broadcast_shapes({2, 3}, {3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast_shapes({2, 1}, {1, 4}), (Shape{2, 4}));
  EXPECT_EQ(broadcast_shapes(Shape::scalar(), {2, 2}), (Shape{2, 2}));
  EXPECT_EQ(broadcast_shapes({0, 3}, {1, 3}), (Shape{0, 3}));
  EXPECT_EQ(broadcast_shapes(Shape::scalar(), Shape::scalar()), Shape::scalar());
}

TEST(BroadcastShapes, LetsUnknownSizesTakeWhatTheyMeet) {
  EXPECT_EQ(broadcast_shapes({-1, 3}, {8, 1}), (Shape{8, 3}));
  EXPECT_EQ(broadcast_shapes({-1, 3}, {1, 3}), (Shape{-1, 3}));
  EXPECT_EQ(broadcast_shapes({1}, {-1}), (Shape{-1}));
}

TEST(BroadcastShapes, RefusesSizesThatDifferNamingBoth) {
  EXPECT_EQ(message_of([] {
              broadcast_shapes({2, 3}, {4}, "add");
            }),
            "add: shapes [2, 3] and [4] do not fit: 3 against 4 on axis 1; sizes must be equal or 1");
}

TEST(RowMajorStrides, StepOverTheInnerAxes) {
  const Strides strides = row_major_strides({2, 3, 4});
  EXPECT_EQ(strides[0], 12);
  EXPECT_EQ(strides[1], 4);
  EXPECT_EQ(strides[2], 1);
}

}  // namespace
}  // namespace plimsoll
