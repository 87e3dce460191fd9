// Datasets: examples one after the other, from arrays, generators and files.
#include <fmt/format.h>

#include "exchange.h"
#include "models.h"

namespace binding {
namespace {

std::vector<pl::Tensor> parts(nb::handle value) {
  std::vector<pl::Tensor> result;
  if (value.is_none()) return result;
  const bool several = PyTuple_Check(value.ptr()) ||
                       (PyList_Check(value.ptr()) && nb::len(value) > 0 && !to_number(nb::borrow<nb::list>(value)[0]) &&
                        !PyList_Check(nb::handle(nb::borrow<nb::list>(value)[0]).ptr()));
  if (!several) return {borrow_tensor(value)};
  for (nb::handle each : nb::borrow<nb::sequence>(value)) result.push_back(borrow_tensor(each));
  return result;
}

nb::object one_or_list(const std::vector<pl::Tensor>& tensors) {
  if (tensors.empty()) return nb::none();
  if (tensors.size() == 1) return wrap_tensor(tensors[0]);
  return wrap_tensors(tensors);
}

// A pass over a dataset. It may wait for a thread of ours, which may want Python's lock.
class Pass {
 public:
  explicit Pass(const pl::Dataset& data) : stream_(unlocked([&] { return data.open(); })) {}
  Pass(Pass&&) = default;
  ~Pass() {
    if (!stream_) return;
    const nb::gil_scoped_release release;
    stream_.reset();
  }
  nb::object next() {
    pl::Example example;
    if (!unlocked([&] { return stream_->next(example); })) throw nb::stop_iteration();
    return wrap_example(example);
  }

