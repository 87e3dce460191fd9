// Tensor: the class that Python sees. Its operators are in operators.cc, x[...] in indexing.cc, exchange in
// exchange.cc.
#include <fmt/format.h>

#include <cmath>

#include "exchange.h"

namespace binding {
namespace {

template <class T>
nb::object element(const T& value) {
  if constexpr (std::is_same_v<T, bool>)
    return nb::bool_(value);
  else if constexpr (std::is_same_v<T, pl::float16> || std::is_same_v<T, pl::bfloat16>)
    return nb::float_(static_cast<double>(static_cast<float>(value)));
  else if constexpr (std::is_floating_point_v<T>)
    return nb::float_(static_cast<double>(value));
  else
    return nb::int_(static_cast<long long>(value));
}

template <class T>
nb::object listed(const T*& from, const pl::Shape& shape, std::size_t axis) {
  if (axis == shape.rank()) return element(*from++);
  nb::list list;
  for (std::int64_t i = 0; i < shape[axis]; ++i) list.append(listed(from, shape, axis + 1));
  return list;
}

nb::object to_list(const pl::Tensor& x) {
  return pl::visit_dtype(x.dtype(), [&]<class T>(pl::TypeTag<T>) {
    const auto data = x.data<T>();
    const T* from = data.data();
    return listed(from, x.shape(), 0);
  });
}

nb::object item(const pl::Tensor& x) {
  if (x.size() != 1)
    throw pl::InvalidArgument(
        fmt::format("item: a tensor of shape {} has more or less than one element", x.shape().to_tuple_string()));
  return pl::visit_dtype(x.dtype(), [&]<class T>(pl::TypeTag<T>) { return element(x.item<T>()); });
}

// The arguments of x.reshape(2, 3), x.transpose(1, 0): one sequence, or several numbers.
nb::object one_or_all(const nb::args& arguments) {
  if (arguments.size() == 1) return nb::borrow(arguments[0]);
  return nb::borrow(arguments);
}

nb::object to_numpy(const pl::Tensor& x, nb::handle self) {
  {
    pl::BytesLock lock;
    x.view(lock);  // Refuses what has no elements, by its own error.
  }
  const nb::module_ numpy = nb::module_::import_("numpy");
  if (x.dtype() != pl::bf16) return numpy.attr("asarray")(nb::steal(PyMemoryView_FromObject(self.ptr())));
  // A buffer of the bits, and the type that ml_dtypes has for them.
  const nb::object bits = nb::cast(HalfBits{x});
  const nb::object type = nb::module_::import_("ml_dtypes").attr("bfloat16");
  return numpy.attr("asarray")(nb::steal(PyMemoryView_FromObject(bits.ptr()))).attr("view")(type);
}

int get_half_bits(PyObject* self, Py_buffer* view, int flags) {
  try {
    if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE) throw nb::buffer_error("a tensor does not change");
    const pl::Tensor& x = nb::inst_ptr<HalfBits>(self)->tensor;
    auto pinned = std::make_unique<Pinned>(x);
    fill_buffer(self, view, flags, x, "H", *pinned);
    view->internal = pinned.release();
    return 0;
  } catch (...) {
    view->obj = nullptr;
    set_python_error();
    return -1;
  }
}

PyType_Slot half_bits_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_half_bits)},
                                 {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_buffer)},
                                 {0, nullptr}};

