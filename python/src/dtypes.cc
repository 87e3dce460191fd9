// dtypes, sizes, shapes, axes, trees: what Python writes where the library has types of its own.
#include <fmt/format.h>

#include <cmath>

#include "common.h"
#include "plimsoll/base/names.h"

namespace binding {
namespace {

struct DTypeObject {
  pl::DType dtype;
};

PyObject* dtype_objects[pl::kNumDTypes];

// Rank 0: boolean, 1: integers, 2: floats.
int kind_of(pl::DType dtype) { return pl::is_floating(dtype) ? 2 : pl::is_integer(dtype) ? 1 : 0; }

std::int64_t to_integer(nb::handle object, const char* what) {
  const nb::object index = nb::steal(PyNumber_Index(object.ptr()));
  if (!index.is_valid()) {
    PyErr_Clear();
    throw nb::type_error(
        fmt::format("{}: expected an integer, not {}", what, nb::type_name(object.type()).c_str()).c_str());
  }
  const long long value = PyLong_AsLongLong(index.ptr());
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  return value;
}

bool is_sequence(nb::handle object) { return PyTuple_Check(object.ptr()) || PyList_Check(object.ptr()); }

}  // namespace

PyTypeObject* dtype_type = nullptr;

nb::object wrap_dtype(pl::DType dtype) { return nb::borrow(dtype_objects[static_cast<std::size_t>(dtype)]); }

pl::DType to_dtype(nb::handle object) {
  if (Py_TYPE(object.ptr()) == dtype_type) return nb::inst_ptr<DTypeObject>(object)->dtype;
  if (PyUnicode_Check(object.ptr())) {
    const auto text = nb::cast<std::string_view>(object);
    if (text == "int") return pl::i64;  // As the types of that name.
    if (text == "float") return pl::f64;
    return pl::parse_dtype(text);
  }
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyBool_Type)) return pl::boolean;
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyLong_Type)) return pl::i64;
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyFloat_Type)) return pl::f64;
  for (const char* attribute : {"name", "__name__"}) {  // NumPy's dtypes, and its scalar types.
    const nb::object name = nb::getattr(object, attribute, nb::none());
    if (!PyUnicode_Check(name.ptr())) continue;
    std::string text = nb::cast<std::string>(name);
    if (text == "bool_") text = "bool";
    return pl::parse_dtype(text);
  }
  throw nb::type_error(
      fmt::format("dtype: {} is none; use pl.float32, \"float32\" or NumPy's", nb::repr(object).c_str()).c_str());
}

std::optional<pl::DType> optional_dtype(nb::handle object) {
  if (object.is_none()) return std::nullopt;
  return to_dtype(object);
}

std::optional<pl::DType> promoted(pl::DType a, pl::DType b) {
  if (a == b) return a;
  const int kind_a = kind_of(a), kind_b = kind_of(b);
  if (kind_a != kind_b) return kind_a > kind_b ? a : b;
  if (kind_a == 2) return pl::size_of(a) == pl::size_of(b) ? pl::f32 : pl::size_of(a) > pl::size_of(b) ? a : b;
  if (a == pl::u8 || b == pl::u8) {  // With i8 both need one more bit.
    const pl::DType other = a == pl::u8 ? b : a;
    return other == pl::i8 ? pl::i16 : other;
  }
  return pl::size_of(a) > pl::size_of(b) ? a : b;
}

std::size_t to_bytes(nb::handle size) {
  if (PyUnicode_Check(size.ptr())) return pl::parse_bytes(nb::cast<std::string_view>(size));
  const double number = PyFloat_Check(size.ptr()) ? PyFloat_AsDouble(size.ptr()) : 0.5;  // 64e6 is a number of bytes.
  const bool is_whole = number == std::floor(number) && std::abs(number) < 9e18;
  const std::int64_t bytes = is_whole ? static_cast<std::int64_t>(number) : to_integer(size, "size");
  if (bytes < 0)
    throw pl::InvalidArgument(fmt::format("size: {} bytes are below 0; give \"64MiB\" or a number", bytes));
  return static_cast<std::size_t>(bytes);
}

std::optional<std::size_t> optional_bytes(nb::handle size) {
  if (size.is_none()) return std::nullopt;
  return to_bytes(size);
}

std::vector<std::int64_t> to_integers(nb::handle numbers) {
  std::vector<std::int64_t> result;
  if (!is_sequence(numbers)) return {to_integer(numbers, "sizes")};
  for (nb::handle each : nb::borrow<nb::sequence>(numbers)) result.push_back(to_integer(each, "sizes"));
  return result;
}

pl::Shape to_shape(nb::handle shape) {
  if (shape.is_none()) return {};
  if (!is_sequence(shape) && !PyUnicode_Check(shape.ptr()) &&
      nb::hasattr(shape, "__iter__")) {  // An array, an iterator.
    const nb::object list =
        nb::hasattr(shape, "tolist") ? nb::object(shape.attr("tolist")()) : nb::object(nb::list(shape));
    return to_shape(list);
  }
  if (!is_sequence(shape)) return pl::Shape{to_integer(shape, "shape")};
  std::vector<std::int64_t> sizes;
  for (nb::handle each : nb::borrow<nb::sequence>(shape))
    sizes.push_back(each.is_none() ? pl::kUnknownSize : to_integer(each, "shape"));
  return pl::Shape(std::span<const std::int64_t>(sizes));
}

