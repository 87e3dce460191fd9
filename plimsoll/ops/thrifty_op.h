// ThriftyOp: what an op is, too, that can do the same work in less memory and more time.
//
//   const auto* thrifty = dynamic_cast<const ThriftyOp*>(&op);
//   std::unique_ptr<Op> leaner = thrifty->with_thrift(2);     // the same outputs, to the bit
//
// Planners choose, where a budget is below the natural peak. One output may become smaller, for which those who read it
// change with it: an LSTM keeps fewer gates for its gradient, which computes the others again.
#pragma once

#include <cstddef>
#include <memory>

#include "plimsoll/tensor/op.h"

namespace plimsoll::internal {

class PLIMSOLL_API ThriftyOp {
 public:
  static constexpr int kMostThrift = 4;
  static constexpr std::size_t kNone = SIZE_MAX;

  // A copy that takes less with each level from 1 to kMostThrift, and more time if costs_time().
  virtual std::unique_ptr<Op> with_thrift(int level) const = 0;
  virtual bool costs_time() const noexcept { return true; }
  // The output that has another size then, and the input that has to come from such an op; kNone: there is none.
  virtual std::size_t thrifty_output() const noexcept { return kNone; }
  virtual std::size_t thrifty_input() const noexcept { return kNone; }
  bool operator==(const ThriftyOp&) const noexcept { return true; }  // Its part of what an op's own compares.

 protected:
  ~ThriftyOp() = default;
};

}  // namespace plimsoll::internal
