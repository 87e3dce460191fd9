// Rectifier: what may follow a sum while it is still in registers: relu, or relu with a cap.
//
//   Rectifier relu{.on = true}, relu6{.on = true, .most = 6};      // The bits of UnaryOp::relu and UnaryOp::relu6.
#pragma once

#include <limits>

namespace plimsoll::internal {

struct Rectifier {
  bool on = false;                                        // Zero for what is below it,
  double most = std::numeric_limits<double>::infinity();  // and this for what is above. NaN stays.
};

}  // namespace plimsoll::internal
