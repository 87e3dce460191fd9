// ShapeTable: every shape that tensors have, kept once, so that a tensor's record holds a pointer instead of 64 bytes.
//
//   const SharedShape* shape = counts.share(Shape{2, 3});   // TensorThread: a few nanoseconds when seen before
//   record.details = shape;                                 // inside the gate, next
//
// Shapes are not counted by reference. Those that no record refers to any more go when the table has doubled since it
// was last swept, and with trim(). Shapes in a thread's cache stay: one of them may be on its way into a record.
// Thread safety: `mutex` guards all but num_bytes(); take it after that of the slabs. A thread that holds it does not
// pass its gate.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include "plimsoll/base/shape.h"

namespace plimsoll {

struct SharedShape {
  Shape shape;
  SharedShape* next = nullptr;   // In the same bucket.
  mutable bool is_used = false;  // Found by the sweep that is under way.
};

// What only a tensor with a name has.
struct NamedShape : SharedShape {
  const SharedShape* shared = nullptr;  // Stays, for those who refer to the shape since before the name was set.
  char* name = nullptr;                 // Owned.
};

class ShapeTable {
 public:
  static ShapeTable& instance();  // Never destroyed.

  // The shared shape that equals this one, made if need be, is written to `place` under the lock. Throws
  // std::bad_alloc. May sweep, which stops the other threads: call it outside of the gate.
  void find(const Shape& shape, const SharedShape*& place);

  // Requires the lock, every shape that is used marked, and all other threads stopped. Unmarks them.
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
