// The library's errors as Python's: each is a pl.Error and one of Python's own kinds.
#include "common.h"
#include "distributed.h"
#include "plimsoll/distributed/unavailable.h"

namespace binding {
namespace {

PyObject *error, *invalid_argument, *failed_precondition, *out_of_memory, *not_found, *corruption, *unsupported,
    *disposed, *leak, *unavailable;

PyObject* make(Module& m, const char* name, std::initializer_list<PyObject*> bases) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(bases.size())));
  Py_ssize_t place = 0;
  for (PyObject* base : bases) PyTuple_SetItem(tuple.ptr(), place++, Py_NewRef(base));
  PyObject* made = PyErr_NewException((std::string("plimsoll.") + name).c_str(), tuple.ptr(), nullptr);
  if (made == nullptr) throw nb::python_error();
  m.attr(name) = nb::handle(made);
  return made;
}

nb::dict holder_row(const pl::MemoryHolder& holder) {
  nb::dict row;
  row["op"] = holder.op;
  row["scope"] = holder.scope;
  row["category"] = holder.category;
  row["shape"] = holder.shape;
  row["bytes"] = holder.bytes;
  row["count"] = holder.count;
  return row;
}

void raise_out_of_memory(const pl::OutOfMemory& refusal) {
  nb::object made = nb::handle(out_of_memory)(refusal.what());
  made.attr("requested") = refusal.requested();
  made.attr("limit") = refusal.limit();
  made.attr("in_use") = refusal.in_use();
  made.attr("smallest_sufficient_limit") = refusal.smallest_sufficient_limit();
  nb::list holders, tried;
  for (const pl::MemoryHolder& holder : refusal.holders()) holders.append(holder_row(holder));
  for (const pl::PressureRung& rung : refusal.tried()) tried.append(nb::make_tuple(rung.name, rung.bytes_freed));
  made.attr("holders") = holders;
  made.attr("tried") = tried;
  PyErr_SetObject(out_of_memory, made.ptr());
}

// Sets the error of an exception that is one of ours; false for others.
bool set_ours(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const pl::OutOfMemory& e) {
    raise_out_of_memory(e);
  } catch (const pl::InvalidArgument& e) {
    PyErr_SetString(invalid_argument, e.what());
  } catch (const pl::FailedPrecondition& e) {
    PyErr_SetString(failed_precondition, e.what());
  } catch (const pl::NotFound& e) {
    PyErr_SetString(not_found, e.what());
  } catch (const pl::Corruption& e) {
    PyErr_SetString(corruption, e.what());
  } catch (const pl::Unsupported& e) {
    PyErr_SetString(unsupported, e.what());
  } catch (const pl::Disposed& e) {
    PyErr_SetString(disposed, e.what());
  } catch (const pl::Leak& e) {
    PyErr_SetString(leak, e.what());
  } catch (const pl::Unavailable& e) {
    nb::object made = nb::handle(unavailable)(e.what());
    made.attr("rank") = e.rank();
    PyErr_SetObject(unavailable, made.ptr());
  } catch (const std::bad_cast&) {  // Of an argument that is taken as any object.
    PyErr_SetString(PyExc_TypeError, "an argument is of a type that does not fit here; see help() of what was called");
  } catch (const pl::Error& e) {
    PyErr_SetString(error, e.what());
  } catch (...) {
    return false;
  }
  return true;
}

}  // namespace

bool forked = false;

void refuse_forked() {
  throw pl::FailedPrecondition(
      "fork: this process was forked from one that had used plimsoll, whose threads and pages it does not have; "
      "start processes with multiprocessing.get_context(\"spawn\"), or import plimsoll in the child only");
}

void set_python_error() noexcept {
  try {
    std::exception_ptr current = std::current_exception();
    if (set_ours(current)) return;
    std::rethrow_exception(current);
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const nb::builtin_exception& e) {
    using Type = nb::exception_type;
    PyObject* kind = PyExc_RuntimeError;
    if (e.type() == Type::type_error) kind = PyExc_TypeError;
    if (e.type() == Type::value_error) kind = PyExc_ValueError;
    if (e.type() == Type::index_error) kind = PyExc_IndexError;
    if (e.type() == Type::buffer_error) kind = PyExc_BufferError;
    PyErr_SetString(kind, e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an exception of an unknown kind");
  }
}

void bind_errors(Module& m) {
  error = make(m, "Error", {PyExc_Exception});
  invalid_argument = make(m, "InvalidArgument", {error, PyExc_ValueError});
  failed_precondition = make(m, "FailedPrecondition", {error, PyExc_RuntimeError});
  out_of_memory = make(m, "OutOfMemory", {error, PyExc_MemoryError});
  not_found = make(m, "NotFound", {error, PyExc_LookupError, PyExc_FileNotFoundError});
  corruption = make(m, "Corruption", {error, PyExc_ValueError});
  unsupported = make(m, "Unsupported", {error, PyExc_NotImplementedError});
  disposed = make(m, "Disposed", {error, PyExc_RuntimeError});
  leak = make(m, "Leak", {error, PyExc_AssertionError});
  unavailable = make(m, "Unavailable", {error, PyExc_ConnectionError});
  nb::register_exception_translator([](const std::exception_ptr& exception, void*) {
    if (!set_ours(exception)) std::rethrow_exception(exception);
  });
}

}  // namespace binding
