// Graphs, sessions, savers, functions: what is described once and run often.
#include <fmt/format.h>

#include "exchange.h"
#include "scopes.h"

namespace binding {
namespace {

struct GraphObject : ScopeObject {
  pl::Graph graph;
};

struct LiveGraph : LiveScope {
  LiveGraph(const pl::Graph& graph, pl::CallSite site) : scope(graph, site) {}
  pl::GraphScope scope;
};

// What session.run() takes for "give every variable its initial value".
struct VariablesInitializer {};

struct SessionObject {
  explicit SessionObject(std::unique_ptr<pl::Session> s) : session(std::move(s)) {}
  SessionObject(SessionObject&&) = default;
  ~SessionObject() {
    if (!session) return;
    const nb::gil_scoped_release release;  // It waits for runs of other threads.
    session.reset();
  }
  std::unique_ptr<pl::Session> session;
};

// The tensors of a structure, in order; and the structure with others in their places.
void collect(nb::handle value, std::vector<pl::Tensor>& tensors) {
  const Nesting nesting;
  if (PyDict_Check(value.ptr())) {
    for (nb::handle each : nb::borrow<nb::dict>(value).values()) collect(each, tensors);
  } else if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) {
    for (nb::handle each : nb::borrow<nb::sequence>(value)) collect(each, tensors);
  } else if (auto tensor = tensor_of(value)) {
    tensors.push_back(*tensor);
  }
}

nb::object replaced(nb::handle value, const std::vector<pl::Tensor>& with, std::size_t& next) {
  if (PyDict_Check(value.ptr())) {
    nb::dict result;
    for (auto [key, each] : nb::borrow<nb::dict>(value)) result[key] = replaced(each, with, next);
    return result;
  }
  if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) {
    nb::list result;
    for (nb::handle each : nb::borrow<nb::sequence>(value)) result.append(replaced(each, with, next));
    if (!PyTuple_Check(value.ptr())) return result;
    // A named tuple stays one.
    return nb::hasattr(value, "_make") ? nb::object(value.attr("_make")(result)) : nb::object(nb::tuple(result));
  }
  return tensor_of(value) ? wrap_tensor(with.at(next++)) : nb::borrow(value);
}

pl::Feeds to_feeds(nb::handle feeds) {
  pl::Feeds result;
  if (feeds.is_none()) return result;
  for (auto [key, value] : nb::borrow<nb::dict>(feeds)) {
    const auto symbolic = tensor_of(key);
    if (!symbolic) throw nb::type_error("feed_dict: a key is a placeholder or another tensor of the graph");
    const auto given = tensor_of(value);
    pl::Tensor fed = given ? *given : borrow_tensor(value);
    if (fed.dtype() != symbolic->dtype()) fed = unlocked([&] { return fed.cast(symbolic->dtype()); });
    result.add(*symbolic, fed);
  }
  return result;
}

nb::object run(SessionObject& self, nb::handle fetches, nb::handle feed_dict) {
  if (nb::isinstance<VariablesInitializer>(fetches)) {
    unlocked([&] {
      self.session->initialize_variables();
      return 0;
    });
    return nb::none();
  }
  const pl::Feeds feeds = to_feeds(feed_dict);
  std::vector<pl::Tensor> list;
  collect(fetches, list);
  if (list.empty()) throw nb::type_error("run: fetches are tensors of the graph, or lists or dicts of them");
  std::vector<pl::Tensor> results = unlocked([&] { return self.session->run(list, feeds); });
  std::size_t next = 0;
  return replaced(fetches, results, next);
}

nb::dict plan_row(const pl::MemoryPlan& plan) {
  nb::dict row;
  row["peak_bytes"] = plan.peak_bytes;
  row["lower_bound_bytes"] = plan.lower_bound_bytes;
  row["extent_bytes"] = plan.extent_bytes;
  row["result_bytes"] = plan.result_bytes;
  row["smallest_bytes"] = plan.smallest_bytes;
  row["floor_bytes"] = plan.floor_bytes;
  row["floor_step"] = plan.floor_step;
  row["front"] = wrap_front(plan.front);
  row["csv"] = plan.to_csv();
  return row;
}

