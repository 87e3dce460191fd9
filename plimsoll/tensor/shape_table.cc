#include "plimsoll/tensor/shape_table.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "plimsoll/tensor/slabs.h"

namespace plimsoll {

ShapeTable& ShapeTable::instance() {
  static auto* table = new ShapeTable;
  return *table;
}

void ShapeTable::count() noexcept {
  num_bytes_.store(size() * sizeof(SharedShape) + buckets_.size() * sizeof(buckets_[0]), std::memory_order_relaxed);
}

void ShapeTable::grow() {
  std::vector<SharedShape*> larger(buckets_.size() * 2);
  for (SharedShape* chain : buckets_)
    while (chain) {
      SharedShape*& bucket = larger[std::hash<Shape>{}(chain->shape) & (larger.size() - 1)];
      SharedShape* const moved = std::exchange(chain, chain->next);
      moved->next = std::exchange(bucket, moved);
    }
  buckets_ = std::move(larger);
}

void ShapeTable::find(const Shape& shape, const SharedShape*& place) {
  const std::size_t hash = std::hash<Shape>{}(shape);
  {
    const std::lock_guard lock(mutex);
    for (const SharedShape* known = buckets_[hash & (buckets_.size() - 1)]; known; known = known->next)
      if (known->shape == shape) {
        place = known;
        return;
      }
    if (size() >= buckets_.size()) grow();
    SharedShape*& bucket = buckets_[hash & (buckets_.size() - 1)];
    bucket = std::make_unique<SharedShape>(SharedShape{shape, bucket}).release();
    bucket->shared = bucket;
    place = bucket;
    size_.store(size() + 1, std::memory_order_relaxed);
    count();
    if (size() < sweep_at_) return;
  }
  Slabs::instance().forget_unused_shapes();
}

void ShapeTable::forget_unused() noexcept {
  std::size_t left = 0;
  for (SharedShape*& bucket : buckets_)
    for (SharedShape** link = &bucket; *link;) {
      if (std::exchange((*link)->is_used, false)) {
        ++left;
        link = &(*link)->next;
      } else {
        const std::unique_ptr<SharedShape> unused(*link);
        *link = unused->next;
      }
    }
  size_.store(left, std::memory_order_relaxed);
  sweep_at_ = std::max(kLeastSweep, 2 * left);
  count();
}

}  // namespace plimsoll
