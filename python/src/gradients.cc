// Variables and gradients.
#include <fmt/format.h>

#include "exchange.h"
#include "scopes.h"

namespace binding {
namespace {

// Made by `with`; a tape of the library sees operations from when it is made.
class Tape : public ScopeObject {
 public:
  explicit Tape(bool persistent) : persistent_(persistent) {}
  Tape(Tape&&) = default;

  void enter() {
    struct Live : LiveScope {
      explicit Live(std::shared_ptr<pl::GradientTape> t) : tape(std::move(t)) {}
      ~Live() override { tape->stop(); }  // On the thread that entered it: ScopeObject sees to that.
      std::shared_ptr<pl::GradientTape> tape;
    };
    if (innermost() != nullptr) throw pl::FailedPrecondition("GradientTape: it is open already");
    tape_ = std::make_shared<pl::GradientTape>(pl::TapeOptions{.persistent = persistent_});
    begin("GradientTape", std::make_unique<Live>(tape_));
  }
  pl::GradientTape& get() const {
    if (!tape_)
      throw pl::FailedPrecondition("GradientTape: it has seen nothing; use it as `with pl.GradientTape() as tape:`");
    return *tape_;
  }

 private:
  bool persistent_;
  std::shared_ptr<pl::GradientTape> tape_;
};

// Gradients of one source, or of a list, tuple or dict of them, in the same form.
nb::object gradient(Tape& tape, nb::handle target, nb::handle sources) {
  const auto of = tensor_of(target);
  if (!of) throw nb::type_error("gradient: the target is a tensor");
  if (auto source = tensor_of(sources)) return wrap_tensor(unlocked([&] { return tape.get().gradient(*of, *source); }));
  std::vector<pl::Tensor> list;
  const bool is_dict = PyDict_Check(sources.ptr());
  const nb::object values = is_dict ? nb::object(nb::borrow<nb::dict>(sources).values()) : nb::borrow(sources);
  for (nb::handle each : nb::borrow<nb::iterable>(values)) {
    const auto source = tensor_of(each);
    if (!source) throw nb::type_error("gradient: a source is a tensor or a variable");
    list.push_back(*source);
  }
  const nb::list result = wrap_tensors(unlocked([&] { return tape.get().gradient(*of, list); }));
  if (!is_dict) return PyTuple_Check(sources.ptr()) ? nb::object(nb::tuple(result)) : nb::object(result);
  nb::dict by_key;
  std::size_t place = 0;
  for (nb::handle key : nb::borrow<nb::dict>(sources).keys()) by_key[key] = result[place++];
  return by_key;
}

pl::Tensor custom_gradient(nb::handle inputs, nb::object forward, nb::object backward) {
  const SharedObject value(std::move(forward)), slope(std::move(backward));
  const std::vector<pl::Tensor> all = to_tensors(inputs);
  return unlocked([&] {
    return pl::custom_gradient(
        all,
        [&](const std::vector<pl::Tensor>& in) {
          return with_python([&] { return to_tensor(value.get()(*nb::tuple(wrap_tensors(in)))); });
        },
        [slope](const pl::Tensor& g, const std::vector<pl::Tensor>& in) {
          return with_python([&] {
            const nb::object given = slope.get()(wrap_tensor(g), *nb::tuple(wrap_tensors(in)));
            std::vector<pl::Tensor> result;
            if (!PyList_Check(given.ptr()) && !PyTuple_Check(given.ptr())) return std::vector{to_tensor(given)};
            for (nb::handle each : nb::borrow<nb::sequence>(given))
              result.push_back(each.is_none() ? pl::Tensor() : to_tensor(each));
            return result;
          });
        });
  });
}

// The result of an assignment: a node inside a graph, else the variable itself.
nb::object assigned(nb::handle self, const pl::Assigned& result) {
  const pl::Variable& variable = *nb::inst_ptr<pl::Variable>(self);
  if (variable.graph_index() || pl::FunctionCore::is_tracing()) {
    const pl::Tensor node = result;
    if (pl::is_symbolic(node)) return wrap_tensor(node);
  }
  return nb::borrow(self);
}

void bind_variable(Module& m) {
  nb::class_<pl::Variable> type(m, "Variable", nb::type_slots(number_slots), nb::is_weak_referenceable(),
                                "A tensor's value that can be changed; a model's parameter.\n\n>>> w = "
                                "pl.Variable([1.0, 2.0])\n>>> w.assign_add([1.0, 1.0]).tolist()\n[2.0, 3.0]");
  variable_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  type.attr("__array_priority__") = 100.0;
  type.def(
          "__init__",
          [](pl::Variable* self, nb::handle initial, nb::handle dtype, const std::string& name, bool trainable) {
            const pl::Tensor value = to_tensor(initial, optional_dtype(dtype));
            new (self) pl::Variable(value, {.name = name, .trainable = trainable && pl::is_floating(value.dtype())});
          },
          nb::arg("initial_value"), nb::arg("dtype").none() = nb::none(), nb::arg("name") = "",
          nb::arg("trainable") = true,
          nb::sig("def __init__(self, initial_value: TensorLike, dtype: DTypeLike | None = None, name: str = '', "
                  "trainable: bool = True) -> None"))
      .def(
          "value", [](const pl::Variable& v) { return wrap_tensor(v.value()); }, nb::sig("def value(self) -> Tensor"),
          "A snapshot: later changes do not reach it.")
      .def(
          "assign",
          [](nb::handle self, nb::handle value) {
            const pl::Variable& v = *nb::inst_ptr<pl::Variable>(self);
            const pl::Tensor x = to_tensor(value, v.dtype());
            return assigned(self, unlocked([&] { return v.assign(x); }));
          },
          nb::arg("value"), nb::sig("def assign(self, value: TensorLike) -> Variable"))
      .def(
          "assign_add",
          [](nb::handle self, nb::handle value) {
            const pl::Variable& v = *nb::inst_ptr<pl::Variable>(self);
            const pl::Tensor x = to_tensor(value, v.dtype());
            return assigned(self, unlocked([&] { return v.assign_add(x); }));
          },
          nb::arg("value"), nb::sig("def assign_add(self, value: TensorLike) -> Variable"))
      .def(
          "assign_sub",
          [](nb::handle self, nb::handle value) {
            const pl::Variable& v = *nb::inst_ptr<pl::Variable>(self);
            const pl::Tensor x = to_tensor(value, v.dtype());
            return assigned(self, unlocked([&] { return v.assign_sub(x); }));
          },
          nb::arg("value"), nb::sig("def assign_sub(self, value: TensorLike) -> Variable"))
      .def_prop_ro(
          "shape", [](const pl::Variable& v) { return wrap_shape(v.shape()); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "dtype", [](const pl::Variable& v) { return wrap_dtype(v.dtype()); }, nb::sig("def dtype(self) -> DType"))
      .def_prop_ro("ndim", [](const pl::Variable& v) { return v.shape().rank(); })
      .def_prop_ro("size", &pl::Variable::size)
      .def_prop_ro("nbytes", &pl::Variable::nbytes)
      .def_prop_ro("name", [](const pl::Variable& v) { return v.name(); })
      .def_prop_ro("trainable", &pl::Variable::trainable)
      .def_prop_ro("device", &pl::Variable::device)
      .def_prop_ro("is_disposed", &pl::Variable::is_disposed)
      .def("dispose", &pl::Variable::dispose)
      .def("__repr__", [](const pl::Variable& v) {
        return fmt::format("<Variable \"{}\": shape={}, dtype={}>", v.name(), v.shape().to_tuple_string(),
                           dtype_name(v.dtype()));
      });
  type.def("__reduce__",
           [](nb::handle self) {
             const pl::Variable& v = *nb::inst_ptr<pl::Variable>(self);
             return nb::make_tuple(nb::module_::import_("plimsoll._support").attr("variable_of"),
                                   nb::make_tuple(wrap_tensor(v.value()), v.name(), v.trainable()));
           })
      .def(
          "__iter__", [](nb::handle self) { return nb::iter(wrap_tensor(*tensor_of(self))); },
          nb::sig("def __iter__(self) -> typing.Iterator[Tensor]"));
  // What a tensor does, the variable's value does.
  for (const char* name :
       {"item", "tolist", "numpy", "tobytes", "sum", "mean", "max", "min", "reshape", "transpose", "astype", "flatten"})
    type.def(name, [name](nb::handle self, const nb::args& arguments, const nb::kwargs& named) {
      return wrap_tensor(*tensor_of(self)).attr(name)(*arguments, **named);
    });
  type.def_prop_ro("T", [](nb::handle self) { return wrap_tensor(tensor_of(self)->transpose()); });
}

}  // namespace

void bind_gradients(Module& m) {
  bind_variable(m);
  nb::class_<Tape>(
      m, "GradientTape",
      "Watches operations as they run, and gives the gradients of what they computed.\n\n>>> x = pl.asarray(3.0)\n>>> "
      "with pl.GradientTape() as tape:\n...     tape.watch(x)\n...     y = x * x\n>>> tape.gradient(y, x).item()\n6.0")
      .def(
          "__init__", [](Tape* self, bool persistent) { new (self) Tape(persistent); }, nb::arg("persistent") = false)
      .def(
          "__enter__",
          [](nb::handle self) {
            nb::cast<Tape&>(self).enter();
            return nb::borrow(self);
          },
          nb::sig("def __enter__(self) -> GradientTape"))
      .def(
          "__exit__", [](Tape& self, const nb::args&) { self.end(); },
          nb::sig("def __exit__(self, *args: object) -> None"))
      .def(
          "watch",
          [](Tape& self, nb::handle tensors) {
            if (auto tensor = tensor_of(tensors)) return self.get().watch(*tensor);
            for (nb::handle each : nb::borrow<nb::iterable>(tensors)) self.get().watch(to_tensor(each));
          },
          nb::arg("tensor"), "Trainable variables are watched by themselves.")
      .def("gradient", &gradient, nb::arg("target"), nb::arg("sources"),
           nb::sig("def gradient(self, target: Tensor, sources: object) -> object"),
           "d target / d source for one source, or for a list or dict of them; None for what it does not depend on.")
      .def("reset", [](Tape& self) { self.get().reset(); });
  m.def(
      "custom_gradient",
      [](nb::handle inputs, nb::object forward, nb::object backward) {
        return wrap_tensor(custom_gradient(inputs, std::move(forward), std::move(backward)));
      },
      nb::arg("inputs"), nb::arg("forward"), nb::arg("backward"),
      nb::sig("def custom_gradient(inputs: typing.Sequence[TensorLike], forward: typing.Callable[..., Tensor], "
              "backward: typing.Callable[..., object]) -> Tensor"));
  m.def(
      "stop_gradient", [](nb::handle x) { return wrap_tensor(pl::stop_gradient(to_tensor(x))); }, nb::arg("x"),
      nb::sig("def stop_gradient(x: TensorLike) -> Tensor"));
  // While it is open, tapes see nothing.
  struct NoGradient : ScopeObject {};
  nb::class_<NoGradient>(m, "NoGradient")
      .def("__enter__",
           [](NoGradient& self) {
             struct Live : LiveScope {
               std::optional<pl::WithoutTapes> unseen;
               Live() {
                 if (!pl::FunctionCore::is_tracing()) unseen.emplace();
               }
             };
             self.begin("no_grad", std::make_unique<Live>());
           })
      .def(
          "__exit__", [](NoGradient& self, const nb::args&) { self.end(); },
          nb::sig("def __exit__(self, *args: object) -> None"));
  m.def(
      "no_grad", [] { return NoGradient(); }, nb::sig("def no_grad() -> NoGradient"));
}

}  // namespace binding
