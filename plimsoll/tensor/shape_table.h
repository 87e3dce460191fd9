// ShapeTable: stores every shape that tensors have once, so that a tensor's record holds a pointer instead of 64 bytes.
//
//   const SharedShape* shape = counts.share(Shape{2, 3});   // TensorThread: a few nanoseconds when seen before
//   record.details = shape;                                 // next, inside the gate
//
// Shapes are not reference-counted. Those that no record refers to any more are removed when the table has doubled
// since it was last swept, and by trim(). Shapes in a thread's cache stay: one of them may be about to enter a record.
// Thread safety: `mutex` guards everything but num_bytes(); take it after that of the slabs. A thread that holds it
// does not pass its gate.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include "plimsoll/base/shape.h"

namespace plimsoll {

struct SharedShape {
  Shape shape;
  SharedShape* next = nullptr;          // In the same bucket.
  const SharedShape* shared = nullptr;  // The one in the table: itself, unless this is a NamedShape.
  mutable bool is_used = false;         // Found by the current sweep.
};

// For tensors with a name only. Its `shared` stays in the table, for code that has referred to the shape since before
// the name was set.
struct NamedShape : SharedShape {
  char* name = nullptr;  // Owned.
};

class ShapeTable {
 public:
  static ShapeTable& instance();  // Never destroyed.

  // Writes the shared shape that equals this one, making it if need be, to `place` under the lock. Throws
  // std::bad_alloc. May sweep, which stops the other threads: call it outside the gate.
  void find(const Shape& shape, const SharedShape*& place);

  // Requires the lock, a mark on every used shape, and all other threads stopped. Removes the marks.
  void forget_unused() noexcept;

  std::size_t num_bytes() const noexcept { return num_bytes_.load(std::memory_order_relaxed); }
  std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

  std::mutex mutex;

 private:
  static constexpr std::size_t kLeastBuckets = 256;
  static constexpr std::size_t kLeastSweep = 4096;

  void grow();
  void count() noexcept;

  std::vector<SharedShape*> buckets_ = std::vector<SharedShape*>(kLeastBuckets);  // A power of two of them.
  std::atomic<std::size_t> size_{0};
  std::atomic<std::size_t> num_bytes_{0};
  std::size_t sweep_at_ = kLeastSweep;
};

}  // namespace plimsoll
