// OnnxValue: what is passed between the nodes of an ONNX graph: a tensor, in some order of its axes, or a sequence.
//
//   OnnxValue image(x);                                  // As the file has it: [batch, channels, rows, columns].
//   image.as(kChannelsLast(4));                          // The same with channels last; remembered.
//
// Our convolutions want channels last, the file's have them second. A node gives its result in the order it was made
// in; whoever needs another order asks for it. So a transpose happens only where the two meet, once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

// Axis i as held is axis order[i] of the file's; empty: as the file has it.
using AxisOrder = std::vector<std::int64_t>;

inline AxisOrder channels_last(std::size_t rank) {  // [0, 2, 3, 1]
  AxisOrder order = {0};
  for (std::size_t axis = 2; axis < rank; ++axis) order.push_back(static_cast<std::int64_t>(axis));
  order.push_back(1);
  return order;
}
inline AxisOrder filter_last(std::size_t rank) {  // Of a filter [out, in, rows, columns]: [2, 3, 1, 0].
  AxisOrder order;
  for (std::size_t axis = 2; axis < rank; ++axis) order.push_back(static_cast<std::int64_t>(axis));
  order.push_back(1);
  order.push_back(0);
  return order;
}
AxisOrder inverse(const AxisOrder& order);

class OnnxValue {
 public:
  OnnxValue() = default;
  explicit OnnxValue(Tensor held, AxisOrder order = {}) : held_(std::move(held)), order_(std::move(order)) {}
  static OnnxValue sequence_of(std::vector<OnnxValue> parts);

  bool is_given() const noexcept { return !held_.is_empty_handle() || sequence_ != nullptr; }
  bool is_sequence() const noexcept { return sequence_ != nullptr; }
  const std::vector<OnnxValue>& sequence() const noexcept { return *sequence_; }

  const Tensor& held() const noexcept { return held_; }
  const AxisOrder& order() const noexcept { return order_; }
  Shape shape() const;  // As the file has it.
  // With its axes in this order.
  const Tensor& as(const AxisOrder& order) const;
  const Tensor& plain() const { return as({}); }

  // Whether it is known before anything runs: folded constants, shapes.
  bool is_constant() const noexcept { return is_constant_; }
  void set_constant() noexcept { is_constant_ = true; }

 private:
  Tensor held_;
  AxisOrder order_;
  mutable Tensor other_;  // In other_order_, once it was asked for.
  mutable AxisOrder other_order_;
  bool is_constant_ = false;
  std::shared_ptr<const std::vector<OnnxValue>> sequence_;
};

}  // namespace plimsoll::internal
