// What holds several tensors: sparse and ragged ones, arrays that loops write, pools, trees.
#include "collections.h"

#include <fmt/format.h>

#include <chrono>

namespace binding {
namespace {

pl::Tensor in_dtype(const pl::Tensor& x, pl::DType dtype) { return x.dtype() == dtype ? x : x.cast(dtype); }

void bind_ragged(Module& m) {
  using pl::RaggedTensor;
  nb::class_<RaggedTensor> type(
      m, "RaggedTensor",
      "Rows of different lengths, one after the other: a batch of sequences without padding.\n\n>>> r = "
      "pl.RaggedTensor.from_rows([[1, 2, 3], [], [4]])\n>>> r.to_padded().tolist(), r.row_lengths.tolist()\n([[1, 2, "
      "3], [0, 0, 0], [4, 0, 0]], [3, 0, 1])");
  type.def(
          "__init__",
          [](RaggedTensor* self, nb::handle values, nb::handle splits) {
            new (self) RaggedTensor(to_tensor(values), to_tensor(splits));
          },
          nb::arg("values"), nb::arg("row_splits"),
          nb::sig("def __init__(self, values: TensorLike, row_splits: TensorLike) -> None"))
      .def_static(
          "from_row_lengths",
          [](nb::handle values, nb::handle lengths) {
            return RaggedTensor::from_row_lengths(to_tensor(values), to_tensor(lengths));
          },
          nb::arg("values"), nb::arg("lengths"),
          nb::sig("def from_row_lengths(values: TensorLike, lengths: TensorLike) -> RaggedTensor"))
      .def_static(
          "from_rows",
          [](nb::handle rows) {
            std::vector<pl::Tensor> list;
            std::optional<pl::DType> common;
            for (nb::handle each : nb::borrow<nb::iterable>(rows)) {
              list.push_back(to_tensor(each));
              if (list.back().size() == 0 && !tensor_of(each)) continue;  // An empty list fits any dtype.
              common = common ? promoted(*common, list.back().dtype()) : list.back().dtype();
            }
            for (pl::Tensor& each : list) each = in_dtype(each, common.value_or(kDefaultFloat));
            return unlocked([&] { return RaggedTensor::from_rows(list); });
          },
          nb::arg("rows"), nb::sig("def from_rows(rows: typing.Iterable[TensorLike]) -> RaggedTensor"))
      .def_static(
          "from_padded",
          [](nb::handle padded, nb::handle lengths) {
            const pl::Tensor x = to_tensor(padded), ends = to_tensor(lengths);
            return unlocked([&] { return RaggedTensor::from_padded(x, ends); });
          },
          nb::arg("padded"), nb::arg("lengths"),
          nb::sig("def from_padded(padded: TensorLike, lengths: TensorLike) -> RaggedTensor"))
      .def_prop_ro(
          "values", [](const RaggedTensor& r) { return wrap_tensor(r.values()); },
          nb::sig("def values(self) -> Tensor"))
      .def_prop_ro(
          "row_splits", [](const RaggedTensor& r) { return wrap_tensor(r.row_splits()); },
          nb::sig("def row_splits(self) -> Tensor"))
      .def_prop_ro(
          "row_lengths", [](const RaggedTensor& r) { return wrap_tensor(r.row_lengths()); },
          nb::sig("def row_lengths(self) -> Tensor"))
      .def_prop_ro(
          "shape", [](const RaggedTensor& r) { return wrap_shape(r.shape()); },
          nb::sig("def shape(self) -> tuple[int | None, ...]"))
      .def_prop_ro(
          "dtype", [](const RaggedTensor& r) { return wrap_dtype(r.dtype()); }, nb::sig("def dtype(self) -> DType"))
      .def_prop_ro("num_rows", &RaggedTensor::num_rows)
      .def_prop_ro("nbytes", &RaggedTensor::nbytes)
      .def_prop_ro("max_length", &RaggedTensor::max_length)
      .def("__len__", &RaggedTensor::num_rows)
      .def(
          "__getitem__",
          [](const RaggedTensor& r, std::int64_t index) {
            if (index < -r.num_rows() || index >= r.num_rows())
              throw nb::index_error(fmt::format("index: {} is outside of {} rows", index, r.num_rows()).c_str());
            return wrap_tensor(r.row(index));
          },
          nb::arg("index"), nb::sig("def __getitem__(self, index: int) -> Tensor"))
      .def(
          "with_values", [](const RaggedTensor& r, nb::handle values) { return r.with_values(to_tensor(values)); },
          nb::arg("values"), nb::sig("def with_values(self, values: TensorLike) -> RaggedTensor"),
          "The same rows with other values.")
      .def(
          "to_padded",
          [](const RaggedTensor& r, nb::handle value, std::int64_t max_length) {
            const auto number = to_number(value);
            if (!number) throw nb::type_error("to_padded: the value is a number");
            return wrap_tensor(unlocked([&] { return r.to_padded({.value = *number, .max_length = max_length}); }));
          },
          nb::arg("value") = 0, nb::arg("max_length") = -1,
          nb::sig("def to_padded(self, value: float = 0, max_length: int = -1) -> Tensor"),
          "[rows, width, ...], with the value after the ends; longer rows are cut.")
      .def(
          "mask", [](const RaggedTensor& r, std::int64_t max_length) { return wrap_tensor(r.mask(max_length)); },
          nb::arg("max_length") = -1, nb::sig("def mask(self, max_length: int = -1) -> Tensor"),
          "bool [rows, width]: true before the ends.")
      .def(
          "tolist",
          [](const RaggedTensor& r) {
            nb::list rows;
            for (std::int64_t i = 0; i < r.num_rows(); ++i) rows.append(wrap_tensor(r.row(i)).attr("tolist")());
            return rows;
          },
          nb::sig("def tolist(self) -> list[list[object]]"))
      .def("dispose", &RaggedTensor::dispose)
      .def_prop_ro("is_disposed", &RaggedTensor::is_disposed)
      .def("__repr__", [](const RaggedTensor& r) { return pl::to_string(r); });
}

void bind_array(Module& m) {
  using pl::TensorArray;
  nb::class_<TensorArray> type(
      m, "TensorArray",
      "A list of tensors of one dtype, written and read one by one: what loops collect their results in.\n\n>>> states "
      "= pl.TensorArray(\"float32\", dynamic_size=True)\n>>> for t in range(3):\n...     states = states.write(t, "
      "pl.full(2, t))\n>>> states.stack().tolist()\n[[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]");
  const auto given = [](const TensorArray& a, nb::handle value) { return to_tensor(value, a.dtype()); };
  type.def(
          "__init__",
          [](TensorArray* self, nb::handle dtype, std::int64_t size, bool dynamic, bool clears, nb::handle shape,
             bool infers) {
            new (self) TensorArray(to_dtype(dtype), {.size = size,
                                                     .dynamic_size = dynamic,
                                                     .clear_after_read = clears,
                                                     .element_shape = to_shape(shape),
                                                     .infer_shape = infers});
          },
          nb::arg("dtype"), nb::arg("size") = 0, nb::arg("dynamic_size") = false, nb::arg("clear_after_read") = true,
          nb::arg("element_shape").none() = nb::none(), nb::arg("infer_shape") = true,
          nb::sig("def __init__(self, dtype: DTypeLike, size: int = 0, dynamic_size: bool = False, clear_after_read: "
                  "bool = True, element_shape: ShapeLike | None = None, infer_shape: bool = True) -> None"))
      .def(
          "write",
          [given](TensorArray& a, std::int64_t index, nb::handle value) { return a.write(index, given(a, value)); },
          nb::arg("index"), nb::arg("value"), nb::sig("def write(self, index: int, value: TensorLike) -> TensorArray"),
          "Writes an element, once.")
      .def(
          "read", [](TensorArray& a, std::int64_t index) { return wrap_tensor(a.read(index)); }, nb::arg("index"),
          nb::sig("def read(self, index: int) -> Tensor"), "Takes an element out, unless clear_after_read is off.")
      .def(
          "stack", [](const TensorArray& a) { return wrap_tensor(unlocked([&] { return a.stack(); })); },
          nb::sig("def stack(self) -> Tensor"))
      .def(
          "concat", [](const TensorArray& a) { return wrap_tensor(unlocked([&] { return a.concat(); })); },
          nb::sig("def concat(self) -> Tensor"))
      .def(
          "gather",
          [](const TensorArray& a, nb::handle indices) {
            const auto list = to_integers(indices);
            return wrap_tensor(unlocked([&] { return a.gather(list); }));
          },
          nb::arg("indices"), nb::sig("def gather(self, indices: typing.Sequence[int]) -> Tensor"))
      .def(
          "unstack", [given](TensorArray& a, nb::handle value) { return a.unstack(given(a, value)); }, nb::arg("value"),
          nb::sig("def unstack(self, value: TensorLike) -> TensorArray"))
      .def(
          "scatter",
          [given](TensorArray& a, nb::handle indices, nb::handle value) {
            return a.scatter(to_integers(indices), given(a, value));
          },
          nb::arg("indices"), nb::arg("value"),
          nb::sig("def scatter(self, indices: typing.Sequence[int], value: TensorLike) -> TensorArray"))
      .def(
          "split",
          [given](TensorArray& a, nb::handle value, nb::handle lengths) {
            return a.split(given(a, value), to_integers(lengths));
          },
          nb::arg("value"), nb::arg("lengths"),
          nb::sig("def split(self, value: TensorLike, lengths: typing.Sequence[int]) -> TensorArray"))
      .def("size", &TensorArray::size)
      .def("__len__", &TensorArray::size)
      .def_prop_ro(
          "dtype", [](const TensorArray& a) { return wrap_dtype(a.dtype()); }, nb::sig("def dtype(self) -> DType"))
      .def_prop_ro(
          "element_shape",
          [](const TensorArray& a) -> nb::object {
            const pl::Shape shape = a.element_shape();
            if (!shape.is_set()) return nb::none();
            return wrap_shape(shape);
          },
          nb::sig("def element_shape(self) -> tuple[int | None, ...] | None"))
      .def("dispose", &TensorArray::dispose)
      .def("close", &TensorArray::dispose)
      .def("__repr__", [](const TensorArray& a) {
        return fmt::format("<TensorArray: {} elements of {}>", a.size(), pl::dtype_name(a.dtype()));
      });
}

// Trees: those of Python, or ours.
nb::object tree_item(const pl::TensorTree& tree) {
  return tree.is_tensor() ? wrap_tensor(tree.tensor()) : nb::cast(tree);
}

void bind_tree(Module& m) {
  using pl::TensorTree;
  nb::class_<TensorTree> type(
      m, "TensorTree",
      "Tensors in nested lists and dicts: the parameters of a model, the state of a loop, what is in a file.\n\n>>> "
      "tree = pl.TensorTree({\"w\": [1.0, 2.0], \"layers\": [pl.zeros(3), pl.ones(3)]})\n>>> tree.num_tensors, "
      "tree.nbytes\n(4, 32)\n>>> tree.map(lambda x: x + 1)[\"layers\"][1].tolist()\n[2.0, 2.0, 2.0]");
  type.def(
          "__init__", [](TensorTree* self, nb::handle value) { new (self) TensorTree(to_tree(value)); },
          nb::arg("value"), nb::sig("def __init__(self, value: object) -> None"))
      .def_prop_ro("is_list", &TensorTree::is_list)
      .def_prop_ro("is_map", &TensorTree::is_map)
      .def_prop_ro("is_tensor", &TensorTree::is_tensor)
      .def(
          "keys", [](const TensorTree& t) { return t.keys(); }, nb::sig("def keys(self) -> list[str]"))
      .def("__len__", &TensorTree::size)
      .def("__contains__", [](const TensorTree& t, const std::string& key) { return t.contains(key); })
      .def("__getitem__", [](const TensorTree& t, const std::string& key) { return tree_item(t[key]); })
      .def("__getitem__",
           [](const TensorTree& t, std::int64_t place) {
             const auto size = static_cast<std::int64_t>(t.size());
             if (t.is_tensor() || place < -size || place >= size)
               throw nb::index_error(fmt::format("index: {} is outside of a tree of {}", place, size).c_str());
             return tree_item(t[static_cast<std::size_t>(place < 0 ? place + size : place)]);
           })
      .def(
          "flatten", [](const TensorTree& t) { return wrap_tensors(t.flatten()); },
          nb::sig("def flatten(self) -> list[Tensor]"), "All tensors, depth first, dicts in the order of their keys.")
      .def(
          "with_leaves",
          [](const TensorTree& t, nb::handle leaves) { return t.with_leaves(to_tensors(nb::list(leaves))); },
          nb::arg("leaves"), nb::sig("def with_leaves(self, leaves: typing.Sequence[TensorLike]) -> TensorTree"),
          "The same structure with these in the places of its tensors.")
      .def(
          "map",
          [](const TensorTree& t, nb::handle f) {
            return t.map([&](const pl::Tensor& leaf) { return to_tensor(f(wrap_tensor(leaf))); });
          },
          nb::arg("f"), nb::sig("def map(self, f: typing.Callable[[Tensor], TensorLike]) -> TensorTree"),
          "The same structure, with what the function gives for each tensor.")
      .def(
          "same_structure", [](const TensorTree& t, nb::handle other) { return t.same_structure(to_tree(other)); },
          nb::arg("other"), nb::sig("def same_structure(self, other: object) -> bool"))
      .def(
          "to_python", [](const TensorTree& t) { return wrap_tree(t); }, nb::sig("def to_python(self) -> typing.Any"),
          "Python's own lists and dicts.")
      .def_prop_ro("num_tensors", &TensorTree::num_tensors)
      .def_prop_ro("nbytes", &TensorTree::nbytes)
      .def("__repr__", &TensorTree::to_string);
}

// A lease of a pool, and what is read and written there.
struct Lease {
  pl::TensorPool::Lease lease;
};

int get_lease_buffer(PyObject* self, Py_buffer* view, int flags) {
  try {
    Lease& lease = *nb::inst_ptr<Lease>(self);
    const pl::Tensor x = lease.lease.tensor();
    pl::visit_dtype(x.dtype(), [&]<class T>(pl::TypeTag<T>) { lease.lease.data<T>(); });  // Somebody writes there.
    // Held: the buffer goes back to the pool when this view has gone too.
    auto pinned = std::make_unique<Pinned>(x);
    const bool is_half = x.dtype() == pl::bf16;
    fill_buffer(self, view, flags, x, is_half ? "H" : format_of(x.dtype()), *pinned);
    view->readonly = 0;
    view->internal = pinned.release();
    return 0;
  } catch (...) {
    view->obj = nullptr;
    set_python_error();
    return -1;
  }
}

PyType_Slot lease_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&get_lease_buffer)},
                             {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_buffer)},
                             {0, nullptr}};

