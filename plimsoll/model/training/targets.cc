#include "plimsoll/model/training/targets.h"

#include <fmt/format.h>

#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/elementwise.h"

namespace plimsoll::internal {
namespace {

[[noreturn]] void refuse(std::string_view where, const char* what, const Tensor& given, const Shape& with) {
  throw InvalidArgument(fmt::format("{}: {} of shape {} do not go with predictions of shape {}", where, what,
                                    given.shape().to_string(), with.to_string()));
}

Tensor where_whole(const Tensor& labels) {
  const Tensor whole = labels.cast(i32);
  return where(labels == floor(labels), whole, whole * 0 - 1);
}

std::vector<std::int64_t> leading(const Shape& shape, std::size_t count) {
  return {shape.begin(), shape.begin() + count};
}

}  // namespace

Tensor fit_targets(const Tensor& targets, const Tensor& predictions, std::string_view where) {
  Tensor result = targets;
  const Shape& wanted = predictions.shape();
  if (!(targets.shape() == wanted)) {
    const bool column = wanted.rank() == targets.rank() + 1 && wanted.back() == 1 &&
                        targets.shape() == Shape(leading(wanted, targets.rank()));
    const bool row = targets.rank() == wanted.rank() + 1 && targets.shape().back() == 1 &&
                     wanted == Shape(leading(targets.shape(), wanted.rank()));
    if (!column && !row) refuse(where, "targets", targets, wanted);
    result = targets.reshape(wanted);
  }
  return result.dtype() == predictions.dtype() ? result : result.cast(predictions.dtype());
}

Tensor fit_labels(const Tensor& labels, const Tensor& predictions, std::string_view where) {
  Tensor result = labels;
  if (predictions.rank() == 0) refuse(where, "labels", labels, predictions.shape());
  const Shape wanted(leading(predictions.shape(), predictions.rank() - 1));
  if (!(labels.shape() == wanted)) {
    const bool column = labels.rank() == predictions.rank() && labels.shape().back() == 1 &&
                        Shape(leading(labels.shape(), labels.rank() - 1)) == wanted;
    if (!column) refuse(where, "labels", labels, predictions.shape());
    result = labels.reshape(wanted);
  }
  if (result.dtype() == i32 || result.dtype() == i64) return result;
  if (!is_floating(result.dtype())) return result.cast(i32);
  // A fraction becomes a label outside the classes, and is refused as such.
  return where_whole(result);
}

Tensor fit_weights(const Tensor& weights, const Shape& losses, std::string_view where) {
  Tensor result = weights.dtype() == f32 ? weights : weights.cast(f32);
  if (result.rank() == 2 && losses.rank() == 1 && result.shape().back() == 1) result = result.reshape({-1});
  if (result.rank() > losses.rank() || !(result.shape() == Shape(leading(losses, result.rank()))))
    throw InvalidArgument(fmt::format("{}: weights of shape {} do not go with losses of shape {}", where,
                                      weights.shape().to_string(), losses.to_string()));
  while (result.rank() < losses.rank()) result = result.expand_dims(-1);
  return result;
}

}  // namespace plimsoll::internal
