// x[...]: integers, slices with steps, None, Ellipsis, masks and tensors of positions, by the library's slices.
#include <fmt/format.h>

#include <algorithm>

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
    if (index.is_valid()) {
      int overflow = 0;
      const long long position = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
      if (overflow != 0) throw nb::index_error("index: a position beyond all axes");
      return {Part::Kind::integer, position};
    }
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
    if (rests == 1) whole.push_back({Part::Kind::rest});  // Of no axis, but tensors beside it are not side by side.
    for (std::size_t i = covered; i < x.rank(); ++i) whole.push_back({Part::Kind::slice, pl::kOpen, pl::kOpen, 1});
  }
  return whole;
}

void require_inside(std::int64_t position, std::size_t axis, std::int64_t size) {
  if (size != pl::kUnknownSize && (position < -size || position >= size))
    throw nb::index_error(fmt::format("index: {} is outside of axis {} of size {}", position, axis, size).c_str());
}

// Taken together with others a position outside of its axis would be one inside of another row.
void require_all_inside(const pl::Tensor& positions, std::size_t axis, std::int64_t size) {
  if (pl::is_symbolic(positions) || positions.size() == 0 || size == pl::kUnknownSize) return;
  const pl::Tensor wide = positions.cast(pl::i64);
  require_inside(pl::min(wide).item<std::int64_t>(), axis, size);
  require_inside(pl::max(wide).item<std::int64_t>(), axis, size);
}

// Positions below 0 count from the end; the library wants them from 0 on.
pl::Tensor from_zero(const pl::Tensor& positions, std::int64_t size) {
  const pl::Tensor wide = positions.cast(pl::i64);
  return size == pl::kUnknownSize ? wide : pl::where(wide < 0, wide + size, wide);
}

void require_fit(const pl::Tensor& mask, const pl::Shape& shape, std::size_t axis) {
  for (std::size_t i = 0; i < mask.rank(); ++i) {
    const std::int64_t has = mask.shape()[i], needs = shape[axis + i];
    if (has == 0) return;  // Of nothing, as NumPy has it.
    if (has != needs && has != pl::kUnknownSize && needs != pl::kUnknownSize)
      throw nb::index_error(fmt::format("index: a mask of shape {} does not fit shape {} from axis {} on",
                                        mask.shape().to_tuple_string(), shape.to_tuple_string(), axis)
                                .c_str());
  }
}

// Slices, and integers unless they stand beside tensors; each axis is still there.
pl::Tensor sliced(const pl::Tensor& x, const std::vector<Part>& parts, bool with_integers) {
  std::vector<std::int64_t> begin, end, step;
  bool is_whole = true;
  for (const Part& part : parts) {
    if (part.is_array() || (part.kind == Part::Kind::integer && !with_integers))
      for (std::size_t i = 0; i < part.axes(); ++i)
        begin.push_back(pl::kOpen), end.push_back(pl::kOpen), step.push_back(1);
    if (part.kind == Part::Kind::slice) {
      begin.push_back(part.begin), end.push_back(part.end), step.push_back(part.step);
      is_whole = is_whole && part.begin == pl::kOpen && part.end == pl::kOpen && part.step == 1;
    }
    if (part.kind != Part::Kind::integer || !with_integers) continue;
    require_inside(part.begin, begin.size(), x.shape()[begin.size()]);
    begin.push_back(part.begin);
    end.push_back(part.begin == -1 ? pl::kOpen : part.begin + 1);
    step.push_back(1);
    is_whole = false;
  }
  return is_whole ? x : pl::strided_slice(x, begin, end, step);
}

// Where a part that is not a slice stands: of the axes it covers, taken as one of this size, the positions.
pl::Tensor positions_of(const Part& part, const pl::Shape& shape, std::size_t axis, std::int64_t size) {
  if (part.kind == Part::Kind::integer) {
    require_inside(part.begin, axis, size);
    return pl::full(pl::Shape::scalar(), pl::Number(part.begin < 0 ? part.begin + size : part.begin), pl::i64);
  }
  if (part.kind == Part::Kind::positions) return from_zero(part.tensor, size);
  require_fit(part.tensor, shape, axis);
  return pl::where_true(part.tensor.flatten()).flatten();
}

// How tensors of positions and masks are taken: integers stand beside them as tensors do. What they give comes in their
// place when they stand side by side, else in front, as in NumPy.
struct Advanced {
  bool is_adjacent = true;
  std::size_t first = 0;           // Of the parts.
  std::vector<std::int64_t> axes;  // Covered.
  std::size_t num_results = 0;     // Axes in their place.
};

