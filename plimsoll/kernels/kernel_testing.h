// Shared by kernel tests: a tensor with its own memory, and awkward values to fill it with.
//
//   TestTensor x = TestTensor::from<float>({2, 3}, [](std::int64_t i) { return float(i); });
//   binary(BinaryOp::add, x.view(), x.view(), y.view());
//   y.at(5)                                  // Any element as a double.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "plimsoll/base/tensor_view.h"

namespace plimsoll {

class TestTensor {
 public:
  TestTensor(DType dtype, Shape shape)
      : dtype_(dtype), shape_(std::move(shape)), bytes_((shape_.size() * size_of(dtype) + 15) / 8) {}

  template <Element T, class F>
  static TestTensor from(const Shape& shape, F value) {
    TestTensor tensor(kDTypeOf<T>, shape);
    for (std::size_t i = 0; i < shape.size(); ++i)
      tensor.data<T>()[i] = static_cast<T>(value(static_cast<std::int64_t>(i)));
    return tensor;
  }

  TensorView view() { return {bytes_.data(), 0, dtype_, shape_}; }
  ConstTensorView view() const { return {bytes_.data(), 0, dtype_, shape_}; }
  template <Element T>
  T* data() {
    return view().data<T>();
  }
  template <Element T>
  const T* data() const {
    return view().data<T>();
  }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  std::size_t size() const { return shape_.size(); }

  double at(std::size_t i) const {
    return visit_dtype(dtype_, [&]<class T>(TypeTag<T>) { return static_cast<double>(data<T>()[i]); });
  }

 private:
  DType dtype_;
  Shape shape_;
  std::vector<std::uint64_t> bytes_;
};

// Small numbers of both signs with zeros; for floats also NaN and infinities when `special`.
template <Element T>
TestTensor awkward(const Shape& shape, bool special = true, std::int64_t start = 0) {
  return TestTensor::from<T>(shape, [&](std::int64_t i) {
    const std::int64_t k = (i + start) * 7919 % 41;
    if constexpr (std::numeric_limits<T>::has_infinity) {
      constexpr float kInfinity = std::numeric_limits<float>::infinity();
      if (special && k == 3) return static_cast<T>(kInfinity);
      if (special && k == 5) return static_cast<T>(-kInfinity);
      if (special && k == 7) return static_cast<T>(std::nanf(""));
      return static_cast<T>(static_cast<float>(k - 20) * 0.25f);
    } else {
      return static_cast<T>(std::is_same_v<T, bool> ? k % 2 : k % 11 - (std::is_signed_v<T> ? 5 : 0));
    }
  });
}

inline bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Units in the last place of a float between a result and the exact value.
inline double float_ulps(float result, double exact) {
  if (same(result, static_cast<float>(exact))) return 0;
  if (!std::isfinite(result) || !std::isfinite(static_cast<float>(exact))) return 1e9;
  const float magnitude = std::max(std::fabs(static_cast<float>(exact)), std::numeric_limits<float>::min());
  return std::fabs(result - exact) / (static_cast<double>(std::nextafter(magnitude, HUGE_VALF)) - magnitude);
}

}  // namespace plimsoll
