// Sparse tensors: entries and their places, arithmetic with dense ones, exchange with SciPy.
#include <fmt/format.h>

#include "collections.h"

namespace binding {
namespace {

using pl::SparseTensor;

pl::SparseOptions duplicates_of(const std::string& what) {
  if (what == "refuse") return {pl::Duplicates::refuse};
  if (what == "sum") return {pl::Duplicates::sum};
  throw pl::InvalidArgument(fmt::format("duplicates: \"{}\" is neither \"refuse\" nor \"sum\"", what));
}

SparseTensor in_dtype(const SparseTensor& x, pl::DType dtype) { return x.dtype() == dtype ? x : x.cast(dtype); }
pl::Tensor in_dtype(const pl::Tensor& x, pl::DType dtype) { return x.dtype() == dtype ? x : x.cast(dtype); }

template <class F>
SparseTensor of_both(const SparseTensor& a, const SparseTensor& b, F&& f) {
  const pl::DType dtype = *promoted(a.dtype(), b.dtype());
  return unlocked([&] { return f(in_dtype(a, dtype), in_dtype(b, dtype)); });
}

nb::object not_ours() { return nb::borrow(Py_NotImplemented); }

bool is_dense(nb::handle object) {
  return tensor_of(object) || PyList_Check(object.ptr()) || nb::hasattr(object, "__array__");
}

nb::object times(const SparseTensor& x, nb::handle other) {
  if (auto number = to_number(other)) {
    const pl::DType dtype = !number->is_integer() && !pl::is_floating(x.dtype()) ? kDefaultFloat : x.dtype();
    return nb::cast(unlocked([&] { return in_dtype(x, dtype) * *number; }));
  }
  if (!is_dense(other)) return not_ours();
  const pl::Tensor dense = to_tensor(other);
  const pl::DType dtype = *promoted(x.dtype(), dense.dtype());
  return nb::cast(unlocked([&] { return in_dtype(x, dtype) * in_dtype(dense, dtype); }));
}

nb::object divided(const SparseTensor& x, nb::handle other) {
  const auto number = to_number(other);
  if (!number && !is_dense(other)) return not_ours();
  const pl::Tensor dense = number ? pl::Tensor() : to_tensor(other);
  const pl::DType common = number ? x.dtype() : *promoted(x.dtype(), dense.dtype());
  const pl::DType dtype = pl::is_floating(common) ? common : kDefaultFloat;
  return nb::cast(unlocked([&] {
    const SparseTensor floats = in_dtype(x, dtype);
    return number ? floats / *number : floats / in_dtype(dense, dtype);
  }));
}

nb::object product(nb::handle a, nb::handle b, pl::MatmulOptions options) {
  const auto sparse = [](nb::handle h) { return nb::isinstance<SparseTensor>(h); };
  if (sparse(a) && sparse(b))
    return nb::cast(
        of_both(nb::cast<SparseTensor&>(a), nb::cast<SparseTensor&>(b),
                [&](const SparseTensor& x, const SparseTensor& y) { return sparse_matmul(x, y, options); }));
  if (!sparse(a) && !sparse(b)) throw nb::type_error("sparse_matmul: one of the two is a SparseTensor");
  const SparseTensor& x = nb::cast<SparseTensor&>(sparse(a) ? a : b);
  const pl::Tensor y = to_tensor(sparse(a) ? b : a);
  const pl::DType dtype = *promoted(x.dtype(), y.dtype());
  return wrap_tensor(unlocked([&] {
    const SparseTensor left = in_dtype(x, dtype);
    const pl::Tensor right = in_dtype(y, dtype);
    return sparse(a) ? pl::sparse_matmul(left, right, options) : pl::sparse_matmul(right, left, options);
  }));
}

SparseTensor from_scipy(nb::handle matrix) {
  const nb::object rows = matrix.attr("tocsr")();
  const auto part = [&](const char* name) { return to_tensor(rows.attr(name)); };
  const pl::Tensor splits = part("indptr"), columns = part("indices"), values = part("data");
  const pl::Shape shape = to_shape(rows.attr("shape"));
  return unlocked([&] { return SparseTensor::from_csr(splits, columns, values, shape, {pl::Duplicates::sum}); });
}

nb::object to_scipy(const SparseTensor& x) {
  const SparseTensor rows = unlocked([&] { return x.to_csr(); });
  const auto array = [](const pl::Tensor& part) { return wrap_tensor(part).attr("numpy")().attr("copy")(); };
  const nb::object make = nb::module_::import_("scipy.sparse").attr("csr_matrix");
  return make(nb::make_tuple(array(rows.values()), array(rows.columns()), array(rows.row_splits())),
              nb::arg("shape") = wrap_shape(rows.shape()));
}

void bind_making(nb::class_<SparseTensor>& type) {
  type.def(
          "__init__",
          [](SparseTensor* self, nb::handle indices, nb::handle values, nb::handle shape,
             const std::string& duplicates) {
            const pl::Tensor places = to_tensor(indices), entries = to_tensor(values);
            const pl::Shape sizes = to_shape(shape);
            new (self)
                SparseTensor(unlocked([&] { return SparseTensor(places, entries, sizes, duplicates_of(duplicates)); }));
          },
          nb::arg("indices"), nb::arg("values"), nb::arg("shape"), nb::arg("duplicates") = "refuse",
          nb::sig("def __init__(self, indices: TensorLike, values: TensorLike, shape: ShapeLike, duplicates: str = "
                  "'refuse') -> None"))
      .def_static(
          "from_csr",
          [](nb::handle splits, nb::handle columns, nb::handle values, nb::handle shape,
             const std::string& duplicates) {
            const pl::Tensor s = to_tensor(splits), c = to_tensor(columns), v = to_tensor(values);
            const pl::Shape sizes = to_shape(shape);
            return unlocked([&] { return SparseTensor::from_csr(s, c, v, sizes, duplicates_of(duplicates)); });
          },
          nb::arg("row_splits"), nb::arg("columns"), nb::arg("values"), nb::arg("shape"),
          nb::arg("duplicates") = "refuse",
          nb::sig("def from_csr(row_splits: TensorLike, columns: TensorLike, values: TensorLike, shape: ShapeLike, "
                  "duplicates: str = 'refuse') -> SparseTensor"))
      .def_static(
          "from_dense",
          [](nb::handle x) {
            const pl::Tensor dense = to_tensor(x);
            return unlocked([&] { return pl::sparse_from_dense(dense); });
          },
          nb::arg("x"), nb::sig("def from_dense(x: TensorLike) -> SparseTensor"), "The elements that are not zero.")
      .def_static("from_scipy", &from_scipy, nb::arg("matrix"),
                  nb::sig("def from_scipy(matrix: object) -> SparseTensor"), "Copies a sparse matrix of SciPy.")
      .def("to_scipy", &to_scipy, nb::sig("def to_scipy(self) -> typing.Any"), "A csr_matrix of SciPy, copied.");
}

void bind_facts(nb::class_<SparseTensor>& type) {
  type.def_prop_ro(
          "shape", [](const SparseTensor& x) { return wrap_shape(x.shape()); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("ndim", &SparseTensor::rank)
      .def_prop_ro(
          "dtype", [](const SparseTensor& x) { return wrap_dtype(x.dtype()); }, nb::sig("def dtype(self) -> DType"))
      .def_prop_ro("num_entries", &SparseTensor::num_entries)
      .def_prop_ro("nbytes", &SparseTensor::nbytes)
      .def_prop_ro("device", &SparseTensor::device)
      .def_prop_ro(
          "format", [](const SparseTensor& x) { return x.format() == pl::SparseFormat::csr ? "csr" : "coo"; },
          nb::sig("def format(self) -> str"))
      .def_prop_ro(
          "values", [](const SparseTensor& x) { return wrap_tensor(x.values()); },
          nb::sig("def values(self) -> Tensor"))
      .def_prop_ro(
          "indices", [](const SparseTensor& x) { return wrap_tensor(x.indices()); },
          nb::sig("def indices(self) -> Tensor"))
      .def_prop_ro(
          "row_splits", [](const SparseTensor& x) { return wrap_tensor(x.row_splits()); },
          nb::sig("def row_splits(self) -> Tensor"))
      .def_prop_ro(
          "columns", [](const SparseTensor& x) { return wrap_tensor(x.columns()); },
          nb::sig("def columns(self) -> Tensor"))
      .def("dispose", &SparseTensor::dispose)
      .def_prop_ro("is_disposed", &SparseTensor::is_disposed)
      .def("__repr__", [](const SparseTensor& x) { return pl::to_string(x); });
}

using Reduce = pl::Tensor (SparseTensor::*)(const pl::Axes&, pl::ReduceOptions) const;

void bind_changing(nb::class_<SparseTensor>& type) {
  type.def("to_coo", &SparseTensor::to_coo)
      .def("to_csr", &SparseTensor::to_csr, "Once before many products.")
      .def(
          "to_dense", [](const SparseTensor& x) { return wrap_tensor(unlocked([&] { return x.to_dense(); })); },
          nb::sig("def to_dense(self) -> Tensor"))
      .def(
          "with_values", [](const SparseTensor& x, nb::handle values) { return x.with_values(to_tensor(values)); },
          nb::arg("values"), nb::sig("def with_values(self, values: TensorLike) -> SparseTensor"),
          "The same places with other values.")
      .def(
          "astype", [](const SparseTensor& x, nb::handle dtype) { return x.cast(to_dtype(dtype)); }, nb::arg("dtype"),
          nb::sig("def astype(self, dtype: DTypeLike) -> SparseTensor"))
      .def("slice_rows", &SparseTensor::slice_rows, nb::arg("begin"), nb::arg("count") = -1)
      .def(
          "transpose",
          [](const SparseTensor& x, nb::handle axes) {
            const auto order = axes.is_none() ? std::vector<std::int64_t>() : to_integers(axes);
            return unlocked([&] { return x.transpose(order); });
          },
          nb::arg("axes").none() = nb::none(),
          nb::sig("def transpose(self, axes: typing.Sequence[int] | None = None) -> SparseTensor"))
      .def_prop_ro(
          "T", [](const SparseTensor& x) { return unlocked([&] { return x.transpose(); }); },
          nb::sig("def T(self) -> SparseTensor"));
  struct Named {
    const char* name;
    Reduce reduce;
  };
  static const Named kReductions[] = {
      {"sum", &SparseTensor::sum}, {"mean", &SparseTensor::mean}, {"max", &SparseTensor::max}};
  for (const Named& each : kReductions)
    type.def(
        each.name,
        [&each](const SparseTensor& x, nb::handle axis, bool keepdims) {
          const pl::Axes axes = to_axes(axis);
          return wrap_tensor(unlocked([&] { return (x.*each.reduce)(axes, {.keep_dims = keepdims}); }));
        },
        nb::arg("axis").none() = nb::none(), nb::arg("keepdims") = false,
        nb::sig((std::string("def ") + each.name +
                 "(self, axis: int | typing.Sequence[int] | None = None, keepdims: bool = False) -> Tensor")
                    .c_str()),
        "Dense: the zeros that are not stored count.");
}

void bind_operators(nb::class_<SparseTensor>& type) {
  const auto sum = [](bool subtracts) {
    return [subtracts](const SparseTensor& a, nb::handle b) -> nb::object {
      if (!nb::isinstance<SparseTensor>(b)) return not_ours();
      return nb::cast(of_both(a, nb::cast<SparseTensor&>(b),
                              [&](const SparseTensor& x, const SparseTensor& y) { return subtracts ? x - y : x + y; }));
    };
  };
  const auto signature = [](const char* name, const char* result) {
    return std::string("def ") + name + "(self, other: object, /) -> " + result;
  };
  type.attr("__array_ufunc__") = nb::none();  // Arrays of NumPy leave operators to us.
  type.def("__add__", sum(false), nb::sig(signature("__add__", "SparseTensor").c_str()))
      .def("__sub__", sum(true), nb::sig(signature("__sub__", "SparseTensor").c_str()))
      .def("__neg__", [](const SparseTensor& x) { return -x; })
      .def("__mul__", &times, nb::sig(signature("__mul__", "SparseTensor").c_str()))
      .def("__rmul__", &times, nb::sig(signature("__rmul__", "SparseTensor").c_str()))
      .def("__truediv__", &divided, nb::sig(signature("__truediv__", "SparseTensor").c_str()))
      .def(
          "__matmul__", [](nb::handle a, nb::handle b) { return product(a, b, {}); },
          nb::sig(signature("__matmul__", "typing.Any").c_str()))
      .def(
          "__rmatmul__", [](nb::handle b, nb::handle a) { return product(a, b, {}); },
          nb::sig(signature("__rmatmul__", "typing.Any").c_str()));
}

}  // namespace

void bind_sparse(Module& m) {
  nb::class_<SparseTensor> type(
      m, "SparseTensor",
      "A tensor that stores only some of its elements, the entries; all others are zero.\n\n>>> s = "
      "pl.SparseTensor([[0, 1], [2, 0]], [5.0, 7.0], (3, 2))\n>>> (s @ pl.asarray([[1.0], [2.0]])).tolist()\n[[10.0], "
      "[0.0], [7.0]]\n>>> (s * 2).to_dense().tolist()\n[[0.0, 10.0], [0.0, 0.0], [14.0, 0.0]]");
  bind_making(type);
  bind_facts(type);
  bind_changing(type);
  bind_operators(type);
  m.def(
      "sparse_matmul",
      [](nb::handle a, nb::handle b, bool transpose_a, bool transpose_b) {
        return product(a, b, {.transpose_a = transpose_a, .transpose_b = transpose_b});
      },
      nb::arg("a"), nb::arg("b"), nb::arg("transpose_a") = false, nb::arg("transpose_b") = false,
      nb::sig("def sparse_matmul(a: object, b: object, transpose_a: bool = False, transpose_b: bool = False) -> "
              "typing.Any"));
  m.def(
      "sparse_softmax", [](const SparseTensor& x) { return unlocked([&] { return pl::sparse_softmax(x); }); },
      nb::arg("x"));
}

}  // namespace binding
