// Layers: those of the library, by their class and settings, and those written in Python.
#include <fmt/format.h>

#include <set>

#include "exchange.h"
#include "models.h"

namespace binding {
namespace {

thread_local bool training_now = false;  // Whether the layer of Python that is being called trains.

nb::object wrap_shapes(const pl::Shapes& shapes) {
  if (shapes.size() == 1) return wrap_shape(shapes[0]);
  nb::list list;
  for (const pl::Shape& each : shapes) list.append(wrap_shape(each));
  return list;
}

std::string snake_case(std::string_view class_name) {  // "MyScale", "LSTM", "Conv2D": "my_scale", "lstm", "conv2d".
  std::string name;
  bool after_lower = false;
  for (const char letter : class_name) {
    const bool is_upper = std::isupper(static_cast<unsigned char>(letter)) != 0;
    if (is_upper && after_lower) name += '_';
    after_lower = std::islower(static_cast<unsigned char>(letter)) != 0;
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return name;
}

// The layers that are attributes of an object, or in lists, tuples and dicts that are.
std::vector<nb::object> attribute_layers(nb::handle object) {
  std::vector<nb::object> found;
  const auto add = [&](nb::handle value) {
    if (nb::isinstance<pl::Layer>(value) && !value.is(object)) found.push_back(nb::borrow(value));
  };
  for (nb::handle value : nb::borrow<nb::dict>(object.attr("__dict__")).values()) {
    add(value);
    if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()))
      for (nb::handle each : nb::borrow<nb::sequence>(value)) add(each);
    if (PyDict_Check(value.ptr()))
      for (nb::handle each : nb::borrow<nb::dict>(value).values()) add(each);
  }
  return found;
}

// A layer whose methods are Python's. It refers to its object, which holds it: the collector of cycles sees both, as
// long as no model holds the layer too (traverse).
class PythonLayer final : public pl::LayerBase {
 public:
  PythonLayer(nb::handle self, const std::string& name)
      : self_(self.inc_ref().ptr()), class_name_(nb::cast<std::string>(self.type().attr("__name__"))) {
    if (!name.empty())
      give_name(name);
    else
      LayerBase::set_name(default_name(class_name_));
    takes_training_ = nb::cast<bool>(nb::module_::import_("plimsoll._support").attr("takes_training")(self));
  }
  ~PythonLayer() override {
    if (self_ != nullptr) return_to_python([object = self_] { Py_DECREF(object); });
  }

  PyObject* self() const noexcept { return self_; }
  void forget_self() { Py_CLEAR(self_); }

  const char* class_name() const override { return class_name_.c_str(); }
  bool supports_masking() const override {
    return with_python([&] { return nb::cast<bool>(object().attr("supports_masking")); });
  }

  pl::Shapes output_shapes(const pl::Shapes& inputs) const override {
    const bool is_told = with_python([&] { return has_own("compute_output_shape"); });
    if (is_told)
      return with_python([&] { return to_shapes(object().attr("compute_output_shape")(wrap_shapes(inputs))); });
    if (is_inferring_) return inputs;  // Asked by what builds it.
    is_inferring_ = true;
    struct Ended {
      bool& flag;
      ~Ended() { flag = false; }
    } ended{is_inferring_};
    const_cast<PythonLayer*>(this)->ensure_built(inputs);
    return traced_shapes(inputs);
  }

  void build(const pl::Shapes& inputs) override {
    if (is_built()) return;  // While its output's shape was found.
    with_python([&] {
      if (has_own("build")) object().attr("build")(wrap_shapes(inputs));
      return 0;
    });
    name_inner_layers();
  }

  std::vector<pl::Tensor> call_all(const std::vector<pl::Tensor>& inputs, pl::CallContext& context) override {
    return with_python([&] {
      struct Training {
        bool before = training_now;
        pl::CallContext* context_before = current_context;
        ~Training() {
          training_now = before;
          current_context = context_before;
        }
      } restore;
      training_now = context.training();
      current_context = &context;
      nb::dict named;
      if (takes_training_) named["training"] = context.training();
      const nb::object given = inputs.size() == 1 ? object().attr("call")(wrap_tensor(inputs[0]), **named)
                                                  : object().attr("call")(wrap_tensors(inputs), **named);
      std::vector<pl::Tensor> results;
      if (!PyList_Check(given.ptr()) && !PyTuple_Check(given.ptr())) return std::vector{to_tensor(given)};
      for (nb::handle each : nb::borrow<nb::sequence>(given)) results.push_back(to_tensor(each));
      return results;
    });
  }

