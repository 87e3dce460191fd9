// Activations of layers by Keras' names: the elementwise ones of ops/dense.h, softmax, log_softmax, mish, gelu_new.
#pragma once

#include <string>
#include <string_view>

#include "plimsoll/ops/dense.h"
#include "plimsoll/tensor/tensor.h"

namespace plimsoll::internal {

// A layer's activation: fused where ops support it, otherwise applied to the result.
class LayerActivation {
 public:
  // Throws InvalidArgument, naming `where`, for an unknown name.
  LayerActivation(std::string_view name, const char* where);

  const std::string& name() const noexcept { return name_; }
  bool is_elementwise() const noexcept { return kind_ == Kind::kElementwise; }
  bool is_linear() const noexcept { return is_elementwise() && elementwise_ == Activation::linear; }
  Activation elementwise() const noexcept { return elementwise_; }  // linear for any other.
  Tensor operator()(const Tensor& x) const;
  Tensor dense(const Tensor& x, const Tensor& w, const Tensor& bias) const;

 private:
  enum class Kind : unsigned char { kElementwise, kSoftmax, kLogSoftmax, kMish, kGeluNew, kLeakyRelu };

  std::string name_;
  Kind kind_ = Kind::kElementwise;
  Activation elementwise_ = Activation::linear;
};

}  // namespace plimsoll::internal
