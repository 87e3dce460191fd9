#include "plimsoll/tensor/number.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace plimsoll {
namespace {

template <class T>
T truncated(double value) noexcept {
  if (std::isnan(value)) return 0;
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
  return static_cast<T>(value);
}

}  // namespace

std::uint64_t Number::to(DType dtype) const noexcept {
  return visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    T element{};
    if constexpr (std::same_as<T, bool>)
      element = is_integer_ ? integer_ != 0 : floating_ != 0;
    else if constexpr (std::integral<T>)
      element = is_integer_ ? static_cast<T>(integer_) : truncated<T>(floating_);
    else if constexpr (std::floating_point<T>)
      element = is_integer_ ? static_cast<T>(integer_) : static_cast<T>(floating_);
    else
      element = T(static_cast<float>(as_double()));
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, &element, sizeof element);
    return bytes;
  });
}

}  // namespace plimsoll
