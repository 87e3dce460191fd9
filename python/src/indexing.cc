// x[...]: integers, slices with steps, None, Ellipsis, masks and tensors of positions, by the library's slices.
#include <fmt/format.h>

#include "common.h"

namespace binding {
namespace {

// One part of a key. A mask covers as many axes as it has, None none, the others one.
struct Part {
  enum class Kind { integer, slice, new_axis, rest, positions, mask } kind;
  std::int64_t begin = 0, end = 0, step = 1;
  pl::Tensor tensor;
  std::size_t axes() const {
    if (kind == Kind::new_axis || kind == Kind::rest) return 0;
    return kind == Kind::mask ? tensor.rank() : 1;
  }
  bool is_array() const { return kind == Kind::positions || kind == Kind::mask; }
};

std::int64_t slice_field(nb::handle object, const char* name, std::int64_t otherwise) {
  const nb::object field = object.attr(name);
  if (field.is_none()) return otherwise;
  const nb::object index = nb::steal(PyNumber_Index(field.ptr()));
  if (!index.is_valid()) throw nb::python_error();
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) return overflow > 0 ? INT64_MAX : INT64_MIN + 1;
  return value;
}

Part parse(nb::handle key) {
  if (key.is_none()) return {Part::Kind::new_axis};
  if (key.ptr() == Py_Ellipsis) return {Part::Kind::rest};
  if (PySlice_Check(key.ptr())) {
    Part part{Part::Kind::slice, slice_field(key, "start", pl::kOpen), slice_field(key, "stop", pl::kOpen),
              slice_field(key, "step", 1)};
    if (part.step == 0) throw nb::value_error("slice step cannot be zero");
    return part;
  }
  if (!PyBool_Check(key.ptr()) && !is_tensor(key.ptr()) && PyIndex_Check(key.ptr())) {
    const nb::object index = nb::steal(PyNumber_Index(key.ptr()));
    if (!index.is_valid()) PyErr_Clear();  // Such as an array of NumPy.
    if (index.is_valid()) return {Part::Kind::integer, PyLong_AsLongLong(index.ptr())};
  }
  Part part{Part::Kind::positions};
  part.tensor = to_tensor(key);
  if (part.tensor.dtype() == pl::boolean)
    part.kind = Part::Kind::mask;
  else if (part.tensor.size() == 0 && !pl::is_integer(part.tensor.dtype()))
    part.tensor = part.tensor.cast(pl::i64);
  else if (!pl::is_integer(part.tensor.dtype()))
    throw nb::index_error("index: positions are integers, slices, None, ..., or masks of bool");
  return part;
}

std::vector<Part> parse_all(const pl::Tensor& x, nb::handle key) {
  std::vector<Part> parts;
  std::size_t covered = 0, rests = 0;
  const auto add = [&](nb::handle each) {
    parts.push_back(parse(each));
    covered += parts.back().axes();
    rests += parts.back().kind == Part::Kind::rest;
  };
  if (PyTuple_Check(key.ptr()))
    for (nb::handle each : nb::borrow<nb::tuple>(key)) add(each);
  else
    add(key);
  if (covered > x.rank())
    throw nb::index_error(
        fmt::format("index: too many positions for shape {}: {} axes", x.shape().to_tuple_string(), covered).c_str());
  if (rests > 1) throw nb::index_error("index: \"...\" may stand once");
  if (rests == 0) parts.push_back({Part::Kind::rest});
  std::vector<Part> whole;
  for (Part& part : parts) {
    if (part.kind != Part::Kind::rest) {
      whole.push_back(std::move(part));
      continue;
    }
    for (std::size_t i = covered; i < x.rank(); ++i) whole.push_back({Part::Kind::slice, pl::kOpen, pl::kOpen, 1});
  }
  return whole;
}

// Positions below 0 count from the end; the library wants them from 0 on.
pl::Tensor from_zero(const pl::Tensor& positions, std::int64_t size) {
  const pl::Tensor wide = positions.cast(pl::i64);
  return pl::where(wide < 0, wide + size, wide);
}

// Integers and slices, each axis still there.
pl::Tensor sliced(const pl::Tensor& x, const std::vector<Part>& parts) {
  std::vector<std::int64_t> begin, end, step;
  bool is_whole = true;
  for (const Part& part : parts) {
    if (part.is_array())
      for (std::size_t i = 0; i < part.axes(); ++i)
        begin.push_back(pl::kOpen), end.push_back(pl::kOpen), step.push_back(1);
    if (part.kind == Part::Kind::slice) {
      begin.push_back(part.begin), end.push_back(part.end), step.push_back(part.step);
      is_whole = is_whole && part.begin == pl::kOpen && part.end == pl::kOpen && part.step == 1;
    }
    if (part.kind != Part::Kind::integer) continue;
    const std::int64_t size = x.shape()[begin.size()];
    if (size != pl::kUnknownSize && (part.begin < -size || part.begin >= size))
      throw nb::index_error(
          fmt::format("index: {} is outside of axis {} of size {}", part.begin, begin.size(), size).c_str());
    begin.push_back(part.begin);
    end.push_back(part.begin == -1 ? pl::kOpen : part.begin + 1);
    step.push_back(1);
    is_whole = false;
  }
  return is_whole ? x : pl::strided_slice(x, begin, end, step);
}

// Several tensors of positions side by side: one position in the axes they cover, taken as one.
pl::Tensor taken(pl::Tensor x, const std::vector<Part>& parts, std::size_t first, std::size_t count, std::size_t axis) {
  if (count == 1 && parts[first].kind == Part::Kind::mask && axis == 0) return pl::boolean_mask(x, parts[first].tensor);
  std::vector<std::int64_t> sizes(x.shape().begin(), x.shape().end());
  std::int64_t merged = 1;
  std::size_t covered = 0;
  pl::Tensor place;
  for (std::size_t i = first; i < first + count; ++i) {
    const Part& part = parts[i];
    std::int64_t size = 1;
    for (std::size_t k = 0; k < part.axes(); ++k) size *= sizes[axis + covered + k];
    pl::Tensor positions =
        part.kind == Part::Kind::mask ? pl::where_true(part.tensor.flatten()).flatten() : from_zero(part.tensor, size);
    place = place.is_empty_handle() ? positions : place * size + positions;
    merged *= size;
    covered += part.axes();
  }
  if (covered != 1) {
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(axis),
                sizes.begin() + static_cast<std::ptrdiff_t>(axis + covered));
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(axis), merged);
    x = x.reshape(pl::Shape(std::span<const std::int64_t>(sizes)));
  }
  return pl::gather(x, place, static_cast<std::int64_t>(axis));
}

