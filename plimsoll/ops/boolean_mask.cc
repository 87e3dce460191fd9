// boolean_mask, where_true: results whose sizes depend on the contents of a mask.
#include <fmt/format.h>

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/ops/check_indices.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

TensorData<bool> mask_elements(const Tensor& mask, const char* where) {
  if (mask.is_empty_handle() || mask.is_disposed()) refuse_disposed(mask, where, "mask");
  if (mask.dtype() != boolean)
    throw InvalidArgument(fmt::format("{}: the mask is {}; compare it with something to have a boolean", where,
                                      dtype_name(mask.dtype())));
  return mask.data<bool>();
}

// The positions of true elements, in order, as i64 [count, width]; `write` stores one position in `width` elements.
template <class Write>
Tensor positions(const char* where, const Tensor& mask, const Shape& shape, std::span<const bool> elements,
                 const Write& write) {
  Tensor result = make_tensor({.op = where}, shape, i64, device_of(mask));
  const HostWrite filled(result);
  std::int64_t* to = filled.data<std::int64_t>();
  for (std::size_t i = 0; i < elements.size(); ++i)
    if (elements[i]) to = write(static_cast<std::int64_t>(i), to);
  return result;
}

}  // namespace

Tensor boolean_mask(const Tensor& x, const Tensor& mask) {
  require_tensor(x, "boolean_mask");
  const TensorData<bool> elements = mask_elements(mask, "boolean_mask");
  const Shape &shape = x.shape(), &leading = mask.shape();
  if (leading.rank() == 0 || leading.rank() > shape.rank() ||
      !std::equal(leading.begin(), leading.end(), shape.begin()))
    throw InvalidArgument(fmt::format("boolean_mask: mask {} against x {}; the mask's sizes must be x's first ones",
                                      leading.to_string(), shape.to_string()));
  const Tensor chosen = positions("boolean_mask", mask, {std::count(elements.begin(), elements.end(), true)}, elements,
                                  [](std::int64_t position, std::int64_t* to) {
                                    *to = position;
                                    return to + 1;
                                  });
  std::vector<std::int64_t> sizes(shape.begin() + leading.rank() - 1, shape.end());
  sizes[0] = static_cast<std::int64_t>(leading.size());
  return gather(x.reshape(Shape(sizes)), chosen);
}

Tensor where_true(const Tensor& mask) {
  const TensorData<bool> elements = mask_elements(mask, "where_true");
  const Shape& shape = mask.shape();
  const std::int64_t count = std::count(elements.begin(), elements.end(), true);
  return positions("where_true", mask, {count, shape.rank()}, elements, [&](std::int64_t position, std::int64_t* to) {
    for (std::size_t axis = shape.rank(); axis-- > 0; position /= shape[axis]) to[axis] = position % shape[axis];
    return to + shape.rank();
  });
}

}  // namespace plimsoll
