// Tensors from and to other libraries: the buffer protocol, which NumPy speaks, and DLPack, both ways.
//
// Tensors do not change, so what is handed out is read-only, and a consumer that cannot be told so gets a BufferError.
// What is handed out holds the bytes, pinned: they stay valid, and charged, when the tensor is disposed. What comes in
// is copied into the arena, where a budget can refuse it, unless its memory cannot change or sharing was asked for.
#include "exchange.h"

#include <fmt/format.h>

#include <cstring>
#include <mutex>

#include "plimsoll/device/device.h"
#include "plimsoll/tensor/make_tensor.h"

namespace binding {
namespace {

// Objects that threads which may not hold Python's lock return to it.
struct Returns {
  std::mutex mutex;
  std::vector<std::function<void()>> waiting;  // Guarded by mutex.
  static Returns& instance() {
    static Returns& returns = *new Returns;
    return returns;
  }
};

int run_returns(void*) {
  std::vector<std::function<void()>> due;
  {
    const std::lock_guard lock(Returns::instance().mutex);
    due.swap(Returns::instance().waiting);
  }
  for (const auto& each : due) each();
  return 0;
}

// A dtype by the letter and the size of a buffer's format.
std::optional<pl::DType> dtype_of_format(const char* format, Py_ssize_t size) {
  if (format == nullptr) return pl::u8;
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (*format == '\0' || format[1] != '\0') return std::nullopt;
  if (*format == '?') return pl::boolean;
  if (*format == 'B' || *format == 'c') return pl::u8;
  if (std::strchr("bhilqn", *format)) return size == 1 ? pl::i8 : size == 2 ? pl::i16 : size == 4 ? pl::i32 : pl::i64;
  if (*format == 'e') return pl::f16;
  if (*format == 'f') return pl::f32;
  if (*format == 'd') return pl::f64;
  return std::nullopt;
}

template <class T>
void copy_row(std::byte*& to, const std::byte* from, std::int64_t count, std::int64_t stride) {
  for (std::int64_t i = 0; i < count; ++i, from += stride, to += sizeof(T)) std::memcpy(to, from, sizeof(T));
}

void copy_axis(std::byte*& to, const std::byte* from, const Strided& s, std::size_t axis) {
  if (axis == s.shape.size()) {
    std::memcpy(to, from, s.item_bytes);
    to += s.item_bytes;
    return;
  }
  const std::int64_t count = s.shape[axis], stride = s.byte_strides[axis];
  if (axis + 1 < s.shape.size()) {
    for (std::int64_t i = 0; i < count; ++i) copy_axis(to, from + i * stride, s, axis + 1);
    return;
  }
  if (stride == static_cast<std::int64_t>(s.item_bytes)) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * s.item_bytes);
    to += static_cast<std::size_t>(count) * s.item_bytes;
  } else if (s.item_bytes == 1) {
    copy_row<std::uint8_t>(to, from, count, stride);
  } else if (s.item_bytes == 2) {
    copy_row<std::uint16_t>(to, from, count, stride);
  } else if (s.item_bytes == 4) {
    copy_row<std::uint32_t>(to, from, count, stride);
  } else {
    copy_row<std::uint64_t>(to, from, count, stride);
  }
}

// A buffer of another object, until the last tensor on it goes.
struct HeldBuffer {
  Py_buffer view{};
  ~HeldBuffer() {
    if (view.obj != nullptr) PyBuffer_Release(&view);
  }
};

[[noreturn]] void refuse_format(nb::handle object, const char* format) {
  const nb::object dtype = nb::getattr(object, "dtype", nb::str(format ? format : "?"));
  throw nb::type_error(
      fmt::format("asarray: elements of {} are not offered; convert them first, such as with .astype(\"float32\") "
                  "(offered are bool, uint8, int8 to int64, float16, bfloat16, float32, float64)",
                  nb::str(dtype).c_str())
          .c_str());
}

