// LiveView: other programs of the same user watch this process's memory.
#include <nanobind/stl/filesystem.h>

#include <chrono>
#include <memory>

#include "common.h"
#include "plimsoll/observe/live/live_view.h"

namespace binding {
namespace {

// Its threads may be at work: they are waited for without Python's lock.
struct Live {
  std::unique_ptr<pl::LiveView> view;
  explicit Live(std::unique_ptr<pl::LiveView> v) : view(std::move(v)) {}
  Live(Live&&) = default;
  ~Live() { close(); }
  void close() {
    if (!view) return;
    const nb::gil_scoped_release release;
    view.reset();
  }
  pl::LiveView& get() const {
    if (!view) throw pl::FailedPrecondition("LiveView: it is closed");
    return *view;
  }
};

}  // namespace

void bind_live(Module& m) {
  nb::class_<Live>(m, "LiveView")
      .def(
          "__init__",
          [](Live* self, const std::string& name, double every) {
            if (!(every >= 0 && every < 1e6)) throw nb::value_error("LiveView: every is a number of seconds");
            const auto interval = std::chrono::milliseconds(static_cast<std::int64_t>(every * 1000));
            new (self) Live(unlocked(
                [&] { return std::make_unique<pl::LiveView>(pl::LiveOptions{.name = name, .every = interval}); }));
          },
          nb::arg("name") = "", nb::arg("every") = 1.0,
          nb::sig("def __init__(self, name: str = '', every: float = 1.0) -> None"))
      .def_prop_ro("file", [](const Live& live) { return live.get().file(); })
      .def(
          "publish",
          [](const Live& live) {
            unlocked([&] {
              live.get().publish();
              return 0;
            });
          },
          "Now, too; for programs that end soon.")
      .def("close", &Live::close)
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __enter__(self) -> LiveView"))
      .def(
          "__exit__", [](Live& live, const nb::args&) { live.close(); },
          nb::sig("def __exit__(self, *args: object) -> None"));
}

}  // namespace binding