pl::Shape to_sizes(nb::handle shape, const char* what) {
  const pl::Shape sizes = to_shape(shape).or_scalar();
  if (!sizes.is_known())
    throw pl::InvalidArgument(fmt::format("{}: shape {}: sizes are 0 or more", what, nb::repr(shape).c_str()));
  return sizes;
}

nb::tuple wrap_shape(const pl::Shape& shape) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(shape.rank())));
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    const std::int64_t size = shape[axis];
    PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(axis),
                    size == pl::kUnknownSize ? Py_NewRef(Py_None) : PyLong_FromLongLong(size));
  }
  return nb::borrow<nb::tuple>(tuple);
}

pl::Axes to_axes(nb::handle axes) {
  if (axes.is_none()) return {};
  return pl::Axes(to_integers(axes));
}

pl::CallSite python_site() {
  PyFrameObject* frame = PyEval_GetFrame();
  if (frame == nullptr) return {};
  const nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  const nb::object file = code.attr("co_filename");
  return {pl::intern(nb::cast<std::string_view>(file)), static_cast<std::uint32_t>(PyFrame_GetLineNumber(frame))};
}

std::string to_path(nb::handle path) {
  if (path.is_none()) return "";
  const nb::object text = nb::steal(PyOS_FSPath(path.ptr()));
  if (!text.is_valid()) throw nb::python_error();
  if (!PyUnicode_Check(text.ptr())) throw nb::type_error("a path is text or a pathlib.Path");
  return nb::cast<std::string>(text);
}

nb::list wrap_front(const std::vector<pl::BudgetPoint>& front) {
  nb::list list;
  for (const pl::BudgetPoint& each : front) list.append(nb::cast(each));
  return list;
}

pl::TensorTree to_tree(nb::handle object) {
  const Nesting nesting;
  if (nb::isinstance<pl::TensorTree>(object)) return nb::cast<pl::TensorTree>(object);
  pl::TensorTree tree;
  if (PyDict_Check(object.ptr())) {
    for (auto [key, value] : nb::borrow<nb::dict>(object)) tree.insert(nb::cast<std::string>(key), to_tree(value));
    return tree;
  }
  if (is_sequence(object) && !tensor_of(object)) {
    for (nb::handle each : nb::borrow<nb::sequence>(object)) tree.append(to_tree(each));
    return tree;
  }
  return pl::TensorTree(to_tensor(object));
}

nb::object wrap_tree(const pl::TensorTree& tree) {
  if (tree.is_tensor()) return wrap_tensor(tree.tensor());
  if (tree.is_map()) {
    nb::dict result;
    for (std::size_t i = 0; i < tree.size(); ++i) result[tree.keys()[i].c_str()] = wrap_tree(tree[i]);
    return result;
  }
  nb::list result;
  for (std::size_t i = 0; i < tree.size(); ++i) result.append(wrap_tree(tree[i]));
  return result;
}

void bind_dtypes(Module& m) {
  nb::class_<DTypeObject> type(m, "DType", "The type of a tensor's elements; equal to its name and to NumPy's.");
  dtype_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  type.def_prop_ro("name", [](const DTypeObject& d) { return pl::dtype_name(d.dtype); })
      .def_prop_ro("itemsize", [](const DTypeObject& d) { return pl::size_of(d.dtype); })
      .def_prop_ro("is_floating", [](const DTypeObject& d) { return pl::is_floating(d.dtype); })
      .def_prop_ro("is_integer", [](const DTypeObject& d) { return pl::is_integer(d.dtype); })
      .def("__repr__", [](const DTypeObject& d) { return std::string("plimsoll.") + pl::dtype_name(d.dtype); })
      .def("__str__", [](const DTypeObject& d) { return pl::dtype_name(d.dtype); })
      .def("__hash__", [](const DTypeObject& d) { return nb::hash(nb::str(pl::dtype_name(d.dtype))); })
      .def("__reduce__",
           [](const DTypeObject& d) {
             return nb::make_tuple(nb::module_::import_("plimsoll._support").attr("dtype_of_name"),
                                   nb::make_tuple(pl::dtype_name(d.dtype)));
           })
      .def(
          "__eq__",
          [](const DTypeObject& d, nb::handle other) {
            if (Py_TYPE(other.ptr()) == dtype_type) return nb::inst_ptr<DTypeObject>(other)->dtype == d.dtype;
            try {
              return !other.is_none() && to_dtype(other) == d.dtype;
            } catch (const std::exception&) {
              return false;
            }
          },
          nb::arg("other").none());
  for (std::size_t i = 0; i < pl::kNumDTypes; ++i) {
    const auto dtype = static_cast<pl::DType>(i);
    const nb::object object = nb::cast(DTypeObject{dtype});
    dtype_objects[i] = object.inc_ref().ptr();
    m.attr(pl::dtype_name(dtype)) = object;
  }
  m.def(
      "dtype", [](nb::handle object) { return wrap_dtype(to_dtype(object)); }, nb::arg("dtype"));
  m.def(
      "result_type_of",
      [](nb::handle a, nb::handle b) {
        const auto result = promoted(to_dtype(a), to_dtype(b));
        return wrap_dtype(*result);
      },
      nb::sig("def result_type_of(a: DTypeLike, b: DTypeLike, /) -> DType"), "The dtype of an operation on these two.");
  m.def("parse_bytes", &to_bytes, nb::arg("size"));
  m.def(
      "format_bytes", [](nb::handle size) { return pl::format_bytes(to_bytes(size)); }, nb::arg("bytes"));
}

}  // namespace binding
