// Operators whose number of results depends on elements: different values, boxes that do not overlap.
//
// They look at elements, so a graph with them runs operation by operation.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "plimsoll/model/onnx/onnx_operators.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll::internal {
namespace {

using Integers = std::vector<std::int64_t>;

Tensor index_numbers(const Integers& values) { return from_vector(values, {static_cast<std::int64_t>(values.size())}); }

// Rows of [count, width] that differ: the place of each one's first, how often it occurs, and which each row is.
struct Different {
  Integers first, count, which;
};

template <class T>
Different find_different(std::span<const T> rows, std::size_t count, std::size_t width, bool sorted) {
  const auto row = [&](std::int64_t at) { return rows.subspan(static_cast<std::size_t>(at) * width, width); };
  const auto before = [&](std::int64_t a, std::int64_t b) {
    for (std::size_t i = 0; i < width; ++i) {
      const auto x = static_cast<double>(row(a)[i]), y = static_cast<double>(row(b)[i]);
      if (x != y) return x < y;
    }
    return a < b;
  };
  const auto equal = [&](std::int64_t a, std::int64_t b) {
    return std::equal(row(a).begin(), row(a).end(), row(b).begin());
  };
  Integers order(count);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), before);
  Different found;
  found.which.assign(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    if (i == 0 || !equal(order[i], order[i - 1])) found.first.push_back(order[i]), found.count.push_back(0);
    ++found.count.back();
    found.which[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(found.first.size()) - 1;
  }
  if (sorted) return found;
  Integers by_place(found.first.size()), renamed(found.first.size());  // In the order in which they come.
  std::iota(by_place.begin(), by_place.end(), 0);
  const auto at = [](Integers& list, std::int64_t i) -> std::int64_t& { return list[static_cast<std::size_t>(i)]; };
  std::sort(by_place.begin(), by_place.end(),
            [&](std::int64_t a, std::int64_t b) { return at(found.first, a) < at(found.first, b); });
  Different result;
  for (const std::int64_t i : by_place) {
    at(renamed, i) = static_cast<std::int64_t>(result.first.size());
    result.first.push_back(at(found.first, i));
    result.count.push_back(at(found.count, i));
  }
  for (const std::int64_t i : found.which) result.which.push_back(at(renamed, i));
  return result;
}

void unique(OnnxNode& node) {
  const Tensor& given = node.in(0);
  const bool along = node.find("axis") != nullptr;
  const std::size_t axis = along ? node.axis("axis", 0, given.rank()) : 0;
  const Tensor x = along ? given : given.flatten();
  AxisOrder order = {static_cast<std::int64_t>(axis)};
  for (std::size_t i = 0; i < x.rank(); ++i)
    if (i != axis) order.push_back(static_cast<std::int64_t>(i));
  const Tensor rows = transpose(x, order);
  const auto count = static_cast<std::size_t>(rows.shape()[0]);
  const std::size_t width = count == 0 ? 1 : rows.size() / count;
  const bool sorted = node.integer("sorted", 1) != 0;
  const Different found = visit_dtype(rows.dtype(), [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
      return find_different<float>(rows.cast(f32).data<float>(), count, width, sorted);
    else
      return find_different<T>(rows.data<T>(), count, width, sorted);
  });
  node.give(0, gather(x, index_numbers(found.first), static_cast<std::int64_t>(axis)));
  node.give(1, index_numbers(found.first));
  node.give(2, index_numbers(found.which));
  node.give(3, index_numbers(found.count));
}

using Box = std::array<double, 4>;  // Low and high ends.

Box corners(std::span<const float> box, bool centers) {
  if (centers) return {box[1] - box[3] / 2., box[0] - box[2] / 2., box[1] + box[3] / 2., box[0] + box[2] / 2.};
  return {std::min(box[0], box[2]), std::min(box[1], box[3]), std::max(box[0], box[2]), std::max(box[1], box[3])};
}

double overlap(const Box& a, const Box& b) {
  const double height = std::min(a[2], b[2]) - std::max(a[0], b[0]),
               width = std::min(a[3], b[3]) - std::max(a[1], b[1]);
  if (height <= 0 || width <= 0) return 0;
  const double both = height * width;
  return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both);
}

void non_max_suppression(OnnxNode& node) {
  const Tensor &boxes = node.in(0), &scores = node.in(1);
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes.shape()[2] != 4 || boxes.shape()[1] != scores.shape()[2] ||
      boxes.shape()[0] != scores.shape()[0])
    node.invalid(fmt::format("boxes {} and scores {}", boxes.shape().to_string(), scores.shape().to_string()));
  const std::int64_t most = node.has(2) ? node.integer_in(2) : 0;
  const double overlapping = node.has(3) ? node.real_in(3) : 0;
  const bool limited = node.has(4), centers = node.integer("center_point_box", 0) != 0;
  const double least = limited ? node.real_in(4) : 0;
  const TensorData<float> box = boxes.data<float>(), score = scores.data<float>();
  const std::int64_t count = boxes.shape()[1], classes = scores.shape()[1];
  Integers chosen;
  for (std::int64_t batch = 0; batch < boxes.shape()[0]; ++batch)
    for (std::int64_t kind = 0; kind < classes; ++kind) {
      const std::span<const float> own = score.span().subspan(
          static_cast<std::size_t>((batch * classes + kind) * count), static_cast<std::size_t>(count));
      const auto corners_of = [&](std::int64_t i) {
        return corners(box.span().subspan(static_cast<std::size_t>((batch * count + i) * 4), 4), centers);
      };
      Integers order;
      for (std::int64_t i = 0; i < count; ++i)
        if (!limited || static_cast<double>(own[static_cast<std::size_t>(i)]) > least) order.push_back(i);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return own[static_cast<std::size_t>(a)] > own[static_cast<std::size_t>(b)];
      });
      std::vector<Box> kept;
      for (const std::int64_t i : order) {
        if (static_cast<std::int64_t>(kept.size()) >= most) break;
        const Box here = corners_of(i);
        if (std::any_of(kept.begin(), kept.end(), [&](const Box& other) { return overlap(here, other) > overlapping; }))
          continue;
        kept.push_back(here);
        chosen.insert(chosen.end(), {batch, kind, i});
      }
    }
  node.give(from_vector(chosen, {static_cast<std::int64_t>(chosen.size() / 3), 3}));
}

constexpr OnnxOperator kSearchRows[] = {
    {"NonMaxSuppression", 10, kNewest, non_max_suppression},
    {"Unique", 11, kNewest, unique},
};

}  // namespace

OnnxOperators onnx_search_operators() { return kSearchRows; }

}  // namespace plimsoll::internal