  void config(pl::ConfigWriter& out) const override {
    with_python([&] {
      if (!has_own("get_config")) pl::LayerBase::config(out);
      out.put_all(to_json(object().attr("get_config")()));
      return 0;
    });
  }

  std::vector<pl::LayerBase*> inner_layers() const override {
    return with_python([&] {
      std::vector<pl::LayerBase*> found;
      for (nb::handle each : attribute_layers(object())) found.push_back(&nb::cast<pl::Layer&>(each).base());
      return found;
    });
  }

  pl::Variable add(const std::string& name, const pl::Shape& shape, const pl::WeightOptions& options) {
    return add_weight(name, shape, options);
  }
  static thread_local pl::CallContext* current_context;

 private:
  nb::handle object() const {
    if (self_ == nullptr) throw pl::FailedPrecondition("layer: its object of Python is gone");
    return self_;
  }
  bool has_own(const char* method) const {
    const nb::handle base = nb::isinstance<pl::Model>(object()) ? nb::type<pl::Model>() : nb::type<pl::Layer>();
    return !nb::handle(nb::getattr(object().type(), method)).is(nb::getattr(base, method));
  }
  // "encoder/dense", "encoder/dense_1": layers that no model has named, since they were made after this one was added.
  void name_inner_layers() const {
    std::map<std::string, int> counts;
    for (pl::LayerBase* each : inner_layers()) {
      if (!each->name().empty() || each->is_built()) continue;
      const std::string plain = snake_case(each->class_name());
      const int count = counts[plain]++;
      each->set_name(count == 0 ? fmt::format("{}/{}", name(), plain) : fmt::format("{}/{}_{}", name(), plain, count));
    }
  }
  static pl::Shapes to_shapes(nb::handle given) {
    const bool several = PyList_Check(given.ptr()) && nb::len(given) > 0 &&
                         !to_number(nb::borrow<nb::list>(given)[0]) && !nb::borrow<nb::list>(given)[0].is_none();
    if (!several) return {to_shape(given)};
    pl::Shapes shapes;
    for (nb::handle each : nb::borrow<nb::list>(given)) shapes.push_back(to_shape(each));
    return shapes;
  }
  // Of the call itself, written down in a graph of its own and not run.
  pl::Shapes traced_shapes(const pl::Shapes& inputs) const {
    const pl::Graph graph;
    const pl::GraphScope in(graph);
    std::vector<pl::Tensor> symbolic;
    for (const pl::Shape& each : inputs) symbolic.push_back(pl::placeholder(input_dtype(), each));
    pl::CallContext context(false);
    pl::Shapes shapes;
    for (const pl::Tensor& each : const_cast<PythonLayer*>(this)->call_all(symbolic, context))
      shapes.push_back(each.shape());
    return shapes;
  }
  static std::string default_name(const std::string& class_name) {  // "MyScale": "my_scale", "my_scale_1", ...
    static std::map<std::string, int> counts;
    const std::string name = snake_case(class_name);
    const int count = counts[name]++;
    return count == 0 ? name : fmt::format("{}_{}", name, count);
  }

  PyObject* self_;
  std::string class_name_;
  bool takes_training_ = false;
  mutable bool is_inferring_ = false;
};
thread_local pl::CallContext* PythonLayer::current_context = nullptr;

PythonLayer* python_layer(const pl::Layer& layer) { return dynamic_cast<PythonLayer*>(&layer.base()); }

// Of a model that is written in Python: the one layer of its network, whose object is the model itself.
PythonLayer* python_layer_of_model(const pl::Model& model, nb::handle self) {
  const std::vector<pl::Layer> layers = model.layers();
  PythonLayer* found = layers.size() == 1 ? python_layer(layers[0]) : nullptr;
  return found != nullptr && found->self() == self.ptr() ? found : nullptr;
}

struct Attributes {};
traverseproc plain_traverse = nullptr;
inquiry plain_clear = nullptr;

void find_collector_slots(Module& m) {
  const nb::class_<Attributes> type(m, "Attributes", nb::dynamic_attr());
  auto* plain = reinterpret_cast<PyTypeObject*>(type.ptr());
  plain_traverse = reinterpret_cast<traverseproc>(PyType_GetSlot(plain, Py_tp_traverse));
  plain_clear = reinterpret_cast<inquiry>(PyType_GetSlot(plain, Py_tp_clear));
  nb::delattr(m, "Attributes");
}

int traverse_layer(PyObject* self, visitproc visit, void* arg) {
  if (const int stopped = traverse_attributes(self, visit, arg); stopped != 0) return stopped;
  if (!nb::inst_ready(self)) return 0;
  const pl::Layer& layer = *nb::inst_ptr<pl::Layer>(self);
  if (layer.shared_base().use_count() != 1) return 0;  // Somebody else holds it too.
  if (const PythonLayer* python = python_layer(layer)) Py_VISIT(python->self());
  return 0;
}

int clear_layer(PyObject* self) {
  if (nb::inst_ready(self))
    if (PythonLayer* python = python_layer(*nb::inst_ptr<pl::Layer>(self))) python->forget_self();
  return clear_attributes(self);
}

int traverse_model(PyObject* self, visitproc visit, void* arg) {
  if (const int stopped = traverse_attributes(self, visit, arg); stopped != 0) return stopped;
  if (!nb::inst_ready(self)) return 0;
  const pl::Model& model = *nb::inst_ptr<pl::Model>(self);
  if (model.shared_base().use_count() != 2) return 0;  // A handle has two references; somebody else has one too.
  if (const PythonLayer* python = python_layer_of_model(model, self)) Py_VISIT(python->self());
  return 0;
}

int clear_model(PyObject* self) {
  if (nb::inst_ready(self))
    if (PythonLayer* python = python_layer_of_model(*nb::inst_ptr<pl::Model>(self), self)) python->forget_self();
  return clear_attributes(self);
}

PyType_Slot layer_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_layer)},
                             {Py_tp_clear, reinterpret_cast<void*>(&clear_layer)},
                             {0, nullptr}};

