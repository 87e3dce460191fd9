// What training is described with: optimizers, losses, metrics, callbacks, logs.
#include <fmt/format.h>
#include <nanobind/stl/map.h>

#include "models.h"

namespace binding {
namespace {

// A function of Python that gives a number for each example.
std::function<pl::Tensor(const pl::Tensor&, const pl::Tensor&)> of_examples(nb::object function) {
  return [f = SharedObject(std::move(function))](const pl::Tensor& targets, const pl::Tensor& predictions) {
    return with_python([&] { return to_tensor(f.get()(wrap_tensor(targets), wrap_tensor(predictions))); });
  };
}

std::string name_of(nb::handle function) {
  const nb::object name = nb::getattr(function, "__name__", nb::none());
  return name.is_none() ? nb::cast<std::string>(function.type().attr("__name__")) : nb::cast<std::string>(name);
}

// An object of Python with Keras' methods. Those it does not have are not called.
class PythonCallback final : public pl::CallbackBase {
 public:
  PythonCallback(nb::object callback, nb::object model) : callback_(std::move(callback)), model_(std::move(model)) {}

  void on_train_begin(pl::Model&) override {
    with_python([&] {
      if (nb::hasattr(callback_.get(), "set_model")) callback_.get().attr("set_model")(model_.get());
      return 0;
    });
    tell("on_train_begin", [] { return nb::make_tuple(nb::none()); });
  }
  void on_train_end(pl::Model&) override {
    tell("on_train_end", [] { return nb::make_tuple(nb::none()); });
  }
  void on_epoch_begin(pl::Model&, int epoch) override {
    tell("on_epoch_begin", [&] { return nb::make_tuple(epoch, nb::none()); });
  }
  void on_epoch_end(pl::Model&, int epoch, const pl::Logs& logs) override {
    tell("on_epoch_end", [&] { return nb::make_tuple(epoch, wrap_logs(logs)); });
  }
  void on_batch_end(pl::Model&, std::size_t batch, const pl::Logs& logs) override {
    for (const char* name : {"on_batch_end", "on_train_batch_end"})
      tell(name, [&] { return nb::make_tuple(batch, wrap_logs(logs)); });
  }

