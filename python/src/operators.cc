// Python's operators on tensors and variables, as slots of the types: an operation on one element costs little more
// than the library's own call. Mixed dtypes are promoted here, since the library refuses them.
#include <fmt/format.h>

#include "bits.h"
#include "common.h"

namespace binding {
namespace {

enum class Binary { add, subtract, multiply, divide, floor_divide, modulo, power, matmul, bit_and, bit_or, bit_xor };

int kind_of(pl::DType dtype) { return pl::is_floating(dtype) ? 2 : pl::is_integer(dtype) ? 1 : 0; }
int kind_of(const pl::Number& number) { return !number.is_integer() ? 2 : number.dtype() == pl::boolean ? 0 : 1; }

// Neither a tensor nor a number: not for us.
struct Operand {
  std::optional<pl::Tensor> tensor;
  std::optional<pl::Number> number;
  bool is_set() const { return tensor || number; }
};

bool is_array_like(nb::handle object) {
  return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()) ||
         (!PyType_Check(object.ptr()) && (nb::hasattr(object, "__array__") || nb::hasattr(object, "__dlpack__")));
}

Operand operand(PyObject* object) {
  if (is_tensor(object)) return {tensor_in(object), {}};
  if (auto number = to_number(object)) return {{}, number};
  if (auto tensor = tensor_of(object)) return {tensor, {}};
  if (is_array_like(object)) return {to_tensor(object), {}};
  return {};
}

pl::Tensor in_dtype(const pl::Tensor& x, pl::DType dtype) { return x.dtype() == dtype ? x : x.cast(dtype); }

// The dtype in which a tensor meets a number: its own, unless the number's kind has more.
pl::DType beside(const pl::Tensor& x, const pl::Number& number) {
  if (kind_of(number) <= kind_of(x.dtype())) return x.dtype();
  return kind_of(number) == 2 ? kDefaultFloat : kDefaultInteger;
}

// a and b: two tensors of one dtype, or a tensor and a number.
template <Binary kind, class A, class B>
pl::Tensor apply(const A& a, const B& b) {
  if constexpr (kind == Binary::add) return a + b;
  if constexpr (kind == Binary::subtract) return a - b;
  if constexpr (kind == Binary::multiply) return a * b;
  if constexpr (kind == Binary::divide) return a / b;
  if constexpr (kind == Binary::floor_divide) return pl::floor_divide(a, b);
  if constexpr (kind == Binary::modulo) return a % b;
  if constexpr (kind == Binary::power) return pl::power(a, b);
  if constexpr (kind == Binary::bit_and) return a && b;
  if constexpr (kind == Binary::bit_or) return a || b;
  if constexpr (kind == Binary::bit_xor) return pl::logical_xor(a, b);
}

template <Binary kind>
pl::DType working_dtype(pl::DType dtype) {
  if (kind == Binary::divide && !pl::is_floating(dtype)) return kDefaultFloat;  // As in Python, 1 / 2 is 0.5.
  return dtype;
}

const pl::Tensor& larger(const pl::Tensor& a, const pl::Tensor& b) {
  const bool known = a.shape().is_known() && b.shape().is_known();
  return known && a.size() >= b.size() ? a : b;
}

template <Binary kind>
constexpr Bits kBitsOf = kind == Binary::bit_and  ? Bits::and_
                         : kind == Binary::bit_or ? Bits::or_
                                                  : Bits::xor_;

template <Binary kind>
pl::Tensor of_tensors(const pl::Tensor& a, const pl::Tensor& b) {
  if constexpr (kind == Binary::bit_and || kind == Binary::bit_or || kind == Binary::bit_xor)
    if (a.dtype() != pl::boolean || b.dtype() != pl::boolean) return combine_bits(a, b, kBitsOf<kind>);
  return computed(larger(a, b), [&] {
    if constexpr (kind == Binary::matmul) {
      const pl::DType dtype = *promoted(a.dtype(), b.dtype());
      return pl::matmul(in_dtype(a, dtype), in_dtype(b, dtype));
    } else {
      const pl::DType dtype = working_dtype<kind>(a.dtype() == b.dtype() ? a.dtype() : *promoted(a.dtype(), b.dtype()));
      if (a.dtype() == dtype && b.dtype() == dtype) return apply<kind>(a, b);
      return apply<kind>(in_dtype(a, dtype), in_dtype(b, dtype));
    }
  });
}

// A number as a tensor that a tensor meets.
pl::Tensor beside_tensor(const pl::Tensor& x, const pl::Number& number) {
  if (!number.is_integer()) throw nb::type_error("&, |, ^, << and >>: of bool and integers, not of float");
  return pl::full(pl::Shape::scalar(), number, beside(x, number));
}

template <Binary kind>
PyObject* of_operands(PyObject* left, PyObject* right) {
  const Operand a = operand(left), b = operand(right);
  if (!a.is_set() || !b.is_set() || (a.number && b.number)) return Py_NewRef(Py_NotImplemented);
  if (a.tensor && b.tensor) return new_tensor(of_tensors<kind>(*a.tensor, *b.tensor));
  if constexpr (kind != Binary::matmul) {
    const pl::Tensor& tensor = a.tensor ? *a.tensor : *b.tensor;
    const pl::Number& number = a.tensor ? *b.number : *a.number;
    if constexpr (kind == Binary::bit_and || kind == Binary::bit_or || kind == Binary::bit_xor)
      if (tensor.dtype() != pl::boolean || number.dtype() != pl::boolean)
        return new_tensor(combine_bits(tensor, beside_tensor(tensor, number), kBitsOf<kind>));
    return new_tensor(computed(tensor, [&] {
      const pl::Tensor x = in_dtype(tensor, working_dtype<kind>(beside(tensor, number)));
      return a.tensor ? apply<kind>(x, number) : apply<kind>(number, x);
    }));
  } else {
    throw nb::type_error("@: a number has no axes; use * for a product with a number");
  }
}

template <Binary kind>
PyObject* binary_slot(PyObject* left, PyObject* right) noexcept {
  try {
    if (is_tensor(left) && is_tensor(right)) return new_tensor(of_tensors<kind>(tensor_in(left), tensor_in(right)));
    return of_operands<kind>(left, right);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

template <Bits kind>
PyObject* shift_slot(PyObject* left, PyObject* right) noexcept {
  try {
    const Operand a = operand(left), b = operand(right);
    if (!a.is_set() || !b.is_set() || (a.number && b.number)) return Py_NewRef(Py_NotImplemented);
    const pl::Tensor x = a.tensor ? *a.tensor : beside_tensor(*b.tensor, *a.number);
    const pl::Tensor y = b.tensor ? *b.tensor : beside_tensor(*a.tensor, *b.number);
    return new_tensor(combine_bits(x, y, kind));
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* power_slot(PyObject* left, PyObject* right, PyObject* modulo) noexcept {
  if (modulo != Py_None) {
    PyErr_SetString(PyExc_TypeError, "pow: a third argument is not offered for tensors");
    return nullptr;
  }
  return binary_slot<Binary::power>(left, right);
}

PyObject* divmod_slot(PyObject* left, PyObject* right) noexcept {
  PyObject* quotient = binary_slot<Binary::floor_divide>(left, right);
  if (quotient == nullptr || quotient == Py_NotImplemented) return quotient;
  PyObject* rest = binary_slot<Binary::modulo>(left, right);
  PyObject* both = rest == nullptr ? nullptr : PyTuple_Pack(2, quotient, rest);
  Py_DECREF(quotient);
  Py_XDECREF(rest);
  return both;
}

template <class A, class B>
pl::Tensor compare(const A& a, const B& b, int operation) {
  switch (operation) {
    case Py_LT:
      return a < b;
    case Py_LE:
      return a <= b;
    case Py_EQ:
      return a == b;
    case Py_NE:
      return a != b;
    case Py_GT:
      return a > b;
    default:
      return a >= b;
  }
}

PyObject* compare_slot(PyObject* left, PyObject* right, int operation) noexcept {
  try {
    const Operand a = operand(left), b = operand(right);
    if (!a.tensor || !b.is_set()) return Py_NewRef(Py_NotImplemented);
    return new_tensor(computed(b.tensor ? larger(*a.tensor, *b.tensor) : *a.tensor, [&] {
      if (b.number) return compare(in_dtype(*a.tensor, beside(*a.tensor, *b.number)), *b.number, operation);
      const pl::DType dtype = *promoted(a.tensor->dtype(), b.tensor->dtype());
      return compare(in_dtype(*a.tensor, dtype), in_dtype(*b.tensor, dtype), operation);
    }));
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

template <class F>
PyObject* of_tensor(PyObject* self, F&& f) noexcept {
  try {
    const pl::Tensor x = *tensor_of(self);
    return new_tensor(computed(x, [&] { return f(x); }));
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* negative_slot(PyObject* self) noexcept {
  return of_tensor(self, [](const pl::Tensor& x) { return -x; });
}
PyObject* positive_slot(PyObject* self) noexcept {
  return of_tensor(self, [](const pl::Tensor& x) { return x; });
}
PyObject* absolute_slot(PyObject* self) noexcept {
  return of_tensor(self, [](const pl::Tensor& x) { return x.dtype() == pl::boolean ? x : pl::abs(x); });
}
PyObject* invert_slot(PyObject* self) noexcept {
  return of_tensor(self, [](const pl::Tensor& x) {
    if (x.dtype() == pl::boolean) return !x;
    if (!pl::is_integer(x.dtype()))
      throw pl::InvalidArgument(fmt::format("~: of bool and integers, not of {}", dtype_name(x.dtype())));
    return x.dtype() == pl::u8 ? 255 - x : -1 - x;  // Two's complement.
  });
}

template <class F>
PyObject* scalar_slot(PyObject* self, F&& f) noexcept {
  try {
    return f(*tensor_of(self));
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}
PyObject* float_slot(PyObject* self) noexcept {
  return scalar_slot(self, [](const pl::Tensor& x) { return PyFloat_FromDouble(x.item<double>()); });
}
PyObject* int_slot(PyObject* self) noexcept {
  return scalar_slot(self, [](const pl::Tensor& x) {
    if (pl::is_floating(x.dtype())) return PyLong_FromDouble(x.item<double>());  // Refuses NaN and infinity.
    return PyLong_FromLongLong(x.item<std::int64_t>());
  });
}
PyObject* index_slot(PyObject* self) noexcept {
  return scalar_slot(self, [](const pl::Tensor& x) {
    if (!pl::is_integer(x.dtype()) || x.size() != 1 || x.rank() != 0)
      throw nb::type_error("index: only an integer tensor without axes is one");
    return PyLong_FromLongLong(x.item<std::int64_t>());
  });
}
int bool_slot(PyObject* self) noexcept {
  try {
    const pl::Tensor x = *tensor_of(self);
    if (x.shape().is_known() && x.size() == 1 && !pl::is_symbolic(x)) return x.item<double>() != 0;
    return static_cast<bool>(x);
  } catch (...) {
    set_python_error();
    return -1;
  }
}

Py_ssize_t length_slot(PyObject* self) noexcept {
  try {
    const pl::Tensor x = *tensor_of(self);
    if (x.rank() == 0) throw nb::type_error("len() of a tensor without axes");
    return static_cast<Py_ssize_t>(x.shape()[0]);
  } catch (...) {
    set_python_error();
    return -1;
  }
}

PyObject* subscript_slot(PyObject* self, PyObject* key) noexcept {
  try {
    return index_tensor(*tensor_of(self), key).release().ptr();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

int assign_slot(PyObject*, PyObject*, PyObject*) noexcept {
  PyErr_SetString(
      PyExc_TypeError,
      "tensors do not change; make a new one (pl.where, pl.concat, pl.scatter_update), or keep the value in "
      "a pl.Variable and assign to that");
  return -1;
}

// Whether an element is equal to it.
int contains_slot(PyObject* self, PyObject* value) noexcept {
  PyObject* equal = PyObject_RichCompare(self, value, Py_EQ);
  if (equal == nullptr) return -1;
  const nb::object held = nb::steal(equal);
  if (!is_tensor(equal)) return PyObject_IsTrue(equal);
  try {
    const pl::Tensor& x = tensor_in(equal);
    return x.size() > 0 && computed(x, [&] { return pl::any(x.flatten()); }).item<bool>();
  } catch (...) {
    set_python_error();
    return -1;
  }
}

// By the object: equal tensors are equal element by element.
Py_hash_t hash_slot(PyObject* self) noexcept {
  const auto value = static_cast<Py_hash_t>(reinterpret_cast<std::uintptr_t>(self) >> 4);
  return value == -1 ? -2 : value;
}

template <class F>
void* slot(F* f) {
  return reinterpret_cast<void*>(f);
}

}  // namespace

PyType_Slot number_slots[] = {
    {Py_nb_add, slot(binary_slot<Binary::add>)},
    {Py_nb_subtract, slot(binary_slot<Binary::subtract>)},
    {Py_nb_multiply, slot(binary_slot<Binary::multiply>)},
    {Py_nb_true_divide, slot(binary_slot<Binary::divide>)},
    {Py_nb_floor_divide, slot(binary_slot<Binary::floor_divide>)},
    {Py_nb_remainder, slot(binary_slot<Binary::modulo>)},
    {Py_nb_divmod, slot(divmod_slot)},
    {Py_nb_power, slot(power_slot)},
    {Py_nb_matrix_multiply, slot(binary_slot<Binary::matmul>)},
    {Py_nb_and, slot(binary_slot<Binary::bit_and>)},
    {Py_nb_or, slot(binary_slot<Binary::bit_or>)},
    {Py_nb_xor, slot(binary_slot<Binary::bit_xor>)},
    {Py_nb_lshift, slot(shift_slot<Bits::left>)},
    {Py_nb_rshift, slot(shift_slot<Bits::right>)},
    {Py_nb_negative, slot(negative_slot)},
    {Py_nb_positive, slot(positive_slot)},
    {Py_nb_absolute, slot(absolute_slot)},
    {Py_nb_invert, slot(invert_slot)},
    {Py_nb_float, slot(float_slot)},
    {Py_nb_int, slot(int_slot)},
    {Py_nb_index, slot(index_slot)},
    {Py_nb_bool, slot(bool_slot)},
    {Py_tp_richcompare, slot(compare_slot)},
    {Py_tp_hash, slot(hash_slot)},
    {Py_sq_contains, slot(contains_slot)},
    {Py_mp_length, slot(length_slot)},
    {Py_mp_subscript, slot(subscript_slot)},
    {Py_mp_ass_subscript, slot(assign_slot)},
    {Py_bf_getbuffer, slot(get_buffer)},
    {Py_bf_releasebuffer, slot(release_buffer)},
    {0, nullptr},
};

}  // namespace binding
