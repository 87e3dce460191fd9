#include "plimsoll/tensor/number.h"

#include <cstring>
#include <utility>

namespace plimsoll {

bool Number::fits(DType dtype) const noexcept {
  return visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::same_as<T, bool>)
      return as_double() == 0 || as_double() == 1;
    else if constexpr (std::integral<T>)
      return is_integer_ ? std::in_range<T>(integer_) : static_cast<double>(to_integer<T>(floating_)) == floating_;
    else
      return true;
  });
}

std::uint64_t Number::to(DType dtype) const noexcept {
  return visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    T element{};
    if constexpr (std::same_as<T, bool>)
      element = is_integer_ ? integer_ != 0 : floating_ != 0;
    else if constexpr (std::integral<T>)
      element = is_integer_ ? static_cast<T>(integer_) : to_integer<T>(floating_);
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