 private:
  template <class F>
  void tell(const char* method, F&& arguments) {
    with_python([&] {
      if (nb::hasattr(callback_.get(), method)) callback_.get().attr(method)(*arguments());
      return 0;
    });
  }
  SharedObject callback_, model_;
};

// Ctrl-C ends a fit after a step, when all of the model's weights have taken it.
class SignalCallback final : public pl::CallbackBase {
 public:
  void on_batch_end(pl::Model&, std::size_t, const pl::Logs&) override { check_signals(); }
};

void bind_optimizer(Module& m) {
  nb::class_<pl::Optimizer>(m, "Optimizer")
      .def(
          "apply",
          [](const pl::Optimizer& optimizer, nb::handle gradients, nb::handle variables) {
            std::vector<pl::Variable> parameters;
            std::vector<pl::Tensor> slopes;
            for (nb::handle each : nb::borrow<nb::iterable>(variables))
              parameters.push_back(nb::cast<pl::Variable&>(each));
            for (nb::handle each : nb::borrow<nb::iterable>(gradients))
              slopes.push_back(each.is_none() ? pl::Tensor() : to_tensor(each));
            unlocked([&] {
              optimizer.apply(parameters, slopes);
              return 0;
            });
          },
          nb::arg("gradients"), nb::arg("variables"))
      .def(
          "apply_gradients",
          [](nb::handle self, nb::handle pairs) {
            nb::list gradients, variables;
            for (nb::handle each : nb::borrow<nb::iterable>(pairs)) {
              gradients.append(each[0]);
              variables.append(each[1]);
            }
            self.attr("apply")(gradients, variables);
          },
          nb::arg("grads_and_vars"), "Pairs of a gradient and its variable.")
      .def_prop_rw("learning_rate", &pl::Optimizer::learning_rate,
                   [](const pl::Optimizer& o, double rate) { o.set_learning_rate(rate); })
      .def_prop_ro("iterations", &pl::Optimizer::step)
      .def_prop_ro("state_bytes", &pl::Optimizer::state_bytes);
}

void bind_optimizers(Module& m) {
  Module o = m.def_submodule("optimizers", "How steps change weights; Keras' formulas and defaults.");
  using nb::arg;
  o.def(
      "SGD",
      [](double rate, double momentum, bool nesterov) {
        return pl::optimizers::SGD({rate, momentum, nesterov});
      },
      arg("learning_rate") = 0.01, arg("momentum") = 0.0, arg("nesterov") = false);
  o.def(
      "RMSprop",
      [](double rate, double rho, double momentum, double epsilon, bool centered) {
        return pl::optimizers::RMSprop({rate, rho, momentum, epsilon, centered});
      },
      arg("learning_rate") = 0.001, arg("rho") = 0.9, arg("momentum") = 0.0, arg("epsilon") = 1e-7,
      arg("centered") = false);
  o.def(
      "Adagrad",
      [](double rate, double initial, double epsilon) {
        return pl::optimizers::Adagrad({rate, initial, epsilon});
      },
      arg("learning_rate") = 0.001, arg("initial_accumulator_value") = 0.1, arg("epsilon") = 1e-7);
  o.def(
      "Adadelta",
      [](double rate, double rho, double epsilon) {
        return pl::optimizers::Adadelta({rate, rho, epsilon});
      },
      arg("learning_rate") = 0.001, arg("rho") = 0.95, arg("epsilon") = 1e-7);
  o.def(
      "Adam",
      [](double rate, double beta_1, double beta_2, double epsilon) {
        return pl::optimizers::Adam({rate, beta_1, beta_2, epsilon});
      },
      arg("learning_rate") = 0.001, arg("beta_1") = 0.9, arg("beta_2") = 0.999, arg("epsilon") = 1e-7);
  o.def(
      "AdamW",
      [](double rate, double decay, double beta_1, double beta_2, double epsilon) {
        return pl::optimizers::AdamW({rate, beta_1, beta_2, epsilon, decay});
      },
      arg("learning_rate") = 0.001, arg("weight_decay") = 0.004, arg("beta_1") = 0.9, arg("beta_2") = 0.999,
      arg("epsilon") = 1e-7);
  o.def(
      "Adamax",
      [](double rate, double beta_1, double beta_2, double epsilon) {
        return pl::optimizers::Adamax({rate, beta_1, beta_2, epsilon});
      },
      arg("learning_rate") = 0.001, arg("beta_1") = 0.9, arg("beta_2") = 0.999, arg("epsilon") = 1e-7);
  o.def(
      "get", [](const std::string& name) { return pl::optimizers::by_name(name); }, arg("name"));
}

void bind_losses(Module& m) {
  nb::class_<pl::Loss>(m, "Loss")
      .def(
          "__call__",
          [](const pl::Loss& loss, nb::handle targets, nb::handle predictions) {
            const pl::Tensor y = to_tensor(targets), p = to_tensor(predictions);
            return wrap_tensor(unlocked([&] { return loss(y, p); }));
          },
          nb::arg("y_true"), nb::arg("y_pred"),
          nb::sig("def __call__(self, y_true: TensorLike, y_pred: TensorLike) -> Tensor"))
      .def_prop_ro("name", [](const pl::Loss& loss) { return loss.name(); });
  Module l = m.def_submodule("losses", "Keras' losses.");
  using Make = pl::Loss (*)(const pl::losses::CrossentropyOptions&);
  struct Entropy {
    const char* name;
    Make make;
  };
  static const Entropy kEntropies[] = {{"BinaryCrossentropy", &pl::losses::BinaryCrossentropy},
                                       {"CategoricalCrossentropy", &pl::losses::CategoricalCrossentropy},
                                       {"SparseCategoricalCrossentropy", &pl::losses::SparseCategoricalCrossentropy}};
  for (const Entropy& e : kEntropies)
    l.def(
        e.name,
        [&e](bool from_logits, double label_smoothing) {
          return e.make({from_logits, label_smoothing});
        },
        nb::arg("from_logits") = false, nb::arg("label_smoothing") = 0.0);
  struct Plain {
    const char* name;
    pl::Loss (*make)();
  };
  static const Plain kPlain[] = {{"MeanSquaredError", &pl::losses::MeanSquaredError},
                                 {"MeanAbsoluteError", &pl::losses::MeanAbsoluteError},
                                 {"MeanAbsolutePercentageError", &pl::losses::MeanAbsolutePercentageError},
                                 {"MeanSquaredLogarithmicError", &pl::losses::MeanSquaredLogarithmicError},
                                 {"LogCosh", &pl::losses::LogCosh},
                                 {"Poisson", &pl::losses::Poisson},
                                 {"KLDivergence", &pl::losses::KLDivergence},
                                 {"Hinge", &pl::losses::Hinge},
                                 {"SquaredHinge", &pl::losses::SquaredHinge},
                                 {"CategoricalHinge", &pl::losses::CategoricalHinge},
                                 {"CosineSimilarity", &pl::losses::CosineSimilarity}};
  for (const Plain& p : kPlain) l.def(p.name, [&p] { return p.make(); });
  l.def(
      "Huber", [](double delta) { return pl::losses::Huber(delta); }, nb::arg("delta") = 1.0);
  l.def("get", &to_loss, nb::arg("name"));
}

void bind_metrics(Module& m) {
  nb::class_<pl::Metric>(m, "Metric")
      .def(
          "update_state",
          [](const pl::Metric& metric, nb::handle targets, nb::handle predictions) {
            const pl::Tensor y = to_tensor(targets), p = to_tensor(predictions);
            unlocked([&] {
              metric.update(y, p);
              return 0;
            });
          },
          nb::arg("y_true"), nb::arg("y_pred"))
      .def("result", &pl::Metric::result)
      .def("reset_state", &pl::Metric::reset)
      .def_prop_ro("name", [](const pl::Metric& metric) { return metric.name(); });
  Module n = m.def_submodule("metrics", "Keras' metrics.");
  n.def(
      "Accuracy", [](const std::string& name) { return pl::metrics::Accuracy(name); }, nb::arg("name") = "accuracy");
  n.def(
      "BinaryAccuracy",
      [](double threshold, const std::string& name) {
        return pl::metrics::BinaryAccuracy({threshold, name});
      },
      nb::arg("threshold") = 0.5, nb::arg("name") = "");
  n.def(
      "Precision",
      [](double threshold, const std::string& name) {
        return pl::metrics::Precision({threshold, name});
      },
      nb::arg("threshold") = 0.5, nb::arg("name") = "");
  n.def(
      "Recall",
      [](double threshold, const std::string& name) {
        return pl::metrics::Recall({threshold, name});
      },
      nb::arg("threshold") = 0.5, nb::arg("name") = "");
  n.def(
      "AUC",
      [](int thresholds, const std::string& name) {
        return pl::metrics::AUC({thresholds, name});
      },
      nb::arg("num_thresholds") = 200, nb::arg("name") = "");
  n.def(
      "TopK", [](std::int64_t k, const std::string& name) { return pl::metrics::TopK(k, name); }, nb::arg("k") = 5,
      nb::arg("name") = "");
  n.def("MeanAbsoluteError", [] { return pl::metrics::MeanAbsoluteError(); });
  n.def("MeanSquaredError", [] { return pl::metrics::MeanSquaredError(); });
  n.def("RootMeanSquaredError", [] { return pl::metrics::RootMeanSquaredError(); });
}

void bind_callbacks(Module& m) {
  nb::class_<pl::Callback>(m, "NativeCallback");
  Module c = m.def_submodule("native_callbacks", "Callbacks that the library has.");
  using nb::arg;
  c.def(
      "ModelCheckpoint",
      [](const std::string& path, const std::string& monitor, bool best, bool weights, int freq, int verbose) {
        return pl::callbacks::ModelCheckpoint(path, {monitor, best, weights, freq, verbose});
      },
      arg("filepath"), arg("monitor") = "val_loss", arg("save_best_only") = false, arg("save_weights_only") = false,
      arg("save_freq") = 0, arg("verbose") = 0);
  c.def(
      "EarlyStopping",
      [](const std::string& monitor, int patience, double min_delta, bool restore, int verbose) {
        return pl::callbacks::EarlyStopping({monitor, patience, min_delta, restore, verbose});
      },
      arg("monitor") = "val_loss", arg("patience") = 0, arg("min_delta") = 0.0, arg("restore_best_weights") = false,
      arg("verbose") = 0);
  c.def(
      "ReduceLROnPlateau",
      [](const std::string& monitor, double factor, int patience, double min_delta, int cooldown, double min_lr,
         int verbose) {
        return pl::callbacks::ReduceLROnPlateau({monitor, factor, patience, min_delta, cooldown, min_lr, verbose});
      },
      arg("monitor") = "val_loss", arg("factor") = 0.1, arg("patience") = 10, arg("min_delta") = 1e-4,
      arg("cooldown") = 0, arg("min_lr") = 0.0, arg("verbose") = 0);
  c.def(
      "TensorBoard",
      [](const std::string& log_dir, int histogram_freq, bool write_graph, bool memory, int update_freq) {
        return pl::callbacks::TensorBoard(log_dir, {histogram_freq, write_graph, memory, update_freq});
      },
      arg("log_dir") = "logs", arg("histogram_freq") = 0, arg("write_graph") = true, arg("memory") = true,
      arg("update_freq") = 0);
  c.def(
      "CSVLogger", [](const std::string& path) { return pl::callbacks::CSVLogger(path); }, arg("filename"));
  c.def(
      "LearningRateScheduler",
      [](nb::object schedule) {
        return pl::callbacks::LearningRateScheduler([f = SharedObject(std::move(schedule))](int epoch, double rate) {
          return with_python([&] { return nb::cast<double>(nb::float_(f.get()(epoch, rate))); });
        });
      },
      arg("schedule"));
}

}  // namespace

nb::dict wrap_logs(const pl::Logs& logs) {
  nb::dict result;
  for (const auto& [name, value] : logs) result[name.c_str()] = static_cast<double>(value);
  return result;
}

pl::Loss to_loss(nb::handle object) {
  if (PyUnicode_Check(object.ptr())) return pl::Loss(nb::cast<std::string>(object));
  if (nb::isinstance<pl::Loss>(object)) return nb::cast<pl::Loss>(object);
  if (!PyCallable_Check(object.ptr()))
    throw nb::type_error("loss: a name, a loss or a function of targets and predictions");
  return pl::Loss(name_of(object), of_examples(nb::borrow(object)));
}

pl::Metric to_metric(nb::handle object) {
  if (PyUnicode_Check(object.ptr())) return pl::Metric(nb::cast<std::string>(object));
  if (nb::isinstance<pl::Metric>(object)) return nb::cast<pl::Metric>(object);
  if (!PyCallable_Check(object.ptr()))
    throw nb::type_error("metrics: names, metrics or functions of targets and predictions");
  return pl::Metric(name_of(object), of_examples(nb::borrow(object)));
}

pl::Callback to_callback(nb::handle object, nb::handle model) {
  if (nb::isinstance<pl::Callback>(object)) return nb::cast<pl::Callback>(object);
  bool is_told = false;
  for (const char* method :
       {"on_train_begin", "on_train_end", "on_epoch_begin", "on_epoch_end", "on_batch_end", "on_train_batch_end"})
    is_told = is_told || nb::hasattr(object, method);
  if (!is_told)
    throw nb::type_error(
        fmt::format("callbacks: {} has no method such as on_epoch_end(); derive from pl.callbacks.Callback, or use "
                    "pl.callbacks.LambdaCallback",
                    nb::repr(object).c_str())
            .c_str());
  return pl::make_callback<PythonCallback>(nb::borrow(object), nb::borrow(model));
}

pl::Callback signal_callback() { return pl::make_callback<SignalCallback>(); }

void bind_training(Module& m) {
  bind_optimizer(m);
  bind_optimizers(m);
  bind_losses(m);
  bind_metrics(m);
  bind_callbacks(m);
}

}  // namespace binding
