// Models in the files of others: .keras and .h5 of Keras, .onnx.
#include <nanobind/stl/filesystem.h>

#include <map>

#include "models.h"
#include "plimsoll/model/keras/keras_file.h"
#include "plimsoll/model/onnx/onnx_model.h"

namespace binding {
namespace {

using Path = std::filesystem::path;

void bind_keras(Module& m) {
  m.def(
      "load_keras",
      [](const Path& path, bool weights, bool compile) {
        return unlocked([&] { return pl::load_keras(path.string(), {.weights = weights, .compile = compile}); });
      },
      nb::arg("path"), nb::arg("weights") = true, nb::arg("compile") = true,
      nb::sig("def load_keras(path: str | os.PathLike[str], weights: bool = True, compile: bool = True) -> Model"));
  m.def(
      "save_keras",
      [](const pl::Model& model, const Path& path, bool include_optimizer) {
        unlocked([&] {
          pl::save_keras(model, path.string(), {.include_optimizer = include_optimizer});
          return 0;
        });
      },
      nb::arg("model"), nb::arg("path"), nb::arg("include_optimizer") = true,
      nb::sig("def save_keras(model: Model, path: str | os.PathLike[str], include_optimizer: bool = True) -> None"));
}

nb::list wrap_ends(const std::vector<pl::OnnxEnd>& ends) {
  nb::list list;
  for (const pl::OnnxEnd& each : ends) {
    nb::dict row;
    row["name"] = each.name;
    row["dtype"] = wrap_dtype(each.dtype);
    row["shape"] = each.shape.is_set() ? nb::object(wrap_shape(each.shape)) : nb::none();
    list.append(row);
  }
  return list;
}

std::map<std::string, pl::Tensor> named_tensors(const pl::OnnxModel& model, nb::handle inputs) {
  std::map<std::string, pl::DType> dtypes;
  for (const pl::OnnxEnd& each : model.inputs()) dtypes.emplace(each.name, each.dtype);
  std::map<std::string, pl::Tensor> result;
  for (auto [key, value] : nb::borrow<nb::dict>(inputs)) {
    const auto name = nb::cast<std::string>(key);
    pl::Tensor x = borrow_tensor(value);
    // Floats of Python and NumPy are of 64 bits more often than the file's.
    if (const auto wanted = dtypes.find(name); wanted != dtypes.end() && x.dtype() != wanted->second)
      x = unlocked([&] { return x.cast(wanted->second); });
    result.emplace(name, x);
  }
  return result;
}

pl::MemoryForecast onnx_forecast(const pl::OnnxModel& model, nb::handle inputs) {
  const nb::dict given = nb::borrow<nb::dict>(inputs);
  std::map<std::string, pl::Shape> shapes;
  for (auto [key, value] : given)
    if (PyTuple_Check(value.ptr()) || PyList_Check(value.ptr()))
      shapes.emplace(nb::cast<std::string>(key), to_shape(value));
  if (shapes.size() == given.size()) return unlocked([&] { return model.forecast(shapes); });
  const auto tensors = named_tensors(model, inputs);
  return unlocked([&] { return model.forecast(tensors); });
}

void bind_onnx(Module& m) {
  m.def(
      "load_onnx",
      [](const Path& path, bool weights) {
        return unlocked([&] { return pl::load_onnx(path, {.weights = weights}); });
      },
      nb::arg("path"), nb::arg("weights") = true,
      nb::sig("def load_onnx(path: str | os.PathLike[str], weights: bool = True) -> Model"));
  nb::class_<pl::OnnxModel>(m, "OnnxModel")
      .def(
          "__init__",
          [](pl::OnnxModel* self, const Path& path, bool weights) {
            new (self) pl::OnnxModel(unlocked([&] { return pl::OnnxModel(path, {.weights = weights}); }));
          },
          nb::arg("path"), nb::arg("weights") = true,
          nb::sig("def __init__(self, path: str | os.PathLike[str], weights: bool = True) -> None"))
      .def_prop_ro(
          "inputs", [](const pl::OnnxModel& model) { return wrap_ends(model.inputs()); },
          nb::sig("def inputs(self) -> list[dict[str, typing.Any]]"))
      .def_prop_ro(
          "outputs", [](const pl::OnnxModel& model) { return wrap_ends(model.outputs()); },
          nb::sig("def outputs(self) -> list[dict[str, typing.Any]]"))
      .def(
          "predict",
          [](const pl::OnnxModel& model, nb::handle inputs, nb::handle budget) {
            const auto tensors = named_tensors(model, inputs);
            const auto bytes = optional_bytes(budget);
            return wrap_tensors(unlocked([&] { return model.predict(tensors, {.budget = bytes}); }));
          },
          nb::arg("inputs"), nb::arg("budget").none() = nb::none(),
          nb::sig("def predict(self, inputs: dict[str, TensorLike], budget: str | int | None = None) -> list[Tensor]"),
          "Outputs in the order of the file's.")
      .def("forecast", &onnx_forecast, nb::arg("inputs"),
           nb::sig("def forecast(self, inputs: dict[str, typing.Any]) -> MemoryForecast"),
           "What a prediction takes: of shapes by name, or of inputs.")
      .def_prop_ro("num_parameters", &pl::OnnxModel::num_parameters)
      .def("model", &pl::OnnxModel::model, "The same weights as a model.");
}

}  // namespace

void bind_interchange(Module& m) {
  bind_keras(m);
  bind_onnx(m);
}

}  // namespace binding