// The object's memory as it lies; none when it has no buffer of ours to give.
std::optional<Strided> buffer_of(nb::handle object) {
  if (!PyObject_CheckBuffer(object.ptr())) return std::nullopt;
  auto held = std::make_unique<HeldBuffer>();
  if (PyObject_GetBuffer(object.ptr(), &held->view, PyBUF_FULL_RO) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  const Py_buffer& view = held->view;
  const auto dtype = dtype_of_format(view.format, view.itemsize);
  if (!dtype) refuse_format(object, view.format);
  Strided result{.data = view.buf, .dtype = *dtype, .item_bytes = static_cast<std::size_t>(view.itemsize)};
  for (int axis = 0; axis < view.ndim; ++axis) {
    result.shape.push_back(view.shape[axis]);
    result.byte_strides.push_back(view.strides[axis]);
  }
  result.is_read_only = view.readonly != 0;
  result.release = [shared = std::shared_ptr<HeldBuffer>(std::move(held))]() mutable { shared.reset(); };
  return result;
}

// bfloat16 of ml_dtypes has no letter: its bits have.
std::optional<Strided> half_bits_of(nb::handle object) {
  const nb::object dtype = nb::getattr(object, "dtype", nb::none());
  if (dtype.is_none() || !nb::hasattr(object, "view")) return std::nullopt;
  const nb::object name = nb::getattr(dtype, "name", nb::none());
  if (!PyUnicode_Check(name.ptr()) || nb::cast<std::string_view>(name) != "bfloat16") return std::nullopt;
  auto bits = buffer_of(object.attr("view")("int16"));
  if (bits) bits->dtype = pl::bf16;
  return bits;
}

std::optional<Strided> memory_of(nb::handle object) {
  if (auto bits = half_bits_of(object)) return bits;
  return buffer_of(object);
}

// What an object says that its elements are, as an array of NumPy. A frame of pandas has columns of different dtypes.
nb::object array_of(nb::handle object) {
  if (nb::hasattr(object, "dtypes") && nb::hasattr(object, "to_numpy"))
    return nb::module_::import_("plimsoll._support").attr("array_of_frame")(object);
  return object.attr("__array__")();
}

pl::Tensor in_dtype(const pl::Tensor& x, const std::optional<pl::DType>& dtype) {
  if (!dtype || *dtype == x.dtype()) return x;
  return computed(x, [&] { return x.cast(*dtype); });
}

// Nested lists: their sizes and what their numbers are; `mixed` when there are arrays or tensors among them.
struct Nested {
  std::vector<std::int64_t> sizes;
  bool has_float = false, has_integer = false, has_bool = false, mixed = false;
};

bool is_list(nb::handle object) { return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()); }

void scan(nb::handle object, std::size_t depth, Nested& found) {
  const Nesting nesting;
  if (!is_list(object)) {
    if (PyBool_Check(object.ptr()))
      found.has_bool = true;
    else if (PyLong_Check(object.ptr()))
      found.has_integer = true;
    else if (PyFloat_Check(object.ptr()))
      found.has_float = true;
    else
      found.mixed = true;
    if (!found.mixed && depth != found.sizes.size())
      throw pl::InvalidArgument("asarray: lists of different depths; every element is a number or every one a list");
    return;
  }
  const std::int64_t size = PySequence_Size(object.ptr());
  if (depth == found.sizes.size() && !found.has_bool && !found.has_integer && !found.has_float)
    found.sizes.push_back(size);
  if (depth >= found.sizes.size() || found.sizes[depth] != size)
    throw pl::InvalidArgument(
        fmt::format("asarray: lists of different lengths, {} and {}, at depth {}; pad them, or use ragged batches",
                    depth < found.sizes.size() ? found.sizes[depth] : 0, size, depth));
  for (nb::handle each : nb::borrow<nb::sequence>(object)) {
    scan(each, depth + 1, found);
    if (found.mixed) return;
  }
}

template <class T>
void fill(nb::handle object, T*& to) {
  if (is_list(object)) {
    for (nb::handle each : nb::borrow<nb::sequence>(object)) fill(each, to);
    return;
  }
  if constexpr (std::is_same_v<T, bool>) {
    *to++ = object.ptr() == Py_True;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    *to++ = PyLong_AsLongLong(object.ptr());
    if (to[-1] == -1 && PyErr_Occurred()) throw nb::python_error();
  } else {
    *to++ = static_cast<T>(PyFloat_AsDouble(object.ptr()));
    if (to[-1] == T(-1) && PyErr_Occurred()) throw nb::python_error();
  }
}

// On the device of the scope that is open, from the host's memory where it was filled.
pl::Tensor where_it_belongs(const pl::Tensor& filled) {
  const std::string device = pl::current_device().name();
  return filled.device() == device ? filled : filled.to(device);
}

template <class T>
pl::Tensor filled(nb::handle list, const Nested& found) {
  const pl::Tensor result = pl::make_tensor({.op = "asarray", .category = pl::Category::kInputs},
                                            pl::Shape(std::span<const std::int64_t>(found.sizes)), pl::kDTypeOf<T>,
                                            pl::current_host_device());
  if (result.size() > 0) {
    T* to = pl::writable(result).data<T>();
    fill(list, to);
  }
  return where_it_belongs(result);
}

