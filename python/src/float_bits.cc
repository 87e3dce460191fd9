// nextafter, signbit and copysign: what is asked of the bits of floats. They run here, on tensors that have their
// elements, in one pass, the result charged as any other. Nothing of them has a gradient.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "bits.h"
#include "exchange.h"
#include "plimsoll/tensor/make_tensor.h"

namespace binding {
namespace {

template <class T>
using BitsOf =
    std::conditional_t<sizeof(T) == 2, std::uint16_t, std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
template <class T>
constexpr BitsOf<T> kSign = static_cast<BitsOf<T>>(BitsOf<T>(1) << (sizeof(T) * 8 - 1));
template <class T>
using Value = std::conditional_t<sizeof(T) == 8, double, float>;  // Holds every value of T.

template <class T>
T next_after(T from, T to) {
  const Value<T> a = from, b = to;
  if (std::isnan(a)) return from;
  if (std::isnan(b) || a == b) return to;
  const auto bits = std::bit_cast<BitsOf<T>>(from);
  if (a == 0) return std::bit_cast<T>(static_cast<BitsOf<T>>(b < 0 ? kSign<T> | 1 : 1));
  // Away from zero the bits count up, for numbers below zero too.
  return std::bit_cast<T>(static_cast<BitsOf<T>>((a < b) == (a > 0) ? bits + 1 : bits - 1));
}

template <class T>
T with_sign(T size, T sign) {
  const auto rest = static_cast<BitsOf<T>>(~kSign<T>);
  return std::bit_cast<T>(
      static_cast<BitsOf<T>>((std::bit_cast<BitsOf<T>>(size) & rest) | (std::bit_cast<BitsOf<T>>(sign) & kSign<T>)));
}

// f.template operator()<T>() for the type of a dtype of floats.
template <class F>
pl::Tensor for_floats(pl::DType dtype, F&& f) {
  if (dtype == pl::f16) return f.template operator()<pl::float16>();
  if (dtype == pl::bf16) return f.template operator()<pl::bfloat16>();
  if (dtype == pl::f32) return f.template operator()<float>();
  return f.template operator()<double>();
}

pl::Tensor result_like(const pl::Tensor& x, pl::DType dtype, const char* name) {
  return pl::make_tensor({.op = name, .category = pl::Category::kActivations}, x.shape(), dtype,
                         pl::current_host_device());
}

void require_elements(const pl::Tensor& x, const char* name) {
  if (pl::is_symbolic(x)) throw pl::Unsupported(fmt::format("{}: in a graph is not offered; compute it before", name));
}

// Numbers of Python take the tensor's dtype; else the two meet as in other functions.
std::pair<pl::Tensor, pl::Tensor> operands(nb::handle left, nb::handle right, const char* name) {
  const bool left_is_number = to_number(left).has_value(), right_is_number = to_number(right).has_value();
  pl::Tensor a = to_tensor(left), b = to_tensor(right);
  pl::DType dtype = *promoted(a.dtype(), b.dtype());
  if (left_is_number != right_is_number) dtype = (left_is_number ? b : a).dtype();
  if (!pl::is_floating(dtype)) dtype = kDefaultFloat;
  require_elements(a, name);
  require_elements(b, name);
  const pl::Shape shape = broadcast_shape(a.shape(), b.shape());
  return unlocked(
      [&] { return std::pair(pl::broadcast_to(a.cast(dtype), shape), pl::broadcast_to(b.cast(dtype), shape)); });
}

template <class F>
nb::object of_both(nb::handle left, nb::handle right, const char* name, F&& f) {
  const auto [a, b] = operands(left, right, name);
  return wrap_tensor(unlocked([&, &x = a, &y = b] {
    return for_floats(x.dtype(), [&]<class T>() {
      const pl::Tensor result = result_like(x, x.dtype(), name);
      if (result.size() == 0) return result;
      const auto from = x.data<T>(), to = y.data<T>();
      T* out = pl::writable(result).data<T>();
      for (std::size_t i = 0; i < from.size(); ++i) out[i] = f(from[i], to[i]);
      return result;
    });
  }));
}

nb::object sign_bits(nb::handle object) {
  pl::Tensor x = to_tensor(object);
  require_elements(x, "signbit");
  return wrap_tensor(unlocked([&] {
    if (!pl::is_floating(x.dtype())) return x.cast(pl::i64) < 0;
    return for_floats(x.dtype(), [&]<class T>() {
      const pl::Tensor result = result_like(x, pl::boolean, "signbit");
      if (result.size() == 0) return result;
      const auto from = x.data<T>();
      bool* out = pl::writable(result).data<bool>();
      for (std::size_t i = 0; i < from.size(); ++i) out[i] = (std::bit_cast<BitsOf<T>>(from[i]) & kSign<T>) != 0;
      return result;
    });
  }));
}

}  // namespace

void bind_float_bits(Module& m) {
  m.def(
      "nextafter",
      [](nb::handle a, nb::handle b) {
        return of_both(a, b, "nextafter", [](auto from, auto to) { return next_after(from, to); });
      },
      nb::arg("a"), nb::arg("b"), nb::sig("def nextafter(a: TensorLike, b: TensorLike, /) -> Tensor"));
  m.def(
      "copysign",
      [](nb::handle a, nb::handle b) {
        return of_both(a, b, "copysign", [](auto size, auto sign) { return with_sign(size, sign); });
      },
      nb::arg("a"), nb::arg("b"), nb::sig("def copysign(a: TensorLike, b: TensorLike, /) -> Tensor"));
  m.def("signbit", &sign_bits, nb::arg("x"), nb::sig("def signbit(x: TensorLike, /) -> Tensor"));
}

}  // namespace binding