void bind_graph(Module& m) {
  nb::class_<GraphObject>(m, "Graph")
      .def(nb::init<>())
      .def(
          "__enter__",
          [](nb::handle self) {
            GraphObject& graph = nb::cast<GraphObject&>(self);
            require_own_process();
            graph.begin("graph", std::make_unique<LiveGraph>(graph.graph, python_site()));
            return nb::borrow(self);
          },
          nb::sig("def __enter__(self) -> Graph"))
      .def(
          "__exit__", [](GraphObject& self, const nb::args&) { self.end(); },
          nb::sig("def __exit__(self, *args: object) -> None"))
      .def(
          "as_default", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def as_default(self) -> Graph"),
          "For `with`: operations inside become nodes of the graph.")
      .def("__len__", [](const GraphObject& g) { return g.graph.size(); })
      .def_prop_ro(
          "size", [](const GraphObject& g) { return g.graph.size(); }, "Nodes.")
      .def(
          "finalize", [](const GraphObject& g) { g.graph.finalize(); }, "No node is added from now on.")
      .def("to_dot", [](const GraphObject& g) { return g.graph.to_dot(); })
      .def(
          "placement", [](const GraphObject& g) { return g.graph.placement(); },
          "A line for each node: its name, operation and device.")
      .def("__eq__", [](const GraphObject& a, const GraphObject& b) { return a.graph == b.graph; })
      .def("__hash__",
           [](const GraphObject& g) { return reinterpret_cast<std::uintptr_t>(g.graph.state().get()) >> 4; });
  m.def(
      "default_graph",
      [] {
        GraphObject result;
        result.graph = pl::default_graph();
        return result;
      },
      nb::sig("def default_graph() -> Graph"));
  m.def("reset_default_graph", &pl::reset_default_graph);
  m.def(
      "placeholder",
      [](nb::handle dtype, nb::handle shape, const std::string& name) {
        return wrap_tensor(pl::placeholder(to_dtype(dtype), to_shape(shape).or_scalar(), name));
      },
      nb::arg("dtype"), nb::arg("shape") = nb::make_tuple(), nb::arg("name") = "placeholder",
      nb::sig("def placeholder(dtype: DTypeLike, shape: ShapeLike = (), name: str = 'placeholder') -> Tensor"));
  m.def(
      "group", [](const nb::args& nodes) { return wrap_tensor(pl::group(to_tensors(nodes))); },
      nb::sig("def group(*nodes: Tensor) -> Tensor"));
  m.def(
      "gradients",
      [](nb::handle target, nb::handle sources) {
        const bool is_one = tensor_of(sources).has_value();
        std::vector<pl::Tensor> list;
        collect(sources, list);
        const auto result = pl::gradients(*tensor_of(target), list);
        return is_one ? wrap_tensor(result[0]) : nb::object(wrap_tensors(result));
      },
      nb::arg("target"), nb::arg("sources"), nb::sig("def gradients(target: Tensor, sources: object) -> object"));
  nb::class_<VariablesInitializer>(m, "VariablesInitializer");
  m.def("global_variables_initializer", [] { return VariablesInitializer{}; });
}