 private:
  std::unique_ptr<pl::ExampleStream> stream_;
};

pl::Dataset from_slices(nb::handle data, nb::handle y, nb::handle weights) {
  if (y.is_none() && PyTuple_Check(data.ptr())) {  // TensorFlow's ((x, y)).
    const pl::Example example = to_example(data);
    return pl::Dataset::from_tensors(example.inputs, example.targets, example.weights);
  }
  return pl::Dataset::from_tensors(parts(data), parts(y), weights.is_none() ? pl::Tensor() : borrow_tensor(weights));
}

pl::Dataset from_generator(nb::object make) {
  return pl::Dataset::from_generator([make = SharedObject(std::move(make))]() -> pl::Dataset::Generator {
    return with_python([&]() -> pl::Dataset::Generator {
      const nb::object made = PyCallable_Check(make.get().ptr()) ? make.get()() : nb::borrow(make.get());
      const SharedObject iterator(nb::iter(made));
      return [iterator]() -> std::optional<pl::Example> {
        return with_python([&]() -> std::optional<pl::Example> {
          const nb::object next = nb::steal(PyIter_Next(iterator.get().ptr()));
          if (!next.is_valid()) {
            if (PyErr_Occurred()) throw nb::python_error();
            return std::nullopt;
          }
          return to_example(next);
        });
      };
    });
  });
}

nb::object call_with(nb::handle function, const pl::Example& example) {
  const nb::object given = wrap_example(example);
  return PyTuple_Check(given.ptr()) ? function(*nb::borrow<nb::tuple>(given)) : function(given);
}

void bind_making(nb::class_<pl::Dataset>& type) {
  type.def_static(
          "from_tensor_slices", &from_slices, nb::arg("x"), nb::arg("y").none() = nb::none(),
          nb::arg("weights").none() = nb::none(),
          nb::sig("def from_tensor_slices(x: object, y: object = None, weights: TensorLike | None = None) -> Dataset"),
          "Rows of arrays: x, or x and y, or (x, y).\n\n>>> data = pl.Dataset.from_tensor_slices([[1.0], [2.0], "
          "[3.0]], [0, 1, 0]).batch(2)\n>>> [x.shape for x, y in data]\n[(2, 1), (1, 1)]")
      .def_static("from_tensors", &from_slices, nb::arg("x"), nb::arg("y").none() = nb::none(),
                  nb::arg("weights").none() = nb::none())
      .def_static("from_generator", &from_generator, nb::arg("make"),
                  nb::sig("def from_generator(make: typing.Callable[[], typing.Iterable[object]]) -> Dataset"),
                  "Examples that a function of Python gives, called again for each pass.")
      .def_static(
          "from_csv",
          [](const std::string& path, const std::vector<std::string>& targets, const std::vector<std::string>& features,
             const std::vector<std::string>& categorical, bool stream, const std::string& missing) {
            return unlocked([&] {
              return pl::Dataset::from_csv(path, {.targets = targets,
                                                  .features = features,
                                                  .categorical = categorical,
                                                  .missing = missing,
                                                  .stream = stream});
            });
          },
          nb::arg("path"), nb::arg("targets") = std::vector<std::string>(),
          nb::arg("features") = std::vector<std::string>(), nb::arg("categorical") = std::vector<std::string>(),
          nb::arg("stream") = false, nb::arg("missing") = "error")
      .def_static(
          "from_npz",
          [](const std::string& path, const std::string& x, const std::string& y) {
            return unlocked([&] { return pl::Dataset::from_npz(path, x, y); });
          },
          nb::arg("path"), nb::arg("x") = "", nb::arg("y") = "")
      .def_static(
          "from_idx",
          [](const std::string& x, const std::string& y) {
            return unlocked([&] { return pl::Dataset::from_idx(x, y); });
          },
          nb::arg("x"), nb::arg("y") = "");
}

void bind_changing(nb::class_<pl::Dataset>& type) {
  type.def(
          "shuffle",
          [](const pl::Dataset& d, std::size_t buffer, std::optional<std::uint64_t> seed, bool again) {
            return d.shuffle(buffer, {.seed = seed, .reshuffle_each_iteration = again});
          },
          nb::arg("buffer_size"), nb::arg("seed").none() = nb::none(), nb::arg("reshuffle_each_iteration") = true)
      .def(
          "batch",
          [](const pl::Dataset& d, std::size_t size, bool drop) { return d.batch(size, {.drop_remainder = drop}); },
          nb::arg("batch_size"), nb::arg("drop_remainder") = false)
      .def("repeat", &pl::Dataset::repeat, nb::arg("count") = -1)
      .def("take", &pl::Dataset::take, nb::arg("count"))
      .def("skip", &pl::Dataset::skip, nb::arg("count"))
      .def(
          "prefetch",
          [](const pl::Dataset& d, std::size_t count, nb::handle max_bytes) {
            return d.prefetch(count, {.max_bytes = optional_bytes(max_bytes).value_or(0)});
          },
          nb::arg("count"), nb::arg("max_bytes").none() = nb::none())
      .def(
          "window",
          [](const pl::Dataset& d, std::size_t size, std::size_t shift, bool drop) {
            return d.window(size, {.shift = shift, .drop_remainder = drop});
          },
          nb::arg("size"), nb::arg("shift") = 1, nb::arg("drop_remainder") = true)
      .def(
          "map",
          [](const pl::Dataset& d, nb::object f) {
            return d.map([f = SharedObject(std::move(f))](const pl::Example& example) {
              return with_python([&] { return to_example(call_with(f.get(), example)); });
            });
          },
          nb::arg("function"), nb::sig("def map(self, function: typing.Callable[..., object]) -> Dataset"))
      .def(
          "filter",
          [](const pl::Dataset& d, nb::object f) {
            return d.filter([f = SharedObject(std::move(f))](const pl::Example& example) {
              return with_python([&] {
                const int truth = PyObject_IsTrue(call_with(f.get(), example).ptr());
                if (truth < 0) throw nb::python_error();
                return truth == 1;
              });
            });
          },
          nb::arg("function"), nb::sig("def filter(self, function: typing.Callable[..., object]) -> Dataset"))
      .def(
          "split",
          [](const pl::Dataset& d, const std::vector<double>& shares) {
            nb::list result;
            // Of one order: the library cuts as many parts as it is asked for at compile time.
            const auto add = [&](const auto& cut) {
              for (std::size_t i = 0; i < shares.size(); ++i) result.append(nb::cast(cut[i]));
            };
            if (shares.size() == 2)
              add(d.split({shares[0], shares[1]}));
            else if (shares.size() == 3)
              add(d.split({shares[0], shares[1], shares[2]}));
            else
              throw pl::InvalidArgument("split: two or three fractions");
            return result;
          },
          nb::arg("fractions"), nb::sig("def split(self, fractions: typing.Sequence[float]) -> list[Dataset]"));
}

}  // namespace

pl::Example to_example(nb::handle value) {
  pl::Example example;
  if (!PyTuple_Check(value.ptr())) {
    example.inputs = parts(value);
    return example;
  }
  const auto tuple = nb::borrow<nb::tuple>(value);
  if (tuple.size() == 0 || tuple.size() > 3)
    throw pl::InvalidArgument(fmt::format("example: expected (x, y) or (x, y, weights), not {} parts", tuple.size()));
  example.inputs = parts(tuple[0]);
  if (tuple.size() > 1) example.targets = parts(tuple[1]);
  if (tuple.size() > 2) example.weights = borrow_tensor(tuple[2]);
  return example;
}

nb::object wrap_example(const pl::Example& example) {
  const nb::object x = one_or_list(example.inputs), y = one_or_list(example.targets);
  if (!example.weights.is_empty_handle()) return nb::make_tuple(x, y, wrap_tensor(example.weights));
  return y.is_none() ? x : nb::object(nb::make_tuple(x, y));
}

pl::Dataset to_dataset(nb::handle object) {
  return nb::isinstance<pl::Dataset>(object) ? nb::cast<pl::Dataset>(object) : pl::Dataset();
}

void bind_data(Module& m) {
  nb::class_<Pass>(m, "Pass")
      .def("__iter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__next__", &Pass::next);
  nb::class_<pl::Dataset> type(m, "Dataset", "Examples one after the other, as often as they are asked for.");
  bind_making(type);
  bind_changing(type);
  type.def(
          "__iter__", [](const pl::Dataset& d) { return Pass(d); },
          nb::sig("def __iter__(self) -> typing.Iterator[object]"))
      .def("__len__",
           [](const pl::Dataset& d) {
             const auto size = d.size();
             if (!size) throw nb::type_error("len() of a dataset whose size is not known");
             return *size;
           })
      .def_prop_ro("size", &pl::Dataset::size, "Examples of a pass; None when that is not known.");
  m.def(
      "timeseries_windows",
      [](nb::handle series, std::int64_t look_back, std::int64_t horizon, std::int64_t stride) {
        const pl::Tensor x = borrow_tensor(series);
        return pl::timeseries_windows(x, {.look_back = look_back, .horizon = horizon, .stride = stride});
      },
      nb::arg("series"), nb::arg("look_back"), nb::arg("horizon") = 1, nb::arg("stride") = 1,
      nb::sig(
          "def timeseries_windows(series: TensorLike, look_back: int, horizon: int = 1, stride: int = 1) -> Dataset"));
}

}  // namespace binding