// Waits without Python's lock, and looks now and then whether somebody pressed Ctrl-C.
nb::object acquire(pl::TensorPool& pool, std::optional<double> timeout) {
  using Clock = std::chrono::steady_clock;
  constexpr double kForever = 1e9;
  if (timeout && !(*timeout >= 0)) throw nb::value_error("acquire: a timeout is a number of seconds, at least 0");
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(std::min(timeout.value_or(kForever), kForever)));
  for (;;) {
    const auto left = std::min<Clock::duration>(end - Clock::now(), std::chrono::milliseconds(200));
    auto lease = unlocked(
        [&] { return pool.acquire_for(std::max<std::chrono::nanoseconds>(left, std::chrono::nanoseconds(0))); });
    if (lease) return nb::cast(Lease{std::move(*lease)});
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (Clock::now() >= end) return nb::none();
  }
}

void bind_pool(Module& m) {
  nb::class_<Lease>(m, "Lease", nb::type_slots(lease_slots))
      .def_prop_ro(
          "tensor", [](const Lease& l) { return wrap_tensor(l.lease.tensor()); }, nb::sig("def tensor(self) -> Tensor"),
          "What is there; disposed when the lease ends.")
      .def(
          "numpy",
          [](nb::handle self) {
            const pl::DType dtype = nb::cast<Lease&>(self).lease.tensor().dtype();
            const nb::object view = nb::steal(PyMemoryView_FromObject(self.ptr()));
            if (!view.is_valid()) throw nb::python_error();
            const nb::object array = nb::module_::import_("numpy").attr("asarray")(view);
            if (dtype != pl::bf16) return array;
            return nb::object(array.attr("view")(nb::module_::import_("ml_dtypes").attr("bfloat16")));
          },
          nb::sig("def numpy(self) -> numpy.ndarray"), "An array of NumPy to write to, on the same memory.")
      .def(
          "release", [](Lease& l) { l.lease.reset(); }, "Ends it now.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __enter__(self) -> Lease"))
      .def(
          "__exit__", [](Lease& l, const nb::args&) { l.lease.reset(); },
          nb::sig("def __exit__(self, *args: object) -> None"));
  nb::class_<pl::TensorPool>(
      m, "TensorPool",
      "Tensors of one shape that are taken once and lent out, so that steady work allocates nothing.\n\n>>> pool = "
      "pl.TensorPool((2, 3), capacity=2)\n>>> with pool.acquire() as lease:\n...     memoryview(lease)[0, 0] = "
      "5.0\n... "
      "    (lease.tensor * 2)[0, 0].item()\n10.0\n>>> pool.used, pool.peak\n(0, 1)")
      .def(
          "__init__",
          [](pl::TensorPool* self, nb::handle shape, nb::handle dtype, std::size_t capacity, nb::handle device) {
            new (self) pl::TensorPool({.shape = to_shape(shape).or_scalar(),
                                       .dtype = optional_dtype(dtype).value_or(kDefaultFloat),
                                       .capacity = capacity,
                                       .device = device.is_none() ? "" : nb::cast<std::string>(device)});
          },
          nb::arg("shape"), nb::arg("dtype").none() = nb::none(), nb::arg("capacity") = 1,
          nb::arg("device").none() = nb::none(),
          nb::sig("def __init__(self, shape: ShapeLike, dtype: DTypeLike | None = None, capacity: int = 1, device: str "
                  "| None = None) -> None"))
      .def("acquire", &acquire, nb::arg("timeout").none() = nb::none(),
           nb::sig("def acquire(self, timeout: float | None = None) -> Lease"),
           "Waits until one is free; None when none became free within that many seconds.")
      .def(
          "try_acquire",
          [](pl::TensorPool& pool) -> nb::object {
            auto lease = pool.try_acquire();
            if (!lease) return nb::none();
            return nb::cast(Lease{std::move(*lease)});
          },
          nb::sig("def try_acquire(self) -> Lease | None"), "None when none is free.")
      .def_prop_ro("capacity", &pl::TensorPool::capacity)
      .def_prop_ro("used", &pl::TensorPool::used, "How many are lent, or held by views.")
      .def_prop_ro("peak", &pl::TensorPool::peak)
      .def("report", &pl::TensorPool::report)
      .def("__repr__", [](const pl::TensorPool& pool) { return fmt::format("<TensorPool: {}>", pool.report()); });
}

}  // namespace

bool visit_collection(nb::handle value, const std::function<void(const pl::Tensor&)>& f) {
  if (nb::isinstance<pl::SparseTensor>(value))
    visit_tensors(nb::cast<pl::SparseTensor&>(value), f);
  else if (nb::isinstance<pl::RaggedTensor>(value))
    visit_tensors(nb::cast<pl::RaggedTensor&>(value), f);
  else if (nb::isinstance<pl::TensorArray>(value))
    visit_tensors(nb::cast<pl::TensorArray&>(value), f);
  else if (nb::isinstance<pl::TensorTree>(value))
    visit_tensors(nb::cast<pl::TensorTree&>(value), f);
  else
    return false;
  return true;
}

void bind_collections(Module& m) {
  bind_sparse(m);
  bind_ragged(m);
  bind_array(m);
  bind_tree(m);
  bind_pool(m);
}

}  // namespace binding
