// Running sums and products along an axis.
#include <fmt/format.h>

#include "common.h"

namespace binding {
namespace {

pl::Tensor wide(const pl::Tensor& x) { return pl::is_floating(x.dtype()) ? x : x.cast(kDefaultInteger); }

// `count` rows of an axis from `begin` on.
pl::Tensor rows(const pl::Tensor& x, std::size_t axis, std::int64_t begin, std::int64_t count) {
  std::vector<std::int64_t> begins(x.rank(), 0), sizes(x.shape().begin(), x.shape().end());
  begins[axis] = begin;
  sizes[axis] = count;
  return x.slice(begins, sizes);
}

pl::Tensor one_of(const pl::Tensor& x, std::size_t axis) {
  std::vector<std::int64_t> sizes(x.shape().begin(), x.shape().end());
  sizes[axis] = 1;
  return pl::ones(pl::Shape(std::span<const std::int64_t>(sizes)), x.dtype());
}

// By doubling: after each pass an element is the product of twice as many before it. Made of the library's operations,
// so that it has gradients, runs on devices and in graphs.
pl::Tensor running_product(pl::Tensor x, std::int64_t along, bool exclusive, bool reverse) {
  const auto rank = static_cast<std::int64_t>(x.rank());
  if (along < -rank || along >= rank)
    throw pl::InvalidArgument(fmt::format("cumprod: axis {} is outside of the {} axes of the tensor", along, rank));
  const auto axis = static_cast<std::size_t>(along < 0 ? along + rank : along);
  if (!x.shape().is_known()) throw pl::Unsupported("cumprod: of a tensor whose sizes are not known is not offered");
  const std::int64_t size = x.shape()[axis];
  if (reverse) x = pl::flip(x, {along});
  if (exclusive && size > 0)
    x = pl::concat({one_of(x, axis), rows(x, axis, 0, size - 1)}, static_cast<std::int64_t>(axis));
  for (std::int64_t by = 1; by < size; by *= 2)
    x = pl::concat({rows(x, axis, 0, by), rows(x, axis, by, size - by) * rows(x, axis, 0, size - by)},
                   static_cast<std::int64_t>(axis));
  return reverse ? pl::flip(x, {along}) : x;
}

}  // namespace

void bind_running(Module& m) {
  m.def(
      "cumsum",
      [](nb::handle object, std::optional<std::int64_t> axis, bool exclusive, bool reverse) {
        const pl::Tensor x = to_tensor(object);
        return wrap_tensor(computed(x, [&] {
          return pl::cumsum(axis ? wide(x) : wide(x).flatten(), axis.value_or(0),
                            {.exclusive = exclusive, .reverse = reverse});
        }));
      },
      nb::arg("x"), nb::arg("axis").none() = nb::none(), nb::arg("exclusive") = false, nb::arg("reverse") = false,
      nb::sig("def cumsum(x: TensorLike, axis: int | None = None, exclusive: bool = False, reverse: bool = False) -> "
              "Tensor"));
  m.def(
      "cumprod",
      [](nb::handle object, std::optional<std::int64_t> axis, bool exclusive, bool reverse) {
        const pl::Tensor x = to_tensor(object);
        return wrap_tensor(unlocked(
            [&] { return running_product(axis ? wide(x) : wide(x).flatten(), axis.value_or(0), exclusive, reverse); }));
      },
      nb::arg("x"), nb::arg("axis").none() = nb::none(), nb::arg("exclusive") = false, nb::arg("reverse") = false,
      nb::sig("def cumprod(x: TensorLike, axis: int | None = None, exclusive: bool = False, reverse: bool = False) -> "
              "Tensor"));
}

}  // namespace binding