template <class T>
T by_name_or(nb::handle object, T otherwise) {
  if (object.is_none()) return otherwise;
  return T(nb::cast<std::string>(object).c_str());
}

nb::object add_weight(nb::handle self, const std::string& name, nb::handle shape, nb::handle initializer,
                      bool trainable, nb::handle regularizer, nb::handle constraint,
                      std::optional<std::uint64_t> seed) {
  PythonLayer* layer = python_layer(nb::cast<pl::Layer&>(self));
  if (layer == nullptr) throw pl::FailedPrecondition("add_weight: of a layer written in Python, in its build()");
  const pl::WeightOptions options{.initializer = by_name_or<pl::Initializer>(initializer, "glorot_uniform"),
                                  .trainable = trainable,
                                  .regularizer = by_name_or<pl::Regularizer>(regularizer, {}),
                                  .constraint = by_name_or<pl::Constraint>(constraint, {}),
                                  .seed = seed};
  const pl::Shape sizes = to_shape(shape).or_scalar();
  return nb::cast(unlocked([&] { return layer->add(name, sizes, options); }));
}

// Now, of tensors; or a place in a model, of places.
nb::object call_layer(const pl::Layer& layer, nb::handle inputs, std::optional<bool> training) {
  if (nb::isinstance<pl::LayerOutput>(inputs)) return nb::cast(layer(nb::cast<pl::LayerOutput&>(inputs)));
  const bool is_list = PyList_Check(inputs.ptr()) || PyTuple_Check(inputs.ptr());
  if (is_list && nb::len(inputs) > 0 && nb::isinstance<pl::LayerOutput>(inputs[0])) {
    std::vector<pl::LayerOutput> places;
    for (nb::handle each : nb::borrow<nb::sequence>(inputs)) places.push_back(nb::cast<pl::LayerOutput&>(each));
    const auto outputs = layer.outputs(places);
    if (outputs.size() == 1) return nb::cast(outputs[0]);
    nb::list list;
    for (const pl::LayerOutput& each : outputs) list.append(nb::cast(each));
    return list;
  }
  std::vector<pl::Tensor> tensors;
  const bool several = is_list && nb::len(inputs) > 0 && (tensor_of(inputs[0]) || nb::hasattr(inputs[0], "__array__"));
  if (several)
    tensors = to_tensors(inputs);
  else
    tensors.push_back(to_tensor(inputs));
  const std::vector<pl::Tensor> results =
      unlocked([&] { return layer.call(tensors, training.value_or(training_now)); });
  return results.size() == 1 ? wrap_tensor(results[0]) : nb::object(wrap_tensors(results));
}

nb::list wrap_variables(const std::vector<pl::Variable>& variables) {
  nb::list list;
  for (const pl::Variable& each : variables) list.append(nb::cast(each));
  return list;
}

void bind_layer_facts(nb::class_<pl::Layer>& type);