template <class Class, class Get>
void bind_facts(Class& type, Get get) {
  type.def_prop_ro(
          "shape", [get](nb::handle self) { return wrap_shape(get(self).shape()); },
          nb::sig("def shape(self) -> tuple[int, ...]"),
          "Sizes of the axes; None for one that a graph does not know yet.")
      .def_prop_ro(
          "dtype", [get](nb::handle self) { return wrap_dtype(get(self).dtype()); },
          nb::sig("def dtype(self) -> DType"))
      .def_prop_ro("ndim", [get](nb::handle self) { return get(self).rank(); })
      .def_prop_ro(
          "size", [get](nb::handle self) { return get(self).size(); }, "Elements.")
      .def_prop_ro("nbytes", [get](nb::handle self) { return get(self).nbytes(); })
      .def_prop_ro("itemsize", [get](nb::handle self) { return pl::size_of(get(self).dtype()); })
      .def_prop_ro("device", [get](nb::handle self) { return get(self).device(); })
      .def_prop_ro(
          "T",
          [get](nb::handle self) {
            const pl::Tensor x = get(self);
            return wrap_tensor(computed(x, [&] { return x.transpose(); }));
          },
          nb::sig("def T(self) -> Tensor"), "The axes in reverse.")
      .def(
          "item", [get](nb::handle self) { return item(get(self)); }, nb::sig("def item(self) -> bool | int | float"),
          "The one element as a number of Python.")
      .def(
          "tolist", [get](nb::handle self) { return to_list(get(self)); }, nb::sig("def tolist(self) -> object"),
          "Nested lists of numbers.")
      .def(
          "numpy", [get](nb::handle self) { return to_numpy(get(self), wrap_tensor(get(self))); },
          nb::sig("def numpy(self) -> numpy.ndarray"),
          "The elements as a read-only array of NumPy, on the same memory. While it lives they stay charged.")
      .def("tobytes",
           [get](nb::handle self) {
             const Pinned pinned(get(self));
             return nb::bytes(static_cast<const char*>(pinned.data), get(self).nbytes());
           })
      .def(
          "__array__",
          [get](nb::handle self, nb::handle dtype, std::optional<bool> copy) {
            nb::object array = to_numpy(get(self), wrap_tensor(get(self)));
            const bool converts = !dtype.is_none() && !nb::cast<bool>(array.attr("dtype").attr("__eq__")(dtype));
            if (converts && copy == false)
              throw nb::value_error("__array__: another dtype takes a copy, and copy=False forbids it");
            if (converts) return nb::object(array.attr("astype")(dtype));
            return copy == true ? nb::object(array.attr("copy")()) : array;
          },
          nb::arg("dtype").none() = nb::none(), nb::arg("copy").none() = nb::none());
}

// numpy.sum(x) and its like call x.sum(axis=None, dtype=None, out=None), numpy.std(x) with ddof.
void as_numpy_asks(nb::kwargs& named) {
  for (const char* unused : {"out", "dtype"})
    if (named.contains(unused) && nb::object(named[unused]).is_none()) nb::del(named[unused]);
  if (!named.contains("ddof")) return;
  named["correction"] = named["ddof"];
  nb::del(named["ddof"]);
}

void bind_reductions(nb::class_<pl::Tensor>& type) {
  // x.sum(axis=0, keepdims=True) is plimsoll.sum(x, axis=0, keepdims=True): one way to do it, found when it is asked
  // for.
  for (const char* name : {"sum", "mean", "prod", "max", "min", "any", "all", "var", "std", "argmax", "argmin",
                           "cumsum", "sort", "argsort", "squeeze", "clip", "round", "repeat", "take"})
    type.def(
        name,
        [name](nb::handle self, const nb::args& arguments, nb::kwargs named) {
          as_numpy_asks(named);
          return nb::module_::import_("plimsoll").attr(name)(self, *arguments, **named);
        },
        nb::sig((std::string("def ") + name + "(self, *args: object, **kwargs: object) -> Tensor").c_str()));
}