pl::Tensor from_list(nb::handle list, std::optional<pl::DType> dtype) {
  Nested found;
  scan(list, 0, found);
  if (found.mixed) {
    std::vector<pl::Tensor> parts;
    std::optional<pl::DType> common = dtype;
    for (nb::handle each : nb::borrow<nb::sequence>(list)) {
      parts.push_back(to_tensor(each, dtype));
      if (!dtype) common = common ? promoted(*common, parts.back().dtype()) : parts.back().dtype();
    }
    for (pl::Tensor& part : parts) part = in_dtype(part, common);
    return unlocked([&] { return pl::stack(parts); });
  }
  if (found.has_float || (!found.has_integer && !found.has_bool))
    return dtype == pl::f64 ? filled<double>(list, found) : in_dtype(filled<float>(list, found), dtype);
  if (found.has_integer && dtype == pl::f64) return filled<double>(list, found);
  if (found.has_integer) return in_dtype(filled<std::int64_t>(list, found), dtype);
  return in_dtype(filled<bool>(list, found), dtype);
}

pl::Tensor from_memory(Strided&& memory, std::optional<pl::DType> dtype, std::optional<bool> copy) {
  const bool converts = dtype && *dtype != memory.dtype;
  if (copy == false && (converts || !memory.is_contiguous()))
    throw nb::value_error(converts ? "asarray: another dtype takes a copy, and copy=False forbids it"
                                   : "asarray: memory that is not contiguous takes a copy, and copy=False forbids it");
  const bool shares = copy == false || (!copy && memory.is_read_only);
  if ((shares || converts) && memory.is_contiguous()) return in_dtype(wrapped(std::move(memory)), dtype);
  return in_dtype(copied(memory), dtype);
}

}  // namespace

void return_to_python(std::function<void()> give_back) {
  if (!Py_IsInitialized()) return;  // The process ends: there is nobody to give it to.
#if !defined(Py_LIMITED_API)
  if (PyGILState_Check()) return give_back();
#endif
  {
    const std::lock_guard lock(Returns::instance().mutex);
    Returns::instance().waiting.push_back(std::move(give_back));
  }
  Py_AddPendingCall(run_returns, nullptr);
}

bool Strided::is_contiguous() const {
  std::int64_t expected = static_cast<std::int64_t>(item_bytes);
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] == 0) return true;
    if (shape[axis] != 1 && byte_strides[axis] != expected) return false;
    expected *= shape[axis];
  }
  return reinterpret_cast<std::uintptr_t>(data) % item_bytes == 0;
}

pl::Tensor copied(const Strided& memory) {
  const pl::Shape shape(std::span<const std::int64_t>(memory.shape));
  return unlocked([&] {
    const pl::Tensor result = pl::make_tensor({.op = "asarray", .category = pl::Category::kInputs}, shape, memory.dtype,
                                              pl::current_host_device());
    if (result.size() == 0) return where_it_belongs(result);
    std::byte* to = pl::writable(result).bytes();
    if (memory.is_contiguous()) {
      std::memcpy(to, memory.data, result.nbytes());
    } else {
      copy_axis(to, static_cast<const std::byte*>(memory.data), memory, 0);
    }
    return where_it_belongs(result);
  });
}

pl::Tensor wrapped(Strided&& memory) {
  run_returns(nullptr);
  require_own_process();
  const pl::Shape shape(std::span<const std::int64_t>(memory.shape));
  if (shape.size() == 0) return pl::zeros(shape, memory.dtype);
  return pl::wrap(memory.data, shape, memory.dtype,
                  [release = std::move(memory.release)](void*) { return_to_python(release); });
}

std::optional<pl::Number> to_number(nb::handle object) {
  if (PyBool_Check(object.ptr())) return pl::Number(object.ptr() == Py_True);
  if (PyFloat_Check(object.ptr())) return pl::Number(PyFloat_AsDouble(object.ptr()));
  if (!PyLong_Check(object.ptr())) return std::nullopt;
  const long long value = PyLong_AsLongLong(object.ptr());
  if (value == -1 && PyErr_Occurred()) throw nb::python_error();
  return pl::Number(value);
}

