// What a program asks about memory: memory(), statistics, who holds what, growth, leaks, recordings and reports.
#include <fmt/format.h>
#include <nanobind/stl/filesystem.h>

#include <sstream>

#include "exchange.h"
#include "scopes.h"

namespace binding {
namespace {

struct Alerting {
  explicit Alerting(pl::MemoryAlertHandle h) : handle(std::move(h)) {}
  Alerting(Alerting&&) = default;
  ~Alerting() {
    const nb::gil_scoped_release release;  // It waits for a callback that runs.
    handle = pl::MemoryAlertHandle();
  }
  pl::MemoryAlertHandle handle;
};

// A recording, as a context manager.
struct Recording {
  pl::TraceOptions options;
  std::unique_ptr<pl::TraceRecorder> recorder;
};

void bind_counts(Module& m) {
  nb::class_<pl::MemoryInfo>(m, "MemoryInfo")
      .def_ro("num_tensors", &pl::MemoryInfo::num_tensors)
      .def_ro("num_data_buffers", &pl::MemoryInfo::num_data_buffers)
      .def_ro("num_bytes", &pl::MemoryInfo::num_bytes)
      .def("__repr__", [](const pl::MemoryInfo& info) {
        return fmt::format("MemoryInfo(num_tensors={}, num_data_buffers={}, num_bytes={})", info.num_tensors,
                           info.num_data_buffers, info.num_bytes);
      });
  m.def("memory", &pl::memory,
        ">>> before = pl.memory().num_tensors\n>>> x = pl.ones(3)\n>>> pl.memory().num_tensors - before\n1");
  nb::class_<pl::MemoryStats>(m, "MemoryStats")
      .def_ro("bytes_in_use", &pl::MemoryStats::bytes_in_use)
      .def_ro("peak_bytes_in_use", &pl::MemoryStats::peak_bytes_in_use)
      .def_ro("bytes_reserved", &pl::MemoryStats::bytes_reserved)
      .def_ro("peak_bytes_reserved", &pl::MemoryStats::peak_bytes_reserved)
      .def_ro("bytes_limit", &pl::MemoryStats::bytes_limit)
      .def_ro("largest_alloc_bytes", &pl::MemoryStats::largest_alloc_bytes)
      .def_ro("largest_free_block_bytes", &pl::MemoryStats::largest_free_block_bytes)
      .def_ro("num_allocs", &pl::MemoryStats::num_allocs)
      .def_ro("num_ooms", &pl::MemoryStats::num_ooms)
      .def_prop_ro("fragmentation", &pl::MemoryStats::fragmentation);
  m.def(
      "memory_stats", [](const std::string& device) { return pl::memory_stats(device); }, nb::arg("device") = "");
  m.def(
      "reset_memory_stats", [](const std::string& device) { pl::reset_memory_stats(device); }, nb::arg("device") = "");
  m.def("trim", [] { return unlocked([] { return pl::trim(); }); });
  m.def("collect_garbage", [] {
    unlocked([] {
      pl::collect_garbage();
      return 0;
    });
  });
  nb::class_<pl::LiveTensor>(m, "LiveTensor")
      .def_ro("id", &pl::LiveTensor::id)
      .def_ro("name", &pl::LiveTensor::name)
      .def_ro("op", &pl::LiveTensor::op)
      .def_ro("scope", &pl::LiveTensor::scope)
      .def_ro("bytes", &pl::LiveTensor::bytes)
      .def_ro("category", &pl::LiveTensor::category)
      .def_ro("step", &pl::LiveTensor::step)
      .def_ro("site", &pl::LiveTensor::site)
      .def_prop_ro("shape", [](const pl::LiveTensor& t) { return wrap_shape(t.shape); })
      .def_prop_ro("dtype", [](const pl::LiveTensor& t) { return wrap_dtype(t.dtype); })
      .def("__repr__", [](const pl::LiveTensor& t) {
        return fmt::format("<LiveTensor {} {} {}: {}{}>", t.op, t.shape.to_tuple_string(), dtype_name(t.dtype),
                           pl::format_bytes(t.bytes), t.site.empty() ? "" : ", " + t.site);
      });
  m.def(
      "live_tensors", [] { return unlocked([] { return pl::live_tensors(); }); },
      nb::sig("def live_tensors() -> list[LiveTensor]"));
}

void bind_questions(Module& m) {
  nb::class_<pl::Holders>(m, "Holders")
      .def("paths", &pl::Holders::paths, "One for each holder, from the tensor outwards.")
      .def("__str__", &pl::Holders::to_string)
      .def("__repr__", &pl::Holders::to_string)
      .def("to_svg", &pl::Holders::to_svg)
      .def("to_dot", &pl::Holders::to_dot)
      .def("_repr_svg_", &pl::Holders::to_svg)
      .def("write_svg", &pl::Holders::write_svg, nb::arg("path"))
      .def("write_dot", &pl::Holders::write_dot, nb::arg("path"));
  m.def(
      "who_holds",
      [](nb::handle x) {
        const auto tensor = tensor_of(x);
        if (!tensor) throw nb::type_error("who_holds: of a tensor or a variable");
        return unlocked([&] { return pl::who_holds(*tensor); });
      },
      nb::arg("x"), nb::sig("def who_holds(x: Tensor | Variable) -> Holders"));
  nb::class_<pl::GrowthRow>(m, "GrowthRow")
      .def_ro("op", &pl::GrowthRow::op)
      .def_ro("scope", &pl::GrowthRow::scope)
      .def_ro("site", &pl::GrowthRow::site)
      .def_ro("count", &pl::GrowthRow::count)
      .def_ro("bytes", &pl::GrowthRow::bytes)
      .def("__repr__", [](const pl::GrowthRow& r) {
        return fmt::format("<GrowthRow {} {}: +{}, {} bytes>", r.op, r.site, r.count, r.bytes);
      });
  nb::class_<pl::Growth>(
      m, "Growth",
      "What there is more of than at the last look: how a leak is found in a running loop.\n\n>>> growth = "
      "pl.Growth()\n>>> held = [pl.ones(256)]\n>>> [(row.op, row.bytes) for row in growth.take()]\n[('ones', 1024)]")
      .def(nb::init<>())
      .def(
          "take", [](pl::Growth& g) { return unlocked([&] { return g.take(); }); },
          nb::sig("def take(self) -> list[GrowthRow]"), "Looks; most bytes first.")
      .def(
          "show",
          [](pl::Growth& g) {
            std::ostringstream out;
            auto rows = g.show(out);
            nb::print(out.str().c_str(), nb::none());
            return rows;
          },
          nb::sig("def show(self) -> list[GrowthRow]"), "The same, and prints it.");
  nb::class_<pl::LeakCheck>(m, "LeakCheck",
                            "Finds tensors that were made since and should be gone; as a context manager it raises "
                            "Leak.\n\n>>> with pl.LeakCheck():\n...     y = pl.ones(3).sum().item()")
      .def(nb::init<>())
      .def("leaked", &pl::LeakCheck::leaked)
      .def("expect_none", &pl::LeakCheck::expect_none, "Raises Leak, which lists them, when there are some.")
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __enter__(self) -> LeakCheck"))
      .def(
          "__exit__",
          [](const pl::LeakCheck& check, nb::handle type, nb::handle, nb::handle) {
            if (type.is_none()) check.expect_none();
          },
          nb::arg("type").none(), nb::arg("value").none(), nb::arg("traceback").none());
}

void bind_alerts(Module& m) {
  nb::class_<pl::MemoryAlert>(m, "MemoryAlert")
      .def_ro("device", &pl::MemoryAlert::device)
      .def_ro("budget", &pl::MemoryAlert::budget)
      .def_ro("bytes_in_use", &pl::MemoryAlert::bytes_in_use)
      .def_ro("bytes_limit", &pl::MemoryAlert::bytes_limit)
      .def_ro("fraction", &pl::MemoryAlert::fraction);
  nb::class_<Alerting>(m, "AlertHandle")
      .def("close",
           [](Alerting& alerting) {
             unlocked([&] {
               alerting.handle = pl::MemoryAlertHandle();
               return 0;
             });
           })
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __enter__(self) -> AlertHandle"))
      .def(
          "__exit__", [](nb::handle self, const nb::args&) { self.attr("close")(); },
          nb::sig("def __exit__(self, *args: object) -> None"));
  m.def(
      "on_memory_alert",
      [](double fraction, nb::object callback) {
        return alert_handle(pl::on_memory_alert(fraction, alert_function(callback)));
      },
      nb::arg("fraction"), nb::arg("callback"),
      nb::sig("def on_memory_alert(fraction: float, callback: typing.Callable[[MemoryAlert], object]) -> AlertHandle"));
}

void bind_recordings(Module& m) {
  nb::class_<Recording>(m, "Recording")
      .def(
          "__enter__",
          [](nb::handle self) {
            Recording& recording = nb::cast<Recording&>(self);
            recording.recorder = std::make_unique<pl::TraceRecorder>(recording.options);
            return nb::borrow(self);
          },
          nb::sig("def __enter__(self) -> Recording"))
      .def(
          "__exit__",
          [](Recording& recording, const nb::args&) {
            if (!recording.recorder) return;
            auto ending = std::move(recording.recorder);
            unlocked([&] {
              ending->finish();
              return 0;
            });
          },
          nb::sig("def __exit__(self, *args: object) -> None"))
      .def_prop_ro("path", [](const Recording& recording) { return recording.options.path; });
  m.def(
      "record",
      [](const std::filesystem::path& path, nb::handle max_bytes) {
        Recording recording;
        recording.options.path = path;
        if (!max_bytes.is_none()) recording.options.max_bytes = to_bytes(max_bytes);
        return recording;
      },
      nb::arg("path"), nb::arg("max_bytes").none() = nb::none(),
      nb::sig("def record(path: str | os.PathLike[str], max_bytes: str | int | None = None) -> Recording"));
  m.def(
      "trace_step", [](std::uint64_t number) { pl::trace_step(number); }, nb::arg("number"));
  m.def(
      "trace_phase", [](const std::string& name) { pl::trace_phase(name); }, nb::arg("name"));
}

void bind_reports(Module& m) {
  m.def(
      "write_report",
      [](const std::filesystem::path& trace, const std::filesystem::path& html) {
        unlocked([&] {
          pl::write_report(trace, html);
          return 0;
        });
      },
      nb::arg("trace"), nb::arg("html"), "One offline page that shows a recording.");
  m.def("has_report_page", &pl::has_report_page);
  m.def(
      "findings_of",
      [](const std::filesystem::path& trace) {
        const auto findings = unlocked([&] {
          const pl::TraceHistory history = pl::read_trace_history(trace);
          return pl::diagnose(history, pl::summarize(history));
        });
        nb::list rows;
        for (const pl::Finding& each : findings) {
          nb::dict row;
          row["kind"] = each.kind;
          row["level"] = pl::finding_level_name(each.level);
          row["title"] = each.title;
          row["evidence"] = each.evidence;
          row["remedy"] = each.remedy;
          row["bytes"] = each.bytes;
          rows.append(row);
        }
        return rows;
      },
      nb::arg("trace"), nb::sig("def findings_of(trace: str | os.PathLike[str]) -> list[dict[str, object]]"));
  m.def(
      "export_trace",
      [](const std::filesystem::path& trace, const std::filesystem::path& out, const std::string& format,
         const std::string& at, const std::string& steps) {
        unlocked([&] {
          pl::export_trace(trace, out, {.format = format, .at = at, .steps = steps});
          return 0;
        });
      },
      nb::arg("trace"), nb::arg("out"), nb::arg("format") = "pytorch", nb::arg("at") = "", nb::arg("steps") = "");
  m.def(
      "process_memory",
      [] {
        const pl::ProcessMemory now = pl::process_memory();
        nb::dict row;
        row["resident"] = now.resident;
        row["peak_resident"] = now.peak_resident;
        row["anonymous"] = now.anonymous;
        row["threads"] = now.threads;
        return row;
      },
      nb::sig("def process_memory() -> dict[str, int]"));
  m.def("resident_parts", [] { return pl::resident_parts().to_string(); });
}

}  // namespace

SharedObject::SharedObject(nb::object object)
    : object_(new nb::object(std::move(object)), [](nb::object* held) { return_to_python([held] { delete held; }); }) {}

std::function<void(const pl::MemoryAlert&)> alert_function(nb::object callback) {
  return [callback = SharedObject(std::move(callback))](const pl::MemoryAlert& alert) {
    with_python([&] {
      callback.get()(alert);
      return 0;
    });
  };
}

nb::object alert_handle(pl::MemoryAlertHandle handle) { return nb::cast(Alerting(std::move(handle))); }

void bind_memory(Module& m) {
  bind_counts(m);
  bind_questions(m);
  bind_alerts(m);
  bind_recordings(m);
  bind_reports(m);
}

}  // namespace binding