void bind_shaping(nb::class_<pl::Tensor>& type) {
  type.def(
          "reshape",
          [](const pl::Tensor& x, const nb::args& shape) {
            const pl::Shape sizes = to_shape(one_or_all(shape));
            return wrap_tensor(computed(x, [&] { return x.reshape(sizes.or_scalar()); }));
          },
          nb::sig("def reshape(self, *shape: int | typing.Sequence[int]) -> Tensor"),
          "The same elements under another shape; one size may be -1.\n\n>>> pl.arange(6).reshape(2, -1).shape\n(2, 3)")
      .def(
          "transpose",
          [](const pl::Tensor& x, const nb::args& axes) {
            std::vector<std::int64_t> permutation;
            if (axes.size() > 0 && !nb::borrow(one_or_all(axes)).is_none()) permutation = to_integers(one_or_all(axes));
            return wrap_tensor(computed(x, [&] { return x.transpose(permutation); }));
          },
          nb::sig("def transpose(self, *axes: int | typing.Sequence[int]) -> Tensor"))
      .def(
          "flatten", [](const pl::Tensor& x) { return wrap_tensor(x.flatten()); },
          nb::sig("def flatten(self) -> Tensor"))
      .def(
          "astype",
          [](const pl::Tensor& x, nb::handle dtype, bool copy) {
            const pl::DType wanted = to_dtype(dtype);
            if (wanted == x.dtype() && !copy) return wrap_tensor(x);
            return wrap_tensor(computed(x, [&] { return wanted == x.dtype() ? x.clone() : x.cast(wanted); }));
          },
          nb::arg("dtype"), nb::arg("copy") = true,
          nb::sig("def astype(self, dtype: DTypeLike, copy: bool = True) -> Tensor"))
      .def(
          "cast",
          [](const pl::Tensor& x, nb::handle dtype) {
            const pl::DType wanted = to_dtype(dtype);
            return wrap_tensor(computed(x, [&] { return x.cast(wanted); }));
          },
          nb::arg("dtype"), nb::sig("def cast(self, dtype: DTypeLike) -> Tensor"))
      .def(
          "to",
          [](const pl::Tensor& x, const std::string& device) {
            return wrap_tensor(unlocked([&] { return x.to(device); }));
          },
          nb::arg("device"), nb::sig("def to(self, device: str) -> Tensor"),
          "On that device: itself when it is there already.")
      .def(
          "copy", [](const pl::Tensor& x) { return wrap_tensor(unlocked([&] { return x.clone(); })); },
          nb::sig("def copy(self) -> Tensor"))
      .def("__copy__", [](const pl::Tensor& x) { return wrap_tensor(x); })
      .def("__deepcopy__",
           [](const pl::Tensor& x, nb::handle) { return wrap_tensor(unlocked([&] { return x.clone(); })); })
      .def_prop_ro(
          "mT",
          [](const pl::Tensor& x) {
            if (x.rank() < 2) throw pl::InvalidArgument("mT: a tensor of fewer than two axes has no matrices");
            std::vector<std::int64_t> axes;
            for (std::size_t i = 0; i < x.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
            std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
            return wrap_tensor(computed(x, [&] { return x.transpose(axes); }));
          },
          nb::sig("def mT(self) -> Tensor"), "Each matrix transposed.");
}

}  // namespace

PyTypeObject* tensor_type = nullptr;
PyTypeObject* variable_type = nullptr;

PyObject* new_tensor(pl::Tensor&& tensor) {
  nb::object made = nb::inst_alloc(nb::handle(reinterpret_cast<PyObject*>(tensor_type)));
  new (nb::inst_ptr<pl::Tensor>(made)) pl::Tensor(std::move(tensor));
  nb::inst_mark_ready(made);
  return made.release().ptr();
}

nb::object wrap_tensor(pl::Tensor tensor) {
  if (tensor.is_empty_handle()) return nb::none();
  return nb::steal(new_tensor(std::move(tensor)));
}

nb::list wrap_tensors(const std::vector<pl::Tensor>& tensors) {
  nb::list list;
  for (const pl::Tensor& each : tensors) list.append(wrap_tensor(each));
  return list;
}

const pl::Tensor& tensor_in(PyObject* object) { return *nb::inst_ptr<pl::Tensor>(object); }

std::optional<pl::Tensor> tensor_of(nb::handle object) {
  if (is_tensor(object.ptr())) return tensor_in(object.ptr());
  if (PyObject_TypeCheck(object.ptr(), tensor_type)) return *nb::inst_ptr<pl::Tensor>(object);
  if (variable_type != nullptr && PyObject_TypeCheck(object.ptr(), variable_type))
    return pl::Tensor(*nb::inst_ptr<pl::Variable>(object));
  return std::nullopt;
}