pl::Tensor import_object(nb::handle object, std::optional<pl::DType> dtype, std::optional<bool> copy) {
  require_own_process();
  if (auto tensor = tensor_of(object)) {
    const pl::Tensor result = in_dtype(*tensor, dtype);
    return copy == true && result.id() == tensor->id() ? unlocked([&] { return tensor->clone(); }) : result;
  }
  if (auto number = to_number(object)) {
    const pl::DType natural = !number->is_integer()            ? kDefaultFloat
                              : number->dtype() == pl::boolean ? pl::boolean
                                                               : kDefaultInteger;
    return pl::full(pl::Shape::scalar(), *number, dtype.value_or(natural));
  }
  if (is_list(object)) return from_list(object, dtype);
  if (PyRange_Check(object.ptr())) return from_list(nb::list(object), dtype);
  if (auto memory = memory_of(object)) return from_memory(std::move(*memory), dtype, copy);
  // An array of NumPy without a buffer: dates, texts.
  if (nb::hasattr(object, "__array_interface__") && nb::hasattr(object, "dtype")) refuse_format(object, nullptr);
  if (nb::hasattr(object, "__dlpack__")) return from_memory(dlpack_of(object, copy), dtype, copy);
  if (nb::hasattr(object, "__array__")) return import_object(array_of(object), dtype, copy);
  if (nb::isinstance<pl::LayerOutput>(object))
    throw nb::type_error(
        "asarray: a place in a model has no elements; there layers do it, such as pl.layers.Activation(\"relu\") and "
        "pl.layers.Lambda(pl.square)");
  throw nb::type_error(
      fmt::format("asarray: {} is not an array, list or number{}", nb::type_name(object.type()).c_str(),
                  nb::hasattr(object, "__iter__") && !PyUnicode_Check(object.ptr()) && !PyDict_Check(object.ptr())
                      ? "; make a list of it: list(...)"
                      : "")
          .c_str());
}

pl::Tensor to_tensor(nb::handle object, std::optional<pl::DType> dtype) {
  if (is_tensor(object.ptr()) && !dtype) return tensor_in(object.ptr());
  return import_object(object, dtype, std::nullopt);
}

pl::Tensor borrow_tensor(nb::handle object) {
  if (auto tensor = tensor_of(object)) return *tensor;
  if (!is_list(object)) {
    if (auto memory = memory_of(object)) return memory->is_contiguous() ? wrapped(std::move(*memory)) : copied(*memory);
  }
  if (nb::hasattr(object, "__array__")) return borrow_tensor(array_of(object));
  return to_tensor(object);
}

std::vector<pl::Tensor> to_tensors(nb::handle list) {
  std::vector<pl::Tensor> result;
  if (!is_list(list)) return {to_tensor(list)};
  for (nb::handle each : nb::borrow<nb::sequence>(list)) result.push_back(to_tensor(each));
  return result;
}

const char* format_of(pl::DType dtype) {
  constexpr const char* kFormats[pl::kNumDTypes] = {"?", "B", "b", "h", "i", "q", "e", nullptr, "f", "d"};
  return kFormats[static_cast<std::size_t>(dtype)];
}

void fill_buffer(PyObject* self, Py_buffer* view, int flags, const pl::Tensor& x, const char* format, Pinned& pinned) {
  *view = Py_buffer{};
  view->obj = Py_NewRef(self);
  view->buf = const_cast<void*>(pinned.data);
  view->len = static_cast<Py_ssize_t>(x.nbytes());
  view->readonly = 1;
  view->itemsize = static_cast<Py_ssize_t>(pl::size_of(x.dtype()));
  view->format = (flags & PyBUF_FORMAT) ? const_cast<char*>(format) : nullptr;
  view->ndim = static_cast<int>(x.rank());
  view->shape = (flags & PyBUF_ND) ? pinned.shape.data() : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? pinned.byte_strides.data() : nullptr;
}

// The buffer protocol.
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  try {
    if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE)
      throw nb::buffer_error("a tensor does not change: ask for a read-only buffer, or copy it (numpy.array(x))");
    const pl::Tensor x = *tensor_of(self);
    const char* format = format_of(x.dtype());
    if (format == nullptr) throw nb::buffer_error("bfloat16 has no format in buffers; x.numpy() gives ml_dtypes' type");
    auto pinned = std::make_unique<Pinned>(x);
    fill_buffer(self, view, flags, x, format, *pinned);
    view->internal = pinned.release();
    return 0;
  } catch (...) {
    view->obj = nullptr;
    set_python_error();
    if (!PyErr_ExceptionMatches(PyExc_BufferError)) {
      const nb::python_error error;
      PyErr_SetString(PyExc_BufferError, nb::str(error.value()).c_str());
    }
    return -1;
  }
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Pinned*>(view->internal); }

Pinned::Pinned(const pl::Tensor& x) {
  data = x.host_view(bytes).bytes();  // Takes the memory of a lazy one, computes a dropped one again.
  storage = pl::StorageRef::share(x.record()->storage);
  storage->pin();
  const auto item = static_cast<Py_ssize_t>(pl::size_of(x.dtype()));
  shape.assign(x.shape().begin(), x.shape().end());
  byte_strides.resize(shape.size());
  Py_ssize_t stride = item;
  for (std::size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) byte_strides[axis] = stride;
}

Pinned::~Pinned() { storage->unpin(); }

}  // namespace binding
