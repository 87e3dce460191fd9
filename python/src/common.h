// What all parts of the binding share: tensors to and from Python objects, errors, and who holds the interpreter's
// lock.
//
//   pl::Tensor x = to_tensor(object);                      // a Tensor, a Variable, an array, a list, a number
//   return wrap_tensor(unlocked([&] { return pl::matmul(x, y); }));
//
// Everything that may compute or wait runs without the interpreter's lock (unlocked); work on few elements keeps it,
// since handing it over costs more (computed). Nothing here computes: it parses, calls the library and converts.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/plimsoll.h"

namespace nb = nanobind;
namespace pl = plimsoll;

namespace binding {

// A module whose functions have the texts and examples of plimsoll/_documentation.py; where that has none, their own.
class Module : public nb::module_ {
 public:
  explicit Module(nb::module_ m, std::string prefix = "") : nb::module_(std::move(m)), prefix_(std::move(prefix)) {}
  template <class F, class... Extra>
  Module& def(const char* name, F&& f, const Extra&... extra) {
    nb::module_::def(name, std::forward<F>(f), extra..., text_of(name, given(extra...)));
    return *this;
  }
  Module def_submodule(const char* name, const char* text) {
    return Module(nb::module_::def_submodule(name, text), prefix_ + name + ".");
  }

 private:
  template <class... Extra>
  static const char* given(const Extra&... extra) {
    const char* text = "";
    const auto look = [&](const auto& each) {
      if constexpr (std::is_convertible_v<decltype(each), const char*>) text = each;
    };
    (look(extra), ...);
    return text;
  }
  const char* text_of(const char* name, const char* otherwise) const;
  std::string prefix_;
};

// Throws FailedPrecondition in a process that was forked after the library had been used.
extern bool forked;
[[noreturn]] void refuse_forked();
inline void require_own_process() {
  if (forked) [[unlikely]]
    refuse_forked();
}

template <class F>
auto unlocked(F&& f) {
  require_own_process();
  const nb::gil_scoped_release release;
  return f();
}
constexpr std::size_t kFewElements = 4096;  // Below this no loop of ours goes parallel or takes microseconds.
template <class F>
auto computed(const pl::Tensor& x, F&& f) {
  if (x.shape().is_known() && x.size() < kFewElements) {
    require_own_process();
    return f();
  }
  return unlocked(std::forward<F>(f));
}

// While it lives one level of nested lists is gone through; Python's RecursionError for a list that holds itself.
struct Nesting {
  Nesting() {
    if (Py_EnterRecursiveCall(" while nested lists are gone through") != 0) throw nb::python_error();
  }
  ~Nesting() { Py_LeaveRecursiveCall(); }
};

// Turns the exception that is being handled into a Python error, which is then set.
void set_python_error() noexcept;

// Tensors.
extern PyTypeObject* tensor_type;
extern PyTypeObject* variable_type;
nb::object wrap_tensor(pl::Tensor tensor);  // None for an empty handle.
PyObject* new_tensor(pl::Tensor&& tensor);  // A new reference; throws.
inline bool is_tensor(PyObject* object) { return Py_TYPE(object) == tensor_type; }
const pl::Tensor& tensor_in(PyObject* object);           // Requires is_tensor().
std::optional<pl::Tensor> tensor_of(nb::handle object);  // Of a Tensor or Variable, also of classes derived from them.
// Anything that can be one. `dtype`: what it is to be. Throws TypeError for what cannot.
pl::Tensor to_tensor(nb::handle object, std::optional<pl::DType> dtype = {});
// The same with the caller's own memory where that is possible, for the time of a call.
pl::Tensor borrow_tensor(nb::handle object);
std::vector<pl::Tensor> to_tensors(nb::handle list);
nb::list wrap_tensors(const std::vector<pl::Tensor>& tensors);

// asarray(): `copy` true: always, false: never (ValueError), none: unless the memory cannot change.
pl::Tensor import_object(nb::handle object, std::optional<pl::DType> dtype, std::optional<bool> copy);
// A number of Python or NumPy; none for anything else.
std::optional<pl::Number> to_number(nb::handle object);

// Dtypes: ours, their names, NumPy's, Python's bool, int and float.
extern PyTypeObject* dtype_type;
nb::object wrap_dtype(pl::DType dtype);
pl::DType to_dtype(nb::handle object);  // Throws TypeError.
std::optional<pl::DType> optional_dtype(nb::handle object);
std::optional<pl::DType> promoted(pl::DType a, pl::DType b);  // None: there is no common one.
constexpr pl::DType kDefaultFloat = pl::f32, kDefaultInteger = pl::i64;

// Sizes: "64MiB" or a number of bytes; shapes: a number or several, None for one that is not known; axes.
std::size_t to_bytes(nb::handle size);
std::optional<std::size_t> optional_bytes(nb::handle size);
std::string to_path(nb::handle path);  // None: "".
pl::Shape to_shape(nb::handle shape);
pl::Shape to_sizes(nb::handle shape, const char* what);  // Every size known.
nb::tuple wrap_shape(const pl::Shape& shape);
std::vector<std::int64_t> to_integers(nb::handle numbers);  // One, or several.
pl::Axes to_axes(nb::handle axes);                          // None: all.
pl::CallSite python_site();                                 // The line of Python that calls.

// A tensor, list, tuple or dict of them as a tree, and back.
pl::TensorTree to_tree(nb::handle object);
nb::object wrap_tree(const pl::TensorTree& tree);

// Numbers of one operator of Python, for Tensor and Variable alike.
extern PyType_Slot number_slots[];
nb::object index_tensor(const pl::Tensor& x, nb::handle key);
int get_buffer(PyObject* self, Py_buffer* view, int flags);
void release_buffer(PyObject* self, Py_buffer* view);

// Ctrl-C: throws KeyboardInterrupt, or what another handler of Python raises, when a signal has come. Cheap: it asks
// Python some twenty times a second. The library calls it, too, between batches and rounds (plimsoll/base/interrupt.h).
void check_signals();

// What a callback of Python throws on a thread of ours crosses the library as nb::python_error.
template <class F>
auto with_python(F&& f) {
  const nb::gil_scoped_acquire acquire;
  return f();
}

// Budgets worth choosing: pairs of bytes and how many times as long it takes there.
nb::list wrap_front(const std::vector<pl::BudgetPoint>& front);

void bind_errors(Module& m);
void bind_dtypes(Module& m);
void bind_tensor(Module& m);
void bind_exchange(Module& m);
void bind_functions(Module& m);
void bind_more_functions(Module& m);
void bind_running(Module& m);
void bind_float_bits(Module& m);
void bind_collections(Module& m);
void bind_scopes(Module& m);
void bind_memory(Module& m);
void bind_config(Module& m);
void bind_gradients(Module& m);
void bind_graphs(Module& m);
void bind_data(Module& m);
void bind_layers(Module& m);
void bind_training(Module& m);
void bind_models(Module& m);
void bind_files(Module& m);
void bind_interchange(Module& m);
void bind_live(Module& m);
void bind_distributed(Module& m);

}  // namespace binding