void bind_session(Module& m) {
  nb::class_<SessionObject>(m, "Session",
                            "Runs a graph: values for its placeholders in, values of its nodes out.\n\n>>> with "
                            "pl.Graph() as g:\n...     x = pl.placeholder(pl.float32, (None,))\n...     y = x * 2\n>>> "
                            "with pl.Session(g) as session:\n...     session.run(y, {x: [1, 2]}).tolist()\n[2.0, 4.0]")
      .def(
          "__init__",
          [](SessionObject* self, nb::handle graph, nb::handle budget, nb::handle spill) {
            const pl::SessionOptions options{.budget = optional_bytes(budget), .spill = to_path(spill)};
            const pl::Graph of = graph.is_none() ? pl::default_graph() : nb::cast<GraphObject&>(graph).graph;
            new (self) SessionObject(std::make_unique<pl::Session>(of, options));
          },
          nb::arg("graph").none() = nb::none(), nb::arg("budget").none() = nb::none(),
          nb::arg("spill").none() = nb::none(),
          nb::sig("def __init__(self, graph: Graph | None = None, budget: str | int | None = None, spill: str | "
                  "os.PathLike[str] | None = None) -> None"))
      .def("run", &run, nb::arg("fetches"), nb::arg("feed_dict").none() = nb::none(),
           nb::sig("def run(self, fetches: object, feed_dict: dict[Tensor, TensorLike] | None = None) -> typing.Any"),
           "Values of the fetches, in the same structure; None for what has none, such as a training step.")
      .def("initialize_variables",
           [](SessionObject& s) {
             unlocked([&] {
               s.session->initialize_variables();
               return 0;
             });
           })
      .def(
          "variables",
          [](const SessionObject& s) {
            nb::dict result;
            for (const pl::Variable& each : s.session->variables()) result[each.name().c_str()] = nb::cast(each);
            return result;
          },
          nb::sig("def variables(self) -> dict[str, Variable]"),
          "The graph's variables by name, as far as they have values.")
      .def("uninitialized_variables", [](const SessionObject& s) { return s.session->uninitialized_variables(); })
      .def(
          "memory_plan",
          [](SessionObject& s, nb::handle fetches, nb::handle feed_dict) {
            const pl::Feeds feeds = to_feeds(feed_dict);
            std::vector<pl::Tensor> list;
            collect(fetches, list);
            return plan_row(unlocked([&] { return s.session->memory_plan(list, feeds); }));
          },
          nb::arg("fetches"), nb::arg("feed_dict").none() = nb::none(),
          nb::sig("def memory_plan(self, fetches: object, feed_dict: dict[Tensor, TensorLike] | None = None) -> "
                  "dict[str, object]"),
          "What a run would take, without running.")
      .def("memory_report", [](const SessionObject& s) { return s.session->memory_report().to_string(); })
      .def("close",
           [](SessionObject& s) {
             unlocked([&] {
               s.session->close();
               return 0;
             });
           })
      .def_prop_ro("is_closed", [](const SessionObject& s) { return s.session->is_closed(); })
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __enter__(self) -> Session"))
      .def(
          "__exit__", [](nb::handle self, const nb::args&) { self.attr("close")(); },
          nb::sig("def __exit__(self, *args: object) -> None"));
}

void bind_saver(Module& m) {
  nb::class_<pl::Saver>(m, "Saver")
      .def(
          "__init__",
          [](pl::Saver* self, std::size_t max_to_keep, const std::vector<std::string>& variables) {
            new (self) pl::Saver({.max_to_keep = max_to_keep, .variables = variables});
          },
          nb::arg("max_to_keep") = 5, nb::arg("variables") = std::vector<std::string>())
      .def(
          "save",
          [](pl::Saver& saver, SessionObject& s, const std::string& path, std::optional<std::int64_t> step) {
            return unlocked([&] { return saver.save(*s.session, path, step); });
          },
          nb::arg("session"), nb::arg("path"), nb::arg("global_step").none() = nb::none(),
          "The path it was saved under.")
      .def(
          "restore",
          [](pl::Saver& saver, SessionObject& s, nb::handle path) {
            if (path.is_none()) throw pl::NotFound("restore: there is no checkpoint (latest_checkpoint() gave None)");
            unlocked([&, name = to_path(path)] {
              saver.restore(*s.session, name);
              return 0;
            });
          },
          nb::arg("session"), nb::arg("path").none(),
          nb::sig("def restore(self, session: Session, path: str | os.PathLike[str] | None) -> None"))
      .def(
          "recover", [](pl::Saver& saver, const std::string& directory) { saver.recover(directory); },
          nb::arg("directory"))
      .def_prop_ro("checkpoints", [](const pl::Saver& saver) { return saver.checkpoints(); });
}

