#include "plimsoll/model/onnx/onnx_value.h"

#include "plimsoll/ops/movement.h"

namespace plimsoll::internal {

AxisOrder inverse(const AxisOrder& order) {
  AxisOrder result(order.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    result[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  return result;
}

OnnxValue OnnxValue::sequence_of(std::vector<OnnxValue> parts) {
  OnnxValue result;
  result.sequence_ = std::make_shared<const std::vector<OnnxValue>>(std::move(parts));
  return result;
}

Shape OnnxValue::shape() const {
  if (order_.empty()) return held_.shape();
  std::vector<std::int64_t> sizes(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) sizes[static_cast<std::size_t>(order_[i])] = held_.shape()[i];
  return Shape(sizes);
}

const Tensor& OnnxValue::as(const AxisOrder& order) const {
  if (order == order_) return held_;
  if (!other_.is_empty_handle() && other_order_ == order) return other_;
  // The file's axis order[i] is held at the place that the inverse of order_ says.
  AxisOrder moves = order;
  if (order_.empty()) {
    other_ = transpose(held_, moves);
  } else {
    const AxisOrder places = inverse(order_);
    if (moves.empty())
      moves = places;
    else
      for (std::int64_t& axis : moves) axis = places[static_cast<std::size_t>(axis)];
    other_ = transpose(held_, moves);
  }
  other_order_ = order;
  return other_;
}

}  // namespace plimsoll::internal
