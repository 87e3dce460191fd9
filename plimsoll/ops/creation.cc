#include "plimsoll/ops/creation.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/device/config.h"
#include "plimsoll/device/device.h"
#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll {
namespace {

const Shape& known(const Shape& shape, const char* where) {
  if (!shape.is_known())
    throw InvalidArgument(fmt::format("{}: shape {} has unknown sizes; give every size", where, shape.to_string()));
  return shape;
}

Tensor filled(const char* op, const Shape& given, const Number& value, DType dtype) {
  const Shape shape = known(given.or_scalar(), op);
  if (ThreadContext::current().tracer) [[unlikely]]
    return creation_detail::fill_node(op, shape, dtype, value);
  const Origin origin{.op = op, .category = Category::kInputs};
  const std::uint64_t element = value.to(dtype);
  if (config::get_lazy_allocation()) {
    StorageRef storage =
        Storage::take_lazily(current_device(), shape.size() * size_of(dtype), block_label(origin, shape, dtype),
                             {.pattern = element, .element_bytes = static_cast<std::uint8_t>(size_of(dtype))});
    return make_tensor_on(std::move(storage), 0, shape, dtype, origin);
  }
  Tensor result = make_tensor(origin, shape, dtype, current_device());
  const TensorView out = writable(result);
  if (out.size() == 0) return result;
  if (!device_of(result).is_host())
    device_of(result).backend().fill(out.bytes(), element, size_of(dtype), out.nbytes());
  else if (element == 0)
    std::memset(out.bytes(), 0, out.nbytes());
  else
    copy(ConstTensorView(&element, 0, dtype, Shape::scalar()), out);
  return result;
}

// In a graph that is being built, a node with these elements.
Tensor made(Tensor result, const std::string& name = "") {
  if (Tracer* const tracer = ThreadContext::current().tracer) [[unlikely]]
    return tracer->add_constant(result, name);
  set_name(result, name);
  return result;
}

}  // namespace

namespace creation_detail {

void refuse_ragged(std::size_t first, std::size_t other) {
  throw InvalidArgument(
      fmt::format("constant: braces of {} and of {} elements at one depth; give all the same number", first, other));
}

Tensor from_elements(const void* elements, std::size_t count, DType dtype, const Shape& natural,
                     const ConstantOptions& options) {
  const Shape shape = known(options.shape.is_set() ? options.shape : natural, "constant");
  if (shape.size() != count && count != 1)
    throw InvalidArgument(
        fmt::format("constant: {} values do not fill shape {} of {} elements", count, shape.to_string(), shape.size()));
  Tensor result = make_tensor({.op = "constant", .category = Category::kInputs}, shape, options.dtype.value_or(dtype),
                              current_device());
  const ConstTensorView from(elements, 0, dtype, shape.size() == count ? shape : Shape::scalar());
  if (count > 0 && shape.size() > 0) copy(from, HostWrite(result));
  return made(std::move(result), options.name);
}

}  // namespace creation_detail

Tensor from_vector(const std::vector<bool>& values, const Shape& shape) {
  const std::vector<std::uint8_t> flat(values.begin(), values.end());
  return creation_detail::from_elements(flat.data(), flat.size(), boolean, {flat.size()}, {.shape = shape});
}

Tensor wrap(void* memory, const Shape& shape, DType dtype, std::function<void(void*)> deleter) {
  const Shape& checked = known(shape, "wrap");
  const std::size_t bytes = checked.size() * size_of(dtype);
  if (!memory && bytes > 0)
    throw InvalidArgument(fmt::format("wrap: a null pointer cannot hold shape {}", shape.to_string()));
  if (reinterpret_cast<std::uintptr_t>(memory) % size_of(dtype) != 0)
    throw InvalidArgument(
        fmt::format("wrap: the pointer is not aligned to the {} bytes of {}", size_of(dtype), dtype_name(dtype)));
  return make_tensor_on(Storage::wrap(current_host_device(), memory, bytes, std::move(deleter)), 0, checked, dtype,
                        {.op = "wrap", .category = Category::kInputs});
}

Tensor zeros(const Shape& shape, DType dtype) { return filled("zeros", shape, 0, dtype); }
Tensor ones(const Shape& shape, DType dtype) { return filled("ones", shape, 1, dtype); }
Tensor full(const Shape& shape, const Number& value) { return filled("full", shape, value, value.dtype()); }
Tensor full(const Shape& shape, const Number& value, DType dtype) { return filled("full", shape, value, dtype); }

Tensor arange(const Number& end) { return arange(Number(0), end); }

Tensor arange(const Number& begin, const Number& end, const Number& step) {
  const DType dtype = begin.is_integer() && step.is_integer() ? end.dtype()
                      : begin.is_integer()                    ? step.dtype()
                                                              : begin.dtype();
  const double count = std::ceil((end.as_double() - begin.as_double()) / step.as_double());
  if (!(step.as_double() != 0) || !std::isfinite(count))
    throw InvalidArgument(
        fmt::format("arange: from {} to {} by {} does not end", begin.as_double(), end.as_double(), step.as_double()));
  Tensor result = make_tensor({.op = "arange", .category = Category::kInputs},
                              {static_cast<std::int64_t>(std::max(count, 0.0))}, dtype, current_device());
  HostWrite out(result);
  const auto first = static_cast<std::int64_t>(begin.to(i64)), by = static_cast<std::int64_t>(step.to(i64));
  for (std::size_t i = 0; i < out.view().size(); ++i) {
    const std::uint64_t element = dtype == i64
                                      ? static_cast<std::uint64_t>(first + static_cast<std::int64_t>(i) * by)
                                      : Number(begin.as_double() + static_cast<double>(i) * step.as_double()).to(dtype);
    std::memcpy(out.bytes() + i * size_of(dtype), &element, size_of(dtype));
  }
  out.finish();
  return made(std::move(result));
}

Tensor linspace(double begin, double end, std::int64_t count, DType dtype) {
  if (count < 0) throw InvalidArgument(fmt::format("linspace: {} elements; give 0 or more", count));
  Tensor result = make_tensor({.op = "linspace", .category = Category::kInputs}, {count}, dtype, current_device());
  HostWrite out(result);
  for (std::int64_t i = 0; i < count; ++i) {
    const double share = count == 1 ? 0 : static_cast<double>(i) / static_cast<double>(count - 1);
    // The last element is exactly the end, without rounding error.
    const std::uint64_t element = Number(share == 1 ? end : begin + (end - begin) * share).to(dtype);
    std::memcpy(out.bytes() + static_cast<std::size_t>(i) * size_of(dtype), &element, size_of(dtype));
  }
  out.finish();
  return made(std::move(result));
}

Tensor eye(std::int64_t rows, std::int64_t columns, DType dtype) {
  if (columns == -1) columns = rows;
  if (rows < 0 || columns < 0)
    throw InvalidArgument(fmt::format("eye: {} rows, {} columns; give 0 or more", rows, columns));
  Tensor result = make_tensor({.op = "eye", .category = Category::kInputs}, {rows, columns}, dtype, current_device());
  HostWrite out(result);
  if (out.view().size() > 0) std::memset(out.bytes(), 0, out.view().nbytes());
  const std::uint64_t one = Number(1).to(dtype);
  for (std::int64_t i = 0; i < std::min(rows, columns); ++i)
    std::memcpy(out.bytes() + static_cast<std::size_t>(i * columns + i) * size_of(dtype), &one, size_of(dtype));
  out.finish();
  return made(std::move(result));
}

}  // namespace plimsoll