void bind_train(Module& m) {
  Module train = m.def_submodule("train", "Optimizers whose steps are nodes of a graph.");
  nb::class_<pl::train::Optimizer>(train, "Optimizer")
      .def(
          "minimize",
          [](const pl::train::Optimizer& o, nb::handle loss, nb::handle variables) {
            const pl::Tensor of = *tensor_of(loss);
            if (variables.is_none()) return wrap_tensor(o.minimize(of));
            std::vector<pl::Variable> list;
            for (nb::handle each : nb::borrow<nb::iterable>(variables)) list.push_back(nb::cast<pl::Variable&>(each));
            return wrap_tensor(o.minimize(of, list));
          },
          nb::arg("loss"), nb::arg("var_list").none() = nb::none(),
          nb::sig("def minimize(self, loss: Tensor, var_list: typing.Sequence[Variable] | None = None) -> Tensor"),
          "A node; running it changes the variables.");
  train.def(
      "GradientDescentOptimizer",
      [](double rate) { return pl::train::Optimizer(pl::train::GradientDescentOptimizer(rate)); },
      nb::arg("learning_rate"));
  train.def(
      "MomentumOptimizer",
      [](double rate, double momentum, bool nesterov) {
        return pl::train::Optimizer(pl::train::MomentumOptimizer(rate, momentum, nesterov));
      },
      nb::arg("learning_rate"), nb::arg("momentum"), nb::arg("use_nesterov") = false);
  train.def(
      "AdagradOptimizer",
      [](double rate, double initial) { return pl::train::Optimizer(pl::train::AdagradOptimizer(rate, initial)); },
      nb::arg("learning_rate"), nb::arg("initial_accumulator_value") = 0.1);
  train.def(
      "RMSPropOptimizer",
      [](double rate, double decay, double momentum, double epsilon) {
        return pl::train::Optimizer(pl::train::RMSPropOptimizer(rate, decay, momentum, epsilon));
      },
      nb::arg("learning_rate"), nb::arg("decay") = 0.9, nb::arg("momentum") = 0.0, nb::arg("epsilon") = 1e-10);
  train.def(
      "AdamOptimizer",
      [](double rate, double beta_1, double beta_2, double epsilon) {
        return pl::train::Optimizer(pl::train::AdamOptimizer(rate, beta_1, beta_2, epsilon));
      },
      nb::arg("learning_rate") = 0.001, nb::arg("beta_1") = 0.9, nb::arg("beta_2") = 0.999, nb::arg("epsilon") = 1e-8);
  m.def(
      "latest_checkpoint",
      [](const std::string& directory) -> std::optional<std::string> {
        std::string found = pl::latest_checkpoint(directory);
        return found.empty() ? std::nullopt : std::optional(found);
      },
      nb::arg("directory"));
}

// A function of Python that is traced: called with symbolic tensors once for each kind of arguments.
class PythonFunction {
 public:
  PythonFunction(nb::object function, pl::FunctionOptions options)
      : function_(std::move(function)), core_(std::make_shared<pl::FunctionCore>(std::move(options))) {}

  nb::object call(const nb::args& arguments, const nb::kwargs& named) const {
    const Call call(arguments, named);
    if (pl::FunctionCore::is_tracing() || call.signature.has_symbolic()) return function_.get()(*arguments, **named);
    std::vector<pl::Tensor> results;
    std::shared_ptr<pl::FunctionCore::Trace> trace;
    unlocked([&] {
      trace = trace_for(call);
      results.resize(pl::FunctionCore::num_results(*trace));
      core_->call(*trace, call.signature, results);
      return 0;
    });
    std::size_t next = 0;
    return replaced(static_cast<const Kept*>(pl::FunctionCore::kept(*trace))->result.get(), results, next);
  }

  nb::dict memory_plan(const nb::args& arguments, const nb::kwargs& named) const {
    const Call call(arguments, named);
    return plan_row(unlocked([&] { return pl::FunctionCore::memory_plan(*trace_for(call)); }));
  }

  std::size_t trace_count() const { return core_->trace_count(); }
  nb::object function() const { return nb::borrow(function_.get()); }

  // A function of Python may hold the object that holds this one: self.step = pl.function(self.advance).
  static int traverse(PyObject* self, visitproc visit, void* arg) {
    if (const int stopped = traverse_attributes(self, visit, arg); stopped != 0) return stopped;
    if (!nb::inst_ready(self)) return 0;
    const SharedObject& function = nb::inst_ptr<PythonFunction>(self)->function_;
    if (function.is_only()) Py_VISIT(function.get().ptr());
    return 0;
  }
  static int clear(PyObject* self) {
    if (nb::inst_ready(self)) nb::inst_ptr<PythonFunction>(self)->function_.forget();
    return clear_attributes(self);
  }

