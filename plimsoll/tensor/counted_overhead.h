// CountedOverhead: bytes that a part of the library keeps in addition to tensors, counted in memory_overhead() while it
// lives.
//
//   CountedOverhead counted;                  // a member of the object that keeps them: a tape, a graph
//   counted.set(nodes.capacity() * sizeof(Node));
//
// Thread safety: as any value; it may be made, changed and destroyed on different threads. Cost: a few nanoseconds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "plimsoll/tensor/tensor_thread.h"

namespace plimsoll::internal {

class CountedOverhead {
 public:
  CountedOverhead() noexcept = default;
  CountedOverhead(const CountedOverhead&) = delete;
  CountedOverhead& operator=(const CountedOverhead&) = delete;
  ~CountedOverhead() { set(0); }

  void set(std::size_t bytes) {
    if (bytes == bytes_) return;
    count_overhead(static_cast<std::int64_t>(bytes) - static_cast<std::int64_t>(bytes_));
    bytes_ = bytes;
  }
  void add(std::size_t bytes) { set(bytes_ + bytes); }
  void subtract(std::size_t bytes) { set(bytes_ - std::min(bytes_, bytes)); }

 private:
  std::size_t bytes_ = 0;
};

}  // namespace plimsoll::internal
