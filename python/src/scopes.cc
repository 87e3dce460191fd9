// Scopes as context managers: tidy, budget, device, name_scope, graphs, tapes.
//
// The library's scopes are of one thread and end in the reverse order in which they began. Python's `with` can break
// both, by generators and coroutines that are suspended inside of one: a scope that would end on another thread is
// refused, and one that would end before a scope inside of it ends with that one.
#include "scopes.h"

#include <fmt/format.h>

#include "collections.h"

namespace binding {
namespace {

thread_local std::vector<std::shared_ptr<EnteredScope>>* entered = nullptr;  // Innermost last; few, and never freed.

std::vector<std::shared_ptr<EnteredScope>>& scopes_here() {
  if (entered == nullptr) entered = new std::vector<std::shared_ptr<EnteredScope>>;
  return *entered;
}

}  // namespace

void ScopeObject::begin(const char* what, std::unique_ptr<LiveScope> scope) {
  auto made = std::make_shared<EnteredScope>(EnteredScope{what, std::move(scope), &scopes_here()});
  scopes_here().push_back(made);
  open_.push_back(std::move(made));
}

void ScopeObject::end() {
  if (open_.empty()) throw pl::FailedPrecondition("with: a scope ends that has not begun");
  const std::shared_ptr<EnteredScope> ending = open_.back();
  if (ending->thread != &scopes_here())
    throw pl::FailedPrecondition(
        fmt::format("{}: began on another thread than the one on which it ends; leave the block on the thread that "
                    "entered it (a generator or coroutine was resumed elsewhere)",
                    ending->what));
  open_.pop_back();
  auto& here = scopes_here();
  ending->has_ended = true;
  const bool in_order = here.back() == ending;
  std::string inside = in_order ? "" : here.back()->what;
  // Those that were to end earlier end with the last one inside of them.
  while (!here.empty() && here.back()->has_ended) {
    const std::shared_ptr<EnteredScope> last = here.back();
    here.pop_back();
    unlocked([&] { last->scope.reset(); });
  }
  if (!in_order)
    throw pl::FailedPrecondition(
        fmt::format("{}: ends while a {} that began inside it is still open, such as in a suspended generator; it "
                    "ends with that one. End scopes in the reverse order in which they begin",
                    ending->what, inside));
}

LiveScope* ScopeObject::innermost() { return open_.empty() ? nullptr : open_.back()->scope.get(); }

namespace {

struct Tidy : ScopeObject {
  std::string name;
};
struct LiveTidy : LiveScope {
  LiveTidy(const std::string& name, pl::CallSite site) {
    if (!name.empty()) named.emplace(name, site);
    scope.emplace(site);
  }
  ~LiveTidy() override {
    scope.reset();
    named.reset();
  }
  std::optional<pl::NameScope> named;
  std::optional<pl::TidyScope> scope;
};

// Every tensor in a value of Python: lists, tuples, dicts, and attributes of dataclasses.
template <class F>
void for_each_tensor(nb::handle value, F&& f) {
  const Nesting nesting;
  if (auto tensor = PyObject_TypeCheck(value.ptr(), tensor_type) ? tensor_of(value) : std::nullopt) return f(*tensor);
  if (PyDict_Check(value.ptr())) {
    for (auto [key, each] : nb::borrow<nb::dict>(value)) for_each_tensor(each, f);
  } else if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()) || PySet_Check(value.ptr())) {
    for (nb::handle each : nb::borrow<nb::iterable>(value)) for_each_tensor(each, f);
  } else if (nb::hasattr(value, "__dataclass_fields__") && nb::hasattr(value, "__dict__")) {
    for_each_tensor(value.attr("__dict__"), f);
  } else {
    visit_collection(value, f);
  }
}

nb::object keep_in(Tidy& self, nb::object value) {
  auto* live = static_cast<LiveTidy*>(self.innermost());
  if (live == nullptr) throw pl::FailedPrecondition("keep: this tidy is not open; call it inside its block");
  for_each_tensor(value, [&](const pl::Tensor& tensor) { live->scope->keep(tensor); });
  return value;
}

struct BudgetObject : ScopeObject {
  explicit BudgetObject(pl::Budget b) : budget(std::move(b)) {}
  pl::Budget budget;
};
struct DeviceObject : ScopeObject {
  std::string name;
  bool soft = false;
};
struct NameObject : ScopeObject {
  std::string name;
};

