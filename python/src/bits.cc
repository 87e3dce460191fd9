// &, |, ^, << and >> of integers. The library has them for truths only, so they run here, on tensors that have their
// elements: one pass, the result charged as any other.
#include "bits.h"

#include <fmt/format.h>

#include "exchange.h"
#include "plimsoll/tensor/make_tensor.h"

namespace binding {
namespace {

template <class T>
T combined(T a, T b, Bits operation) {
  constexpr int kBits = static_cast<int>(sizeof(T) * 8);
  const bool is_beyond = b < 0 || static_cast<std::int64_t>(b) >= kBits;
  switch (operation) {
    case Bits::and_:
      return static_cast<T>(a & b);
    case Bits::or_:
      return static_cast<T>(a | b);
    case Bits::xor_:
      return static_cast<T>(a ^ b);
    case Bits::left:
      return is_beyond ? T(0) : static_cast<T>(static_cast<std::uint64_t>(a) << b);
    default:
      return is_beyond ? static_cast<T>(a < 0 ? -1 : 0) : static_cast<T>(a >> b);
  }
}

template <class T>
pl::Tensor combined_tensors(const pl::Tensor& a, const pl::Tensor& b, Bits operation, const char* name) {
  const pl::Tensor result = pl::make_tensor({.op = name, .category = pl::Category::kActivations}, a.shape(), a.dtype(),
                                            pl::current_host_device());
  if (result.size() == 0) return result;
  const auto left = a.data<T>();
  const auto right = b.data<T>();
  T* to = pl::writable(result).data<T>();
  for (std::size_t i = 0; i < left.size(); ++i) to[i] = combined(left[i], right[i], operation);
  return result;
}

}  // namespace

pl::Shape broadcast_shape(const pl::Shape& a, const pl::Shape& b) {
  const std::size_t rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> sizes(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t left = i < a.rank() ? a[a.rank() - 1 - i] : 1, right = i < b.rank() ? b[b.rank() - 1 - i] : 1;
    sizes[rank - 1 - i] = left == 1 ? right : left;  // What does not fit is refused by broadcast_to().
  }
  return pl::Shape(std::span<const std::int64_t>(sizes));
}

pl::Tensor combine_bits(const pl::Tensor& x, const pl::Tensor& y, Bits operation) {
  constexpr const char* kNames[] = {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift",
                                    "bitwise_right_shift"};
  const char* name = kNames[static_cast<int>(operation)];
  const pl::DType dtype = *promoted(x.dtype(), y.dtype());
  if (!pl::is_integer(dtype))
    throw pl::InvalidArgument(fmt::format("{}: of bool and integers, not of {}", name, pl::dtype_name(dtype)));
  if (pl::is_symbolic(x) || pl::is_symbolic(y))
    throw pl::Unsupported(fmt::format("{}: of integers in a graph is not offered; compute it before", name));
  return unlocked([&] {
    const pl::Shape shape = broadcast_shape(x.shape(), y.shape());
    const pl::Tensor a = pl::broadcast_to(x.cast(dtype), shape), b = pl::broadcast_to(y.cast(dtype), shape);
    switch (dtype) {
      case pl::u8:
        return combined_tensors<std::uint8_t>(a, b, operation, name);
      case pl::i8:
        return combined_tensors<std::int8_t>(a, b, operation, name);
      case pl::i16:
        return combined_tensors<std::int16_t>(a, b, operation, name);
      case pl::i32:
        return combined_tensors<std::int32_t>(a, b, operation, name);
      default:
        return combined_tensors<std::int64_t>(a, b, operation, name);
    }
  });
}

}  // namespace binding