pl::Tensor taken(pl::Tensor x, const std::vector<Part>& parts, Advanced& advanced) {
  const pl::Shape shape = x.shape();
  const auto is_advanced = [](const Part& p) { return p.is_array() || p.kind == Part::Kind::integer; };
  const bool several = std::count_if(parts.begin(), parts.end(), is_advanced) > 1;
  pl::Tensor place;
  std::int64_t merged = 1;
  std::size_t at = 0, last = 0;
  for (std::size_t i = 0; i < parts.size(); at += parts[i].axes(), ++i) {
    if (!is_advanced(parts[i])) continue;
    if (advanced.axes.empty()) advanced.first = i;
    advanced.is_adjacent = advanced.is_adjacent && (advanced.axes.empty() || i == last + 1);
    last = i;
    std::int64_t size = 1;
    for (std::size_t k = 0; k < parts[i].axes(); ++k) {
      advanced.axes.push_back(static_cast<std::int64_t>(at + k));
      size = shape[at + k] == pl::kUnknownSize ? pl::kUnknownSize : size * shape[at + k];
    }
    if (several && parts[i].kind == Part::Kind::positions) require_all_inside(parts[i].tensor, at, size);
    const pl::Tensor positions = positions_of(parts[i], shape, at, size);
    place = place.is_empty_handle() ? positions : place * size + positions;
    merged *= size;
  }
  advanced.num_results = place.rank();
  std::size_t axis = static_cast<std::size_t>(advanced.axes[0]);
  if (!advanced.is_adjacent) {  // The covered axes to the front.
    std::vector<std::int64_t> order = advanced.axes;
    for (std::int64_t k = 0; k < static_cast<std::int64_t>(shape.rank()); ++k)
      if (std::find(advanced.axes.begin(), advanced.axes.end(), k) == advanced.axes.end()) order.push_back(k);
    x = x.transpose(order);
    axis = 0;
  }
  if (advanced.axes.size() > 1) {
    std::vector<std::int64_t> sizes(x.shape().begin(), x.shape().end());
    const auto begin = sizes.begin() + static_cast<std::ptrdiff_t>(axis);
    sizes.insert(sizes.erase(begin, begin + static_cast<std::ptrdiff_t>(advanced.axes.size())), merged);
    x = x.reshape(pl::Shape(std::span<const std::int64_t>(sizes)));
  }
  try {
    return pl::gather(x, place, static_cast<std::int64_t>(axis));
  } catch (const pl::InvalidArgument& outside) {
    throw nb::index_error(outside.what());
  }
}

pl::Tensor with_tensors(const pl::Tensor& x, const std::vector<Part>& parts) {
  Advanced advanced;
  pl::Tensor y = taken(sliced(x, parts, false), parts, advanced);
  std::size_t result = advanced.is_adjacent ? 0 : advanced.num_results;
  std::vector<std::int64_t> added;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kind == Part::Kind::slice) ++result;
    if (parts[i].kind == Part::Kind::new_axis) added.push_back(static_cast<std::int64_t>(result++));
    if (i == advanced.first && advanced.is_adjacent) result += advanced.num_results;
  }
  for (const std::int64_t each : added) y = y.expand_dims(each);
  return y;
}

pl::Tensor indexed(const pl::Tensor& x, const std::vector<Part>& parts) {
  const bool has_mask_first = !parts.empty() && parts[0].kind == Part::Kind::mask &&
                              std::all_of(parts.begin() + 1, parts.end(), [](const Part& p) {
                                return p.kind == Part::Kind::slice || p.kind == Part::Kind::rest;
                              });
  if (has_mask_first) require_fit(parts[0].tensor, x.shape(), 0);
  if (has_mask_first && !(parts[0].tensor.shape().is_known() && parts[0].tensor.size() == 0))
    return pl::boolean_mask(sliced(x, parts, false), parts[0].tensor);
  for (const Part& part : parts)
    if (part.is_array()) return with_tensors(x, parts);
  pl::Tensor y = sliced(x, parts, true);
  std::vector<std::int64_t> dropped, added;
  std::int64_t place = 0, result = 0;
  for (const Part& part : parts) {
    if (part.kind == Part::Kind::integer) dropped.push_back(place++);
    if (part.kind == Part::Kind::slice) ++place, ++result;
    if (part.kind == Part::Kind::new_axis) added.push_back(result++);
  }
  if (!dropped.empty()) y = y.squeeze(pl::Axes(dropped));
  for (const std::int64_t each : added) y = y.expand_dims(each);
  return y;
}

}  // namespace

nb::object index_tensor(const pl::Tensor& x, nb::handle key) {
  // One truth for the whole tensor: all of it along a new axis, or nothing.
  const auto mask = PyBool_Check(key.ptr()) ? std::optional(to_tensor(key)) : tensor_of(key);
  if (mask && mask->dtype() == pl::boolean && mask->rank() == 0 && !pl::is_symbolic(*mask)) {
    const pl::Tensor whole = x.expand_dims(0);
    return wrap_tensor(mask->item<bool>() ? whole : whole.slice({0}, {0}));
  }
  const std::vector<Part> parts = parse_all(x, key);
  return wrap_tensor(computed(x, [&] { return indexed(x, parts); }));
}

}  // namespace binding