BudgetObject make_budget(const std::string& name, nb::handle size, nb::handle parent, bool evict, nb::handle spill) {
  const std::size_t limit = to_bytes(size);
  const pl::BudgetOptions options{.evict = evict, .spill = to_path(spill)};
  if (!parent.is_none()) return BudgetObject(pl::Budget(name, limit, nb::cast<BudgetObject&>(parent).budget, options));
  if (auto current = pl::Budget::current()) return BudgetObject(pl::Budget(name, limit, *current, options));
  return BudgetObject(pl::Budget(name, limit, options));
}

void bind_tidy(Module& m) {
  nb::class_<Tidy>(m, "Tidy")
      .def(
          "__enter__",
          [](nb::handle self) {
            Tidy& tidy = nb::cast<Tidy&>(self);
            require_own_process();
            tidy.begin("tidy", std::make_unique<LiveTidy>(tidy.name, python_site()));
            return nb::borrow(self);
          },
          nb::sig("def __enter__(self) -> Tidy"))
      .def(
          "__exit__", [](Tidy& self, const nb::args&) { self.end(); },
          nb::sig("def __exit__(self, *args: object) -> None"))
      .def("keep", &keep_in, nb::arg("value"), nb::sig("def keep(self, value: T) -> T"),
           "Passes the tensors inside the value to the enclosing scope, and returns it.")
      .def(
          "__call__",
          [](nb::handle self, nb::handle function, const nb::args& arguments, const nb::kwargs& named) {
            Tidy& tidy = nb::cast<Tidy&>(self);
            tidy.begin("tidy", std::make_unique<LiveTidy>(tidy.name, python_site()));
            nb::object result;
            try {
              result = keep_in(tidy, function(*arguments, **named));
            } catch (...) {
              tidy.end();
              throw;
            }
            tidy.end();
            return result;
          },
          nb::sig("def __call__(self, function: typing.Callable[..., T], *args: object, **kwargs: object) -> T"),
          "What the function returns is all that is left of it.");
  m.def(
      "new_tidy",
      [](const std::string& name) {
        Tidy tidy;
        tidy.name = name;
        return tidy;
      },
      nb::arg("name") = "");
  m.def(
      "keep",
      [](nb::object value) {
        for_each_tensor(value, [](const pl::Tensor& tensor) { pl::keep(tensor); });
        return value;
      },
      nb::arg("value"), nb::sig("def keep(value: T) -> T"));
  m.def(
      "dispose",
      [](nb::handle value) {
        if (variable_type && PyObject_TypeCheck(value.ptr(), variable_type))
          return nb::inst_ptr<pl::Variable>(value)->dispose();
        for_each_tensor(value, [](const pl::Tensor& tensor) { tensor.dispose(); });
      },
      nb::arg("value"));
}

