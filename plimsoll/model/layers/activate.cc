#include "plimsoll/model/layers/activate.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/softmax.h"

namespace plimsoll::internal {

LayerActivation::LayerActivation(std::string_view name, const char* where) : name_(name.empty() ? "linear" : name) {
  if (name == "softmax") {
    kind_ = Kind::kSoftmax;
  } else if (name == "log_softmax") {
    kind_ = Kind::kLogSoftmax;
  } else if (name == "mish") {
    kind_ = Kind::kMish;
  } else if (name == "gelu_new") {
    kind_ = Kind::kGeluNew;
  } else if (name == "leaky_relu") {
    kind_ = Kind::kLeakyRelu;
  } else {
    try {
      elementwise_ = activation_of(name_);
    } catch (const InvalidArgument&) {
      throw InvalidArgument(
          fmt::format("{}: \"{}\" is not an activation; use relu, tanh, sigmoid, softmax or another of Keras' names",
                      where, name_));
    }
  }
}

Tensor LayerActivation::operator()(const Tensor& x) const {
  switch (kind_) {
    case Kind::kSoftmax:
      return softmax(x);
    case Kind::kLogSoftmax:
      return log_softmax(x);
    case Kind::kMish:
      return x * tanh(softplus(x));
    case Kind::kGeluNew:  // The tanh approximation, as in TF.js.
      return x * 0.5 * (tanh((x + x * x * x * 0.044715) * 0.79788456080286535588) + 1);
    case Kind::kLeakyRelu:
      return leaky_relu(x, 0.2f);
    case Kind::kElementwise:
      break;
  }
  return elementwise_ == Activation::linear ? x : activate(x, elementwise_);
}

Tensor LayerActivation::dense(const Tensor& x, const Tensor& w, const Tensor& bias) const {
  const Tensor y = plimsoll::dense(x, w, bias, elementwise_);
  return is_elementwise() ? y : (*this)(y);
}

}  // namespace plimsoll::internal