void bind_tensor(Module& m) {
  nb::class_<HalfBits>(m, "HalfBits", nb::type_slots(half_bits_slots), "The bits of a bfloat16 tensor, as a buffer.");
  nb::class_<pl::Tensor> type(m, "Tensor", nb::type_slots(number_slots), nb::is_weak_referenceable(),
                              "Elements of one dtype under a shape, on a device; they never change.\n\n>>> x = "
                              "pl.asarray([[1.0, 2.0], [3.0, 4.0]])\n>>> (x + 1).sum(axis=1).tolist()\n[5.0, 9.0]");
  tensor_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  const auto get = [](nb::handle self) { return *nb::inst_ptr<pl::Tensor>(self); };
  type.def(
      "__init__",
      [](pl::Tensor* self, nb::handle object, nb::handle dtype) {
        new (self) pl::Tensor(to_tensor(object, optional_dtype(dtype)));
      },
      nb::arg("obj").none(), nb::arg("dtype").none() = nb::none(),
      nb::sig("def __init__(self, obj: TensorLike, dtype: DTypeLike | None = None) -> None"), "As asarray().");
  bind_facts(type, get);
  bind_reductions(type);
  bind_shaping(type);
  type.attr("__array_priority__") = 100.0;  // Arrays of NumPy leave operators to us.
  type.def("__repr__", [](const pl::Tensor& x) { return pl::to_string(x); })
      .def_prop_ro("name", &pl::Tensor::name)
      .def_prop_ro("id", &pl::Tensor::id)
      .def_prop_ro("is_disposed", &pl::Tensor::is_disposed)
      .def_prop_ro(
          "is_symbolic", [](const pl::Tensor& x) { return pl::is_symbolic(x); }, "Whether a graph will give it.")
      .def("dispose", &pl::Tensor::dispose, "Gives its bytes back now; a second time does nothing.")
      .def(
          "__iter__",
          [](nb::handle self) {
            const pl::Tensor& x = tensor_in(self.ptr());
            if (x.rank() == 0) throw nb::type_error("a tensor without axes cannot be gone through");
            return nb::iter(
                wrap_tensors(computed(x, [&] { return x.size() == 0 ? std::vector<pl::Tensor>{} : pl::unstack(x); })));
          },
          nb::sig("def __iter__(self) -> typing.Iterator[Tensor]"))
      .def(
          "__reversed__",
          [](nb::handle self) {
            nb::list rows(self);
            rows.attr("reverse")();
            return nb::iter(rows);
          },
          nb::sig("def __reversed__(self) -> typing.Iterator[Tensor]"))
      .def(
          "__round__",
          [](const pl::Tensor& x, std::optional<int> digits) {
            if (!pl::is_floating(x.dtype())) return wrap_tensor(x);
            const double scale = std::pow(10.0, digits.value_or(0));
            return wrap_tensor(computed(x, [&] { return scale == 1 ? pl::round(x) : pl::round(x * scale) / scale; }));
          },
          nb::arg("digits").none() = nb::none(), nb::sig("def __round__(self, digits: int | None = None) -> Tensor"))
      .def("__format__",
           [](const pl::Tensor& x, const std::string& how) -> nb::object {
             const nb::object value =
                 x.size() == 1 && !how.empty() ? item(x) : nb::object(nb::str(pl::to_string(x).c_str()));
             return nb::steal(PyObject_Format(value.ptr(), nb::str(how.c_str()).ptr()));
           })
      .def("__complex__", [](const pl::Tensor& x) { return nb::steal(PyComplex_FromDoubles(x.item<double>(), 0)); })
      .def(
          "__dlpack__",
          [](nb::handle self, nb::handle, nb::handle max_version, nb::handle device, std::optional<bool> copy) {
            return nb::module_::import_("plimsoll._plimsoll").attr("dlpack_of")(self, max_version, device, copy);
          },
          nb::kw_only(), nb::arg("stream").none() = nb::none(), nb::arg("max_version").none() = nb::none(),
          nb::arg("dl_device").none() = nb::none(), nb::arg("copy").none() = nb::none())
      .def("__dlpack_device__", [](const pl::Tensor&) { return nb::make_tuple(1, 0); })
      .def("__reduce__", [](nb::handle self) {
        return nb::make_tuple(
            nb::module_::import_("plimsoll._support").attr("tensor_of_bytes"),
            nb::make_tuple(self.attr("tobytes")(), self.attr("dtype").attr("name"), self.attr("shape")));
      });
}

}  // namespace binding