void bind_layer(Module& m) {
  nb::class_<pl::Layer> type(
      m, "Layer", nb::type_slots(layer_slots), nb::dynamic_attr(), nb::is_weak_referenceable(),
      "A piece of a model: weights, and a function of tensors that uses them. Derive from it to write one of your "
      "own:\nbuild(input_shape) makes the weights with add_weight(), call(x) uses them.");
  type.def(
          "__init__",
          [](nb::pointer_and_handle<pl::Layer> self, const std::string& name, const std::string& class_name,
             const std::string& config, nb::handle input_shape) {
            pl::Layer* place = self.p;
            if (!class_name.empty()) {
              new (place) pl::Layer(pl::layers::from_config(class_name, config));
            } else {
              auto made = std::make_shared<PythonLayer>(self.h, name);
              if (!input_shape.is_none()) {
                const pl::Shape given = to_shape(input_shape);
                std::vector<std::int64_t> sizes(given.begin(), given.end());
                sizes.insert(sizes.begin(), pl::kUnknownSize);
                made->set_batch_shape(pl::Shape(std::span<const std::int64_t>(sizes)));
              }
              new (place) pl::Layer(std::move(made));
            }
          },
          nb::arg("name") = "", nb::kw_only(), nb::arg("class_name") = "", nb::arg("config") = "",
          nb::arg("input_shape").none() = nb::none(),
          nb::sig("def __init__(self, name: str = '', *, class_name: str = '', config: str = '', input_shape: "
                  "ShapeLike | None = None) -> None"))
      .def(
          "build", [](const pl::Layer&, nb::handle) {}, nb::arg("input_shape"),
          "Makes the weights; called once, before the first call.")
      .def(
          "call", [](const pl::Layer& layer, nb::handle x) { return call_layer(layer, x, std::nullopt); }, nb::arg("x"),
          "What the layer gives for x.")
      .def(
          "compute_output_shape",
          [](const pl::Layer& layer, nb::handle shape) {
            return wrap_shapes(layer.base().output_shapes({to_shape(shape)}));
          },
          nb::arg("input_shape"))
      .def(
          "get_config", [](const pl::Layer& layer) { return from_json(pl::layers::config_of(layer)); },
          nb::sig("def get_config(self) -> dict[str, object]"))
      .def(
          "__call__",
          [](const pl::Layer& layer, nb::handle inputs, std::optional<bool> training) {
            return call_layer(layer, inputs, training);
          },
          nb::arg("inputs"), nb::arg("training").none() = nb::none(),
          nb::sig("def __call__(self, inputs: object, training: bool | None = None) -> typing.Any"))
      .def("add_weight", &add_weight, nb::arg("name"), nb::arg("shape"), nb::arg("initializer").none() = nb::none(),
           nb::arg("trainable") = true, nb::arg("regularizer").none() = nb::none(),
           nb::arg("constraint").none() = nb::none(), nb::arg("seed").none() = nb::none(),
           nb::sig("def add_weight(self, name: str, shape: ShapeLike, initializer: str | None = None, trainable: bool "
                   "= True, regularizer: str | None = None, constraint: str | None = None, seed: int | None = None) -> "
                   "Variable"))
      .def(
          "add_loss",
          [](const pl::Layer&, nb::handle loss) {
            if (PythonLayer::current_context == nullptr)
              throw pl::FailedPrecondition("add_loss: only inside a layer's call()");
            PythonLayer::current_context->add_loss(to_tensor(loss));
          },
          nb::arg("loss"), "Adds a scalar to the step's loss; in call().");
  type.attr("supports_masking") = false;
  bind_layer_facts(type);
}