 private:
  // What a trace keeps: the function's result, and the objects that it tells from others by where they are.
  struct Kept {
    SharedObject result, objects;
  };
  // Arguments with tensors in the place of arrays, and what tells this call from others.
  struct Call {
    Call(const nb::args& arguments, const nb::kwargs& named)
        : all(nb::make_tuple(converted(arguments), converted(named))) {
      collect(all, tensors);
      std::string text;
      describe(all, text);
      signature.add(text);
      for (const pl::Tensor& each : tensors) signature.add(each);
    }
    static nb::object converted(nb::handle value) {
      const Nesting nesting;
      if (PyDict_Check(value.ptr())) {
        nb::dict result;
        for (auto [key, each] : nb::borrow<nb::dict>(value)) result[key] = converted(each);
        return result;
      }
      if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) {
        nb::list result;
        for (nb::handle each : nb::borrow<nb::sequence>(value)) result.append(converted(each));
        return PyTuple_Check(value.ptr()) ? nb::object(nb::tuple(result)) : nb::object(result);
      }
      const bool is_array = !PyType_Check(value.ptr()) && !tensor_of(value) && nb::hasattr(value, "__array__");
      return is_array ? wrap_tensor(to_tensor(value)) : nb::borrow(value);
    }
    void describe(nb::handle value, std::string& out) {
      if (PyDict_Check(value.ptr())) {
        for (auto [key, each] : nb::borrow<nb::dict>(value)) {
          out += nb::repr(key).c_str();
          out += ':';
          describe(each, out);
        }
      } else if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) {
        out += '(';
        for (nb::handle each : nb::borrow<nb::sequence>(value)) {
          describe(each, out);
          out += ',';
        }
        out += ')';
      } else if (PyObject_TypeCheck(value.ptr(), tensor_type)) {
        out += 'T';
      } else if (PyLong_Check(value.ptr()) || PyFloat_Check(value.ptr()) || PyUnicode_Check(value.ptr()) ||
                 value.is_none()) {
        out += nb::repr(value).c_str();
      } else {  // Variables, models, whatever else: the object itself.
        out += fmt::format("@{}", static_cast<const void*>(value.ptr()));
        objects.append(value);
      }
    }
    nb::object all;
    nb::list objects;
    std::vector<pl::Tensor> tensors;
    pl::CallSignature signature;
  };

  // Without Python's lock: another thread may be tracing.
  std::shared_ptr<pl::FunctionCore::Trace> trace_for(const Call& call) const {
    return core_->trace_for(call.signature, [&](std::span<const pl::Tensor> symbolic) {
      return with_python([&] {
        const std::vector<pl::Tensor> list(symbolic.begin(), symbolic.end());
        std::size_t next = 0;
        const nb::object given = replaced(call.all, list, next);
        nb::object result = function_.get()(*nb::borrow<nb::args>(given[0]), **nb::borrow<nb::kwargs>(given[1]));
        pl::FunctionCore::Traced traced;
        collect(result, traced.results);
        traced.kept = std::make_shared<Kept>(Kept{SharedObject(std::move(result)), SharedObject(call.objects)});
        return traced;
      });
    });
  }

  SharedObject function_;
  std::shared_ptr<pl::FunctionCore> core_;
};

PyType_Slot function_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&PythonFunction::traverse)},
                                {Py_tp_clear, reinterpret_cast<void*>(&PythonFunction::clear)},
                                {0, nullptr}};

