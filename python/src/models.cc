// Models: compile, fit, evaluate, predict, forecast, with what NumPy, pandas and scikit-learn give.
#include "models.h"

#include "distributed.h"

#include <fmt/format.h>
#include <nanobind/stl/map.h>

#include <sstream>

namespace binding {
namespace {

bool has_embedding(const pl::Model& model) {
  for (const pl::Layer& layer : model.layers())
    if (std::string_view(layer.base().class_name()) == "Embedding") return true;
  return false;
}

// The caller's arrays, as the model wants them: shared where they are so already, else converted, on the budget that is
// open. Indices of embeddings stay integers.
pl::Tensor input_tensor(const pl::Model& model, nb::handle object) {
  const pl::Tensor x = borrow_tensor(object);
  if (x.dtype() == pl::f32 || (pl::is_integer(x.dtype()) && has_embedding(model))) return x;
  if (model.is_built() && model.input_dtypes().at(0) == x.dtype()) return x;
  return unlocked([&] { return x.cast(pl::f32); });
}

std::vector<pl::Tensor> input_tensors(const pl::Model& model, nb::handle object) {
  const bool is_list = PyList_Check(object.ptr()) || PyTuple_Check(object.ptr());
  const bool several = is_list && nb::len(object) > 0 &&
                       (tensor_of(object[0]) || nb::hasattr(object[0], "__array__")) &&
                       (!model.is_built() || model.input_names().size() > 1);
  if (!several) return {input_tensor(model, object)};
  std::vector<pl::Tensor> result;
  for (nb::handle each : nb::borrow<nb::sequence>(object)) result.push_back(input_tensor(model, each));
  return result;
}

std::vector<pl::Tensor> target_tensors(const pl::Model& model, nb::handle object) {
  const bool takes_labels = model.is_compiled() && model.loss_takes_labels();
  const auto one = [&](nb::handle each) {
    const pl::Tensor y = borrow_tensor(each);
    // What a forecast counts with: float32, and labels of int32.
    const bool is_label = takes_labels && pl::is_integer(y.dtype());
    if (y.dtype() == pl::f32 || (is_label && y.dtype() != pl::i64)) return y;
    return unlocked([&] { return y.cast(is_label ? pl::i32 : pl::f32); });
  };
  const bool is_list = PyList_Check(object.ptr()) || PyTuple_Check(object.ptr());
  const bool several = is_list && nb::len(object) > 0 &&
                       (tensor_of(object[0]) || nb::hasattr(object[0], "__array__")) &&
                       (!model.is_built() || model.output_names().size() > 1);
  if (!several) return {one(object)};
  std::vector<pl::Tensor> result;
  for (nb::handle each : nb::borrow<nb::sequence>(object)) result.push_back(one(each));
  return result;
}

pl::Dataset data_of(const pl::Model& model, nb::handle x, nb::handle y, nb::handle weights) {
  if (const pl::Dataset given = to_dataset(x); given.is_set()) return given;
  if (y.is_none()) throw nb::type_error("y: targets are missing; give x and y, or a Dataset of both");
  return pl::Dataset::from_tensors(input_tensors(model, x), target_tensors(model, y),
                                   weights.is_none() ? pl::Tensor() : borrow_tensor(weights));
}

// What validation_data is: a dataset, or (x, y).
pl::Dataset validation_of(const pl::Model& model, nb::handle object, std::size_t batch_size) {
  if (object.is_none()) return {};
  if (const pl::Dataset given = to_dataset(object); given.is_set()) return given;
  if (!PyTuple_Check(object.ptr()) && !PyList_Check(object.ptr()))
    throw nb::type_error("validation_data: (x, y), (x, y, weights) or a Dataset");
  return data_of(model, object[0], object[1], nb::len(object) > 2 ? nb::object(object[2]) : nb::none())
      .batch(batch_size);
}

nb::dict wrap_history(const pl::History& history) {
  nb::dict result, rows;
  for (const std::string& name : history.names()) {
    nb::list values;
    for (const float each : history[name]) values.append(static_cast<double>(each));
    rows[name.c_str()] = values;
  }
  result["history"] = rows;
  result["peak_bytes"] = history.peak_bytes();
  result["growth"] = history.growth();
  result["recomputed_fraction"] = history.recomputed_fraction();
  result["spilled_bytes"] = history.spilled_bytes();
  result["num_epochs"] = history.num_epochs();
  return result;
}

nb::dict fit(nb::handle self, nb::handle x, nb::handle y, std::size_t batch_size, int epochs, int verbose,
             nb::handle callbacks, double validation_split, nb::handle validation_data, bool shuffle,
             nb::handle class_weight, nb::handle sample_weight, int initial_epoch, nb::handle budget, nb::handle spill,
             double max_slowdown, nb::handle distributed) {
  pl::Model& model = nb::cast<pl::Model&>(self);
  pl::FitOptions options{.epochs = epochs,
                         .batch_size = batch_size,
                         .validation_data = validation_of(model, validation_data, batch_size),
                         .validation_split = validation_split,
                         .verbose = verbose,
                         .shuffle = shuffle,
                         .budget = optional_bytes(budget),
                         .spill = to_path(spill),
                         .max_slowdown = max_slowdown,
                         .initial_epoch = initial_epoch};
  options.distributed = to_training(distributed);
  if (!class_weight.is_none()) options.class_weights = nb::cast<std::map<std::int64_t, double>>(class_weight);
  if (!callbacks.is_none()) {
    const bool is_list = PyList_Check(callbacks.ptr()) || PyTuple_Check(callbacks.ptr());
    if (!is_list)
      options.callbacks.push_back(to_callback(callbacks, self));
    else
      for (nb::handle each : nb::borrow<nb::sequence>(callbacks)) options.callbacks.push_back(to_callback(each, self));
  }
  options.callbacks.push_back(signal_callback());
  if (const pl::Dataset given = to_dataset(x); given.is_set())
    return wrap_history(unlocked([&] { return model.fit(given, options); }));
  if (y.is_none()) throw nb::type_error("fit: targets are missing; give x and y, or a Dataset of both");
  const std::vector<pl::Tensor> inputs = input_tensors(model, x), targets = target_tensors(model, y);
  if (inputs.size() == 1 && targets.size() == 1 && sample_weight.is_none())
    return wrap_history(unlocked([&] { return model.fit(inputs[0], targets[0], options); }));
  pl::Dataset data =
      pl::Dataset::from_tensors(inputs, targets, sample_weight.is_none() ? pl::Tensor() : borrow_tensor(sample_weight));
  const std::size_t rows = data.size().value_or(0);
  if (validation_split > 0) {
    auto [train, validation] = data.split({1 - validation_split, validation_split});
    options.validation_data = validation.batch(batch_size);
    options.validation_split = 0;
    data = train;
  }
  if (shuffle) data = data.shuffle(std::max<std::size_t>(rows, 1));
  data = data.batch(batch_size);
  return wrap_history(unlocked([&] { return model.fit(data, options); }));
}

nb::object predict(const pl::Model& model, nb::handle x, std::size_t batch_size, nb::handle budget, nb::handle spill) {
  const pl::BatchSizeOptions options{
      .batch_size = batch_size, .budget = optional_bytes(budget), .spill = to_path(spill)};
  if (const pl::Dataset given = to_dataset(x); given.is_set()) {
    std::vector<pl::Tensor> parts;
    unlocked([&] {
      for (const pl::Example& batch : given) parts.push_back(model.predict(batch.x(), options));
      return 0;
    });
    return wrap_tensor(unlocked([&] { return pl::concat(parts); }));
  }
  const std::vector<pl::Tensor> inputs = input_tensors(model, x);
  const auto outputs = unlocked([&] {
    return inputs.size() == 1 && (!model.is_built() || model.output_names().size() == 1)
               ? std::vector{model.predict(inputs[0], options)}
               : model.predict_all(inputs, options);
  });
  return outputs.size() == 1 ? wrap_tensor(outputs[0]) : nb::object(wrap_tensors(outputs));
}

nb::dict evaluate(const pl::Model& model, nb::handle x, nb::handle y, std::size_t batch_size, nb::handle weights,
                  nb::handle budget, nb::handle spill) {
  const pl::BatchSizeOptions options{
      .batch_size = batch_size, .budget = optional_bytes(budget), .spill = to_path(spill)};
  pl::Dataset data = data_of(model, x, y, weights);
  if (!to_dataset(x).is_set()) data = data.batch(batch_size);
  return wrap_logs(unlocked([&] { return model.evaluate(data, options); }));
}

void compile(pl::Model& model, nb::handle optimizer, nb::handle loss, nb::handle metrics, nb::handle loss_weights,
             double clip_norm, double clip_value, double global_clip_norm, bool run_eagerly) {
  pl::CompileOptions options{.clip_norm = clip_norm,
                             .clip_value = clip_value,
                             .global_clip_norm = global_clip_norm,
                             .run_eagerly = run_eagerly};
  if (PyUnicode_Check(optimizer.ptr()))
    options.optimizer = pl::optimizers::by_name(nb::cast<std::string>(optimizer));
  else
    options.optimizer = nb::cast<pl::Optimizer>(optimizer);
  if (PyList_Check(loss.ptr()) || PyTuple_Check(loss.ptr())) {
    std::vector<pl::Loss> losses;
    for (nb::handle each : nb::borrow<nb::sequence>(loss)) losses.push_back(to_loss(each));
    options.loss = pl::LossList(losses);
  } else if (!loss.is_none()) {
    options.loss = pl::LossList(to_loss(loss));
  }
  if (!metrics.is_none())
    for (nb::handle each : nb::borrow<nb::sequence>(metrics)) options.metrics.push_back(to_metric(each));
  if (!loss_weights.is_none()) options.loss_weights = nb::cast<std::vector<double>>(loss_weights);
  model.compile(options);
}

// The first layer of a chain that begins with Input(): what goes in is of that shape.
const pl::Layer& begun(const pl::Layer& layer, const nb::object& input) {
  if (!input.is_valid() || input.is_none()) return layer;
  const pl::LayerOutput& place = nb::cast<pl::LayerOutput&>(input);
  layer.base().set_batch_shape(place.shape());
  layer.base().set_input_dtype(place.dtype());
  return layer;
}

void bind_forecast(Module& m) {
  nb::class_<pl::BudgetPoint>(m, "BudgetPoint")
      .def_ro("bytes", &pl::BudgetPoint::bytes)
      .def_ro("slowdown", &pl::BudgetPoint::slowdown)
      .def(
          "__iter__", [](const pl::BudgetPoint& p) { return nb::iter(nb::make_tuple(p.bytes, p.slowdown)); },
          nb::sig("def __iter__(self) -> typing.Iterator[float]"))
      .def("__repr__", [](const pl::BudgetPoint& p) {
        return fmt::format("BudgetPoint(bytes={}, slowdown={:.3f})", p.bytes, p.slowdown);
      });
  nb::class_<pl::MemoryForecast>(m, "MemoryForecast")
      .def_ro("peak_bytes", &pl::MemoryForecast::peak_bytes)
      .def_ro("smallest_budget", &pl::MemoryForecast::smallest_budget,
              "The gate of fit(budget=): at it training runs, below it is refused.")
      .def_ro("lower_bound_bytes", &pl::MemoryForecast::lower_bound_bytes)
      .def_ro("by_category", &pl::MemoryForecast::by_category)
      .def_ro("largest_op", &pl::MemoryForecast::largest_op)
      .def_ro("largest_op_bytes", &pl::MemoryForecast::largest_op_bytes)
      .def_ro("floor_bytes", &pl::MemoryForecast::floor_bytes, "No recomputing of the step, in its order, needs less.")
      .def_ro("floor_step", &pl::MemoryForecast::floor_step, "The operation that makes it so.")
      .def_prop_ro(
          "front", [](const pl::MemoryForecast& f) { return wrap_front(f.front); },
          nb::sig("def front(self) -> list[BudgetPoint]"),
          "Budgets worth choosing, from the peak to the smallest, each leaner and slower: (bytes, slowdown).")
      .def(
          "predicted_slowdown",
          [](const pl::MemoryForecast& f, nb::handle size) { return f.predicted_slowdown(to_bytes(size)); },
          nb::arg("size"), nb::sig("def predicted_slowdown(self, size: str | int) -> float"),
          "How many times as long a step takes within so many bytes; infinity below smallest_budget.")
      .def(
          "fits", [](const pl::MemoryForecast& f, nb::handle size) { return f.fits(to_bytes(size)); }, nb::arg("size"),
          nb::sig("def fits(self, size: str | int) -> bool"))
      .def("__str__", &pl::MemoryForecast::to_string)
      .def("__repr__", &pl::MemoryForecast::to_string);
}

void bind_running(nb::class_<pl::Model, pl::Layer>& type) {
  type.def("native_compile", &compile, nb::arg("optimizer"), nb::arg("loss").none(), nb::arg("metrics").none(),
           nb::arg("loss_weights").none(), nb::arg("clip_norm"), nb::arg("clip_value"), nb::arg("global_clip_norm"),
           nb::arg("run_eagerly"))
      .def("native_fit", &fit, nb::arg("x"), nb::arg("y").none(), nb::arg("batch_size"), nb::arg("epochs"),
           nb::arg("verbose"), nb::arg("callbacks").none(), nb::arg("validation_split"),
           nb::arg("validation_data").none(), nb::arg("shuffle"), nb::arg("class_weight").none(),
           nb::arg("sample_weight").none(), nb::arg("initial_epoch"), nb::arg("budget").none(), nb::arg("spill").none(),
           nb::arg("max_slowdown"), nb::arg("distributed").none() = nb::none())
      .def("native_evaluate", &evaluate, nb::arg("x"), nb::arg("y").none(), nb::arg("batch_size"),
           nb::arg("weights").none(), nb::arg("budget").none(), nb::arg("spill").none())
      .def("native_predict", &predict, nb::arg("x"), nb::arg("batch_size"), nb::arg("budget").none(),
           nb::arg("spill").none())
      .def(
          "native_train_on_batch",
          [](pl::Model& model, nb::handle x, nb::handle y, nb::handle weights) {
            const pl::Example batch{input_tensors(model, x), target_tensors(model, y),
                                    weights.is_none() ? pl::Tensor() : borrow_tensor(weights)};
            return wrap_logs(unlocked([&] { return model.train_on_batch(batch); }));
          },
          nb::arg("x"), nb::arg("y"), nb::arg("weights").none())
      .def(
          "native_test_on_batch",
          [](pl::Model& model, nb::handle x, nb::handle y, nb::handle weights) {
            const pl::Example batch{input_tensors(model, x), target_tensors(model, y),
                                    weights.is_none() ? pl::Tensor() : borrow_tensor(weights)};
            return wrap_logs(unlocked([&] { return model.test_on_batch(batch); }));
          },
          nb::arg("x"), nb::arg("y"), nb::arg("weights").none())
      .def(
          "native_forecast",
          [](const pl::Model& model, nb::handle data, std::size_t batch_size, nb::handle spill) {
            const pl::ForecastOptions options{.batch_size = batch_size, .spill = to_path(spill)};
            if (const pl::Dataset given = to_dataset(data); given.is_set()) {
              if (!spill.is_none()) throw nb::type_error("forecast: spill goes with batch_size, not with a Dataset");
              return unlocked([&] { return model.forecast(given); });
            }
            if (!data.is_none()) throw nb::type_error("forecast: data is a Dataset; else give batch_size");
            return unlocked([&] { return model.forecast(options); });
          },
          nb::arg("data").none(), nb::arg("batch_size"), nb::arg("spill").none())
      .def(
          "max_batch_size",
          [](const pl::Model& model, nb::handle size, double max_slowdown, nb::handle spill) {
            const std::size_t bytes = to_bytes(size);
            const std::string directory = to_path(spill);
            return unlocked([&] { return model.max_batch_size(bytes, max_slowdown, directory); });
          },
          nb::arg("size"), nb::arg("max_slowdown") = 8.0, nb::arg("spill").none() = nb::none(),
          nb::sig(
              "def max_batch_size(self, size: str | int, max_slowdown: float = 8.0, spill: str | os.PathLike[str] | "
              "None = None) -> int"),
          "The largest batch whose training fits, at most so many times slower; 0 when none does. With 1: without "
          "recomputing.");
}

void bind_looking(nb::class_<pl::Model, pl::Layer>& type) {
  type.def(
          "summary_text",
          [](const pl::Model& model) {
            std::ostringstream out;
            model.summary(out);
            return out.str();
          },
          "Layers, shapes, parameters and the bytes they take.")
      .def(
          "save_weights",
          [](const pl::Model& model, const std::string& path) {
            unlocked([&] {
              model.save_weights(path);
              return 0;
            });
          },
          nb::arg("path"), "A checkpoint in Keras' form.")
      .def(
          "load_weights",
          [](const pl::Model& model, const std::string& path) {
            unlocked([&] {
              model.load_weights(path);
              return 0;
            });
          },
          nb::arg("path"))
      .def_prop_ro(
          "layers",
          [](nb::handle self) {
            if (auto own = python_model_layers(self)) return *own;
            nb::list list;
            for (const pl::Layer& each : nb::cast<pl::Model&>(self).layers()) list.append(wrap_layer(each));
            return list;
          },
          nb::sig("def layers(self) -> list[Layer]"))
      .def(
          "get_layer", [](const pl::Model& model, const std::string& name) { return wrap_layer(model.layer(name)); },
          nb::arg("name"), nb::sig("def get_layer(self, name: str) -> Layer"))
      .def_prop_ro("optimizer", [](const pl::Model& model) { return model.optimizer(); })
      .def_prop_ro("is_compiled", &pl::Model::is_compiled)
      .def_prop_ro("is_built", &pl::Model::is_built)
      .def_prop_ro(
          "input_shape", [](const pl::Model& model) { return wrap_shape(model.input_shapes().at(0)); },
          nb::sig("def input_shape(self) -> tuple[int | None, ...]"))
      .def_prop_ro(
          "output_shape", [](const pl::Model& model) { return wrap_shape(model.output_shapes().at(0)); },
          nb::sig("def output_shape(self) -> tuple[int | None, ...]"))
      .def_prop_ro("input_names", &pl::Model::input_names)
      .def_prop_ro("output_names", &pl::Model::output_names)
      .def("reset_states", &pl::Model::reset_states)
      .def("native_stop_training", &pl::Model::stop_training);
}

}  // namespace

void bind_models(Module& m) {
  bind_forecast(m);
  nb::class_<pl::Model, pl::Layer> type(
      m, "Model", nb::type_slots(model_slots), nb::dynamic_attr(),
      "Layers that are trained and asked together, described by their ends.\n\n>>> x = pl.Input((4,))\n>>> model = "
      "pl.Model(x, pl.layers.Dense(2)(x))\n>>> model.predict(pl.ones((3, 4))).shape\n(3, 2)\n\nOr derive from it: "
      "layers are attributes, call(x) uses them.\n\n>>> class Twice(pl.Model):\n...     def __init__(self):\n...       "
      " "
      " super().__init__()\n...         self.dense = pl.layers.Dense(4)\n...     def call(self, x, "
      "training=False):\n... "
      "        return self.dense(self.dense(x))\n>>> Twice().predict(pl.ones((3, 4))).shape\n(3, 4)");
  type.def(
      "__init__",
      [](nb::pointer_and_handle<pl::Model> made, nb::handle inputs, nb::handle outputs, const std::string& name) {
        pl::Model* self = made.p;
        if (inputs.is_none() && outputs.is_none()) {
          if (made.h.type().is(nb::type<pl::Model>()))
            throw nb::type_error("Model: give inputs and outputs, or derive from it and write call()");
          new (self) pl::Model(python_model(made.h, name));
          return;
        }
        const auto places = [](nb::handle given) {
          std::vector<pl::LayerOutput> list;
          if (nb::isinstance<pl::LayerOutput>(given)) return std::vector{nb::cast<pl::LayerOutput>(given)};
          for (nb::handle each : nb::borrow<nb::sequence>(given)) list.push_back(nb::cast<pl::LayerOutput>(each));
          return list;
        };
        new (self) pl::Model(places(inputs), places(outputs), {.name = name});
      },
      nb::arg("inputs").none() = nb::none(), nb::arg("outputs").none() = nb::none(), nb::arg("name") = "");
  bind_running(type);
  bind_looking(type);
  nb::class_<pl::Sequential, pl::Model>(m, "Sequential", nb::dynamic_attr(),
                                        "Layers one after the other.\n\n>>> model = pl.Sequential([pl.layers.Dense(2, "
                                        "input_shape=(3,))])\n>>> model.predict(pl.ones((5, 3))).shape\n(5, 2)")
      .def(
          "__init__",
          [](pl::Sequential* self, nb::handle layers, const std::string& name) {
            std::vector<pl::Layer> list;
            nb::object begins;
            if (!layers.is_none())
              for (nb::handle each : nb::borrow<nb::sequence>(layers)) {
                if (list.empty() && nb::isinstance<pl::LayerOutput>(each)) {
                  begins = nb::borrow(each);
                  continue;
                }
                if (!nb::isinstance<pl::Layer>(each)) throw nb::type_error("Sequential: a list of layers");
                list.push_back(begun(nb::cast<pl::Layer&>(each), begins));
                begins.reset();
              }
            new (self) pl::Sequential(list, {.name = name});
          },
          nb::arg("layers").none() = nb::none(), nb::arg("name") = "")
      .def(
          "add",
          [](nb::handle self, nb::handle layer) {
            pl::Sequential& model = nb::cast<pl::Sequential&>(self);
            if (nb::isinstance<pl::LayerOutput>(layer) && model.layers().empty())
              return nb::setattr(self, "_begins", layer);
            if (!nb::isinstance<pl::Layer>(layer)) throw nb::type_error("add: a layer");
            model.add(begun(nb::cast<pl::Layer&>(layer),
                            model.layers().empty() ? nb::getattr(self, "_begins", nb::none()) : nb::none()));
          },
          nb::arg("layer"), nb::sig("def add(self, layer: Layer | LayerOutput) -> None"));
}

}  // namespace binding
