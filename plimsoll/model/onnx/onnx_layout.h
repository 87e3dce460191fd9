// Brings the operands of a node into one order of axes, for operations that work in any.
//
//   const OnnxPair pair = aligned(node);                       // Both with channels last, when one of them is.
//   node.give(OnnxValue(pair.a + pair.b, pair.order));
#pragma once

#include "plimsoll/model/onnx/onnx_node.h"

namespace plimsoll::internal {

struct OnnxPair {
  Tensor a, b;
  AxisOrder order;
};

// Operands 0 and 1, broadcast by the rule of their version: before 7 by the attributes `broadcast` and `axis`.
OnnxPair aligned(const OnnxNode& node);

// As an operand together with one of this rank and order: axes of size 1 in front, then that order.
Tensor in_order(const OnnxValue& value, std::size_t rank, const AxisOrder& order);

// [channels] for tensors of this rank, with channels second: [channels, 1, 1].
Tensor per_channel(const Tensor& values, std::size_t rank);

}  // namespace plimsoll::internal