void bind_function(Module& m) {
  nb::class_<PythonFunction>(m, "Function", nb::dynamic_attr(), nb::type_slots(function_slots))
      .def("__call__", &PythonFunction::call)
      .def("memory_plan", &PythonFunction::memory_plan, "What a call with these takes, without running it.")
      .def_prop_ro("trace_count", &PythonFunction::trace_count)
      .def_prop_ro("python_function", &PythonFunction::function);
  m.def(
      "new_function",
      [](nb::object function, nb::handle budget, const std::string& name, nb::handle spill) {
        return PythonFunction(std::move(function),
                              {.budget = optional_bytes(budget), .name = name, .spill = to_path(spill)});
      },
      nb::arg("function"), nb::arg("budget").none() = nb::none(), nb::arg("name") = "",
      nb::arg("spill").none() = nb::none());
  m.def(
      "cond",
      [](nb::handle predicate, nb::object then, nb::object otherwise) -> nb::object {
        const pl::Tensor p = to_tensor(predicate);
        if (!pl::is_symbolic(p)) return static_cast<bool>(p) ? then() : otherwise();
        nb::object result;
        const auto branch = [&](const nb::object& f, bool keep) {
          nb::object given = f();
          std::vector<pl::Tensor> list;
          collect(given, list);
          if (keep) result = given;
          return list;
        };
        const auto values = pl::control_detail::cond(
            p, [&] { return branch(then, true); }, [&] { return branch(otherwise, false); });
        std::size_t next = 0;
        return replaced(result, values, next);
      },
      nb::arg("pred"), nb::arg("true_fn"), nb::arg("false_fn"));
  m.def(
      "while_loop",
      [](nb::object condition, nb::object body, nb::object state) -> nb::object {
        std::vector<pl::Tensor> list;
        collect(state, list);
        const bool spreads = PyList_Check(state.ptr()) || PyTuple_Check(state.ptr());
        const auto call = [&](const nb::object& f, nb::handle s) {
          return spreads ? f(*nb::tuple(nb::borrow<nb::sequence>(s))) : f(s);
        };
        if (!pl::control_detail::is_traced(list)) {
          const auto holds = [&] {
            const int truth = PyObject_IsTrue(call(condition, state).ptr());
            if (truth < 0) throw nb::python_error();
            return truth == 1;
          };
          while (holds()) state = call(body, state);
          return state;
        }
        const auto with = [&](std::span<const pl::Tensor> tensors) {
          std::size_t next = 0;
          return replaced(state, std::vector<pl::Tensor>(tensors.begin(), tensors.end()), next);
        };
        const auto end = pl::control_detail::while_loop(
            [&](std::span<const pl::Tensor> s) { return to_tensor(call(condition, with(s))); },
            [&](std::span<const pl::Tensor> s) {
              std::vector<pl::Tensor> next;
              collect(call(body, with(s)), next);
              return next;
            },
            list);
        return with(end);
      },
      nb::arg("cond"), nb::arg("body"), nb::arg("state"));
}

void bind_writer(Module& m) {
  using pl::summary::FileWriter;
  nb::class_<FileWriter>(m, "FileWriter")
      .def(
          "__init__",
          [](FileWriter* self, const std::string& directory, nb::handle graph) {
            if (graph.is_none())
              new (self) FileWriter(directory);
            else
              new (self) FileWriter(directory, nb::cast<GraphObject&>(graph).graph);
          },
          nb::arg("logdir"), nb::arg("graph").none() = nb::none())
      .def(
          "add_scalar",
          [](FileWriter& w, const std::string& tag, float value, std::int64_t step) { w.add_scalar(tag, value, step); },
          nb::arg("tag"), nb::arg("value"), nb::arg("step"))
      .def(
          "add_histogram",
          [](FileWriter& w, const std::string& tag, nb::handle values, std::int64_t step) {
            const pl::Tensor x = to_tensor(values);
            unlocked([&] {
              w.add_histogram(tag, x, step);
              return 0;
            });
          },
          nb::arg("tag"), nb::arg("values"), nb::arg("step"))
      .def(
          "add_text",
          [](FileWriter& w, const std::string& tag, const std::string& text, std::int64_t step) {
            w.add_text(tag, text, step);
          },
          nb::arg("tag"), nb::arg("text"), nb::arg("step"))
      .def("flush", &FileWriter::flush)
      .def("close", &FileWriter::close)
      .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
      .def("__exit__", [](FileWriter& w, const nb::args&) { w.close(); });
}

}  // namespace

void bind_graphs(Module& m) {
  bind_writer(m);
  bind_graph(m);
  bind_session(m);
  bind_saver(m);
  bind_train(m);
  bind_function(m);
}

}  // namespace binding