pl::Tensor indexed(const pl::Tensor& x, const std::vector<Part>& parts) {
  pl::Tensor y = sliced(x, parts);
  std::size_t first = 0, count = 0, axis = 0, at = 0, extra = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].is_array()) {
      if (count > 0 && i != first + count)
        throw pl::Unsupported("index: tensors of positions with something between them are not offered; index twice");
      if (count == 0) first = i, axis = at;
      ++count;
    }
    at += parts[i].axes();
  }
  if (count > 0) {
    const std::size_t before = y.rank();
    std::size_t covered = 0;
    for (std::size_t i = first; i < first + count; ++i) covered += parts[i].axes();
    y = taken(std::move(y), parts, first, count, axis);
    extra = y.rank() + covered - before;  // Axes in place of those that were covered.
  }
  std::vector<std::int64_t> dropped, added;
  std::size_t place = 0, result = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    if (part.kind == Part::Kind::integer) dropped.push_back(static_cast<std::int64_t>(place++));
    if (part.kind == Part::Kind::slice) ++place, ++result;
    if (part.kind == Part::Kind::new_axis) added.push_back(static_cast<std::int64_t>(result++));
    if (part.is_array() && i == first) place += extra, result += extra;
  }
  if (!dropped.empty()) y = y.squeeze(pl::Axes(dropped));
  for (const std::int64_t each : added) y = y.expand_dims(each);
  return y;
}

}  // namespace

nb::object index_tensor(const pl::Tensor& x, nb::handle key) {
  const std::vector<Part> parts = parse_all(x, key);
  return wrap_tensor(computed(x, [&] { return indexed(x, parts); }));
}

}  // namespace binding