void bind_budget(Module& m) {
  nb::class_<BudgetObject>(m, "Budget")
      .def(
          "__enter__",
          [](nb::handle self) {
            struct Live : LiveScope {
              explicit Live(const pl::Budget& budget) : scope(budget) {}
              pl::BudgetScope scope;
            };
            BudgetObject& budget = nb::cast<BudgetObject&>(self);
            require_own_process();
            budget.begin("budget", std::make_unique<Live>(budget.budget));
            return nb::borrow(self);
          },
          nb::sig("def __enter__(self) -> Budget"))
      .def(
          "__exit__", [](BudgetObject& self, const nb::args&) { self.end(); },
          nb::sig("def __exit__(self, *args: object) -> None"))
      .def_prop_ro("name", [](const BudgetObject& b) { return b.budget.name(); })
      .def_prop_ro("limit", [](const BudgetObject& b) { return b.budget.limit(); })
      .def_prop_ro("used", [](const BudgetObject& b) { return b.budget.used(); })
      .def_prop_ro("peak", [](const BudgetObject& b) { return b.budget.peak(); })
      .def(
          "reset_peak", [](BudgetObject& b) { b.budget.reset_peak(); }, "To what is used now.")
      .def(
          "report", [](const BudgetObject& b) { return b.budget.report(); },
          "A table of this budget and those below it.")
      .def(
          "on_alert",
          [](const BudgetObject& b, double fraction, nb::object callback) {
            return alert_handle(b.budget.on_alert(fraction, alert_function(callback)));
          },
          nb::arg("fraction"), nb::arg("callback"),
          "Calls back when that share of the limit is passed, while what it returns lives.")
      .def("__repr__", [](const BudgetObject& b) {
        return fmt::format("<Budget \"{}\": {} of {} used>", b.budget.name(), pl::format_bytes(b.budget.used()),
                           pl::format_bytes(b.budget.limit()));
      });
  m.def(
      "budget", &make_budget, nb::arg("name"), nb::arg("size"), nb::arg("parent").none() = nb::none(),
      nb::arg("evict") = false, nb::arg("spill").none() = nb::none(),
      nb::sig("def budget(name: str, size: str | int, parent: Budget | None = None, evict: bool = False, spill: str | "
              "os.PathLike[str] | None = None) -> Budget"),
      "A budget, for `with`: what is made inside is charged to it and to those it is part of.\n\nA request beyond it "
      "raises OutOfMemory, a MemoryError, having changed nothing. With evict=True results\nof operations are dropped "
      "first and computed again when they are read, to the same bits (spill, a\ndirectory to "
      "keep them in instead, is Unsupported for budgets of single operations).\n\n>>> with pl.budget(\"step\", "
      "\"1MiB\") as b:\n...     x = pl.zeros(1000)\n>>> b.used "
      ">= 4000\nTrue\n>>> with pl.budget(\"tight\", \"12KiB\", evict=True) as b:\n...     x = pl.ones(1000)\n...     "
      "several = [x * i for i in range(8)]      # 4000 bytes each\n...     [each[0].item() for each in several]\n[0.0, "
      "1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]\n>>> b.peak <= 12 << 10\nTrue");
}

void bind_places(Module& m) {
  nb::class_<DeviceObject>(m, "DeviceScope")
      .def(
          "__enter__",
          [](nb::handle self) {
            struct Live : LiveScope {
              Live(const std::string& name, bool soft) {
                if (!soft) eager.emplace(name);
                placement.emplace(name, soft ? pl::Placement::soft : pl::Placement::hard);
              }
              std::optional<pl::DeviceScope> eager;
              std::optional<pl::PlacementScope> placement;
              ~Live() override {
                placement.reset();
                eager.reset();
              }
            };
            DeviceObject& device = nb::cast<DeviceObject&>(self);
            require_own_process();
            device.begin("device", std::make_unique<Live>(device.name, device.soft));
            return nb::borrow(self);
          },
          nb::sig("def __enter__(self) -> DeviceScope"))
      .def(
          "__exit__", [](DeviceObject& self, const nb::args&) { self.end(); },
          nb::sig("def __exit__(self, *args: object) -> None"));
  m.def(
      "device",
      [](std::string name, bool soft) {
        if (name.starts_with("/")) name.erase(0, 1);  // TensorFlow's "/CPU:0", "/device:CPU:0".
        if (name.starts_with("device:")) name.erase(0, 7);
        for (char& letter : name) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
        DeviceObject device;
        device.name = std::move(name);
        device.soft = soft;
        return device;
      },
      nb::arg("name"), nb::arg("soft") = false, nb::sig("def device(name: str, soft: bool = False) -> DeviceScope"));
  nb::class_<NameObject>(m, "NameScope")
      .def(
          "__enter__",
          [](nb::handle self) {
            struct Live : LiveScope {
              Live(const std::string& name, pl::CallSite site) : scope(name, site) {}
              pl::NameScope scope;
            };
            NameObject& name = nb::cast<NameObject&>(self);
            name.begin("name_scope", std::make_unique<Live>(name.name, python_site()));
            return nb::borrow(self);
          },
          nb::sig("def __enter__(self) -> NameScope"))
      .def(
          "__exit__", [](NameObject& self, const nb::args&) { self.end(); },
          nb::sig("def __exit__(self, *args: object) -> None"));
  m.def(
      "name_scope",
      [](const std::string& name) {
        NameObject object;
        object.name = name;
        return object;
      },
      nb::arg("name"), nb::sig("def name_scope(name: str) -> NameScope"));
}

}  // namespace

void bind_scopes(Module& m) {
  bind_tidy(m);
  bind_budget(m);
  bind_places(m);
}

}  // namespace binding