void bind_layer_facts(nb::class_<pl::Layer>& type) {
  type.def_prop_ro("name", [](const pl::Layer& layer) { return layer.name(); })
      .def_prop_ro(
          "weights", [](const pl::Layer& layer) { return wrap_variables(layer.weights()); },
          nb::sig("def weights(self) -> list[Variable]"))
      .def_prop_ro(
          "trainable_weights", [](const pl::Layer& layer) { return wrap_variables(layer.trainable_weights()); },
          nb::sig("def trainable_weights(self) -> list[Variable]"))
      .def_prop_ro(
          "trainable_variables", [](const pl::Layer& layer) { return wrap_variables(layer.trainable_weights()); },
          nb::sig("def trainable_variables(self) -> list[Variable]"))
      .def_prop_rw(
          "trainable", [](const pl::Layer& layer) { return layer.trainable(); },
          [](pl::Layer& layer, bool value) { layer.set_trainable(value); })
      .def("count_params", &pl::Layer::num_parameters)
      .def_prop_ro("built", [](const pl::Layer& layer) { return layer.base().is_built(); })
      .def(
          "get_weights",
          [](const pl::Layer& layer) {
            nb::list list;
            for (const pl::Variable& each : layer.weights()) list.append(wrap_tensor(each.value()));
            return list;
          },
          nb::sig("def get_weights(self) -> list[Tensor]"))
      .def(
          "set_weights",
          [](const pl::Layer& layer, nb::handle values) {
            const std::vector<pl::Variable> weights = layer.weights();
            std::vector<pl::Tensor> tensors;
            for (nb::handle each : nb::borrow<nb::iterable>(values)) {
              const std::size_t place = tensors.size();
              tensors.push_back(
                  to_tensor(each, place < weights.size() ? std::optional(weights[place].dtype()) : std::nullopt));
              if (place < weights.size() && tensors.back().shape() != weights[place].shape())
                throw pl::InvalidArgument(fmt::format("set_weights: number {} has shape {}, the weight \"{}\" has {}",
                                                      place, tensors.back().shape().to_tuple_string(),
                                                      weights[place].name(), weights[place].shape().to_tuple_string()));
            }
            if (tensors.size() != weights.size())
              throw pl::InvalidArgument(
                  fmt::format("set_weights: {} arrays for {} weights", tensors.size(), weights.size()));
            for (std::size_t i = 0; i < weights.size(); ++i) weights[i].assign(tensors[i]);
          },
          nb::arg("values"), nb::sig("def set_weights(self, values: typing.Sequence[TensorLike]) -> None"))
      .def("__repr__",
           [](const pl::Layer& layer) { return fmt::format("<{} \"{}\">", layer.base().class_name(), layer.name()); });
}

}  // namespace

int traverse_attributes(PyObject* self, visitproc visit, void* arg) {
  return plain_traverse ? plain_traverse(self, visit, arg) : 0;
}
int clear_attributes(PyObject* self) { return plain_clear ? plain_clear(self) : 0; }

PyType_Slot model_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_model)},
                             {Py_tp_clear, reinterpret_cast<void*>(&clear_model)},
                             {0, nullptr}};

pl::Model python_model(nb::handle self, const std::string& name) {
  pl::Sequential network({.name = name.empty() ? snake_case(nb::type_name(self.type()).c_str()) : name});
  network.add(pl::Layer(std::make_shared<PythonLayer>(self, name)));
  return network;
}

std::optional<nb::list> python_model_layers(nb::handle model) {
  if (python_layer_of_model(nb::cast<pl::Model&>(model), model) == nullptr) return std::nullopt;
  nb::list list;
  for (const nb::object& each : attribute_layers(model)) list.append(each);
  return list;
}

nb::object wrap_layer(const pl::Layer& layer) {
  if (const PythonLayer* python = python_layer(layer)) return nb::borrow(python->self());
  return nb::cast(layer);
}

std::string to_json(nb::handle object) {
  return nb::cast<std::string>(nb::module_::import_("json").attr("dumps")(object));
}
nb::object from_json(const std::string& text) { return nb::module_::import_("json").attr("loads")(text); }

void bind_layers(Module& m) {
  nb::class_<pl::LayerOutput>(m, "LayerOutput")
      .def_prop_ro(
          "shape", [](const pl::LayerOutput& o) { return wrap_shape(o.shape()); },
          nb::sig("def shape(self) -> tuple[int | None, ...]"))
      .def_prop_ro("dtype", [](const pl::LayerOutput& o) { return wrap_dtype(o.dtype()); });
  find_collector_slots(m);
  bind_layer(m);
  m.def(
      "Input",
      [](nb::handle shape, nb::handle dtype, const std::string& name) {
        return pl::LayerOutput(
            pl::Input({.shape = to_shape(shape), .dtype = optional_dtype(dtype).value_or(pl::f32), .name = name}));
      },
      nb::arg("shape"), nb::arg("dtype").none() = nb::none(), nb::arg("name") = "",
      nb::sig("def Input(shape: ShapeLike, dtype: DTypeLike | None = None, name: str = '') -> LayerOutput"));
  m.def(
      "register_layer",
      [](nb::object type) {
        const std::string name = nb::cast<std::string>(type.attr("__name__"));
        pl::layers::register_layer(name, [type = SharedObject(type)](const pl::ConfigReader& in) {
          const std::string settings = in.all();
          return with_python([&] {
            nb::dict config = nb::borrow<nb::dict>(from_json(settings));
            for (const char* ours : {"trainable", "dtype", "batch_input_shape"})
              if (config.contains(ours)) nb::del(config[ours]);
            return pl::Layer(nb::cast<pl::Layer&>(type.get()(**config)));
          });
        });
        return type;
      },
      nb::arg("layer_class"), nb::sig("def register_layer(layer_class: T) -> T"));
}

}  // namespace binding
