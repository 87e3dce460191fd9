// Devices and settings: pl.config.
#include <fmt/format.h>

#include "common.h"

namespace binding {
namespace {

void bind_devices(Module& m) {
  nb::class_<pl::PhysicalDevice>(m, "PhysicalDevice")
      .def_ro("name", &pl::PhysicalDevice::name)
      .def_ro("type", &pl::PhysicalDevice::type)
      .def_prop_ro("device_type", [](const pl::PhysicalDevice& d) { return d.type; })
      .def_ro("memory_bytes", &pl::PhysicalDevice::memory_bytes)
      .def("__eq__", [](const pl::PhysicalDevice& a, const pl::PhysicalDevice& b) { return a == b; })
      .def("__hash__", [](const pl::PhysicalDevice& d) { return std::hash<std::string>{}(d.name); })
      .def("__repr__", [](const pl::PhysicalDevice& d) {
        return fmt::format("PhysicalDevice(name='{}', memory='{}')", d.name, pl::format_bytes(d.memory_bytes));
      });
  nb::class_<pl::LogicalDevice>(m, "LogicalDevice")
      .def_ro("name", &pl::LogicalDevice::name)
      .def_ro("type", &pl::LogicalDevice::type)
      .def_prop_ro("device_type", [](const pl::LogicalDevice& d) { return d.type; })
      .def_ro("memory_limit", &pl::LogicalDevice::memory_limit)
      .def_ro("physical_device", &pl::LogicalDevice::physical_device)
      .def("__repr__", [](const pl::LogicalDevice& d) {
        return fmt::format("LogicalDevice(name='{}', memory_limit='{}')", d.name, pl::format_bytes(d.memory_limit));
      });
  nb::class_<pl::LogicalDeviceConfiguration>(m, "LogicalDeviceConfiguration")
      .def(
          "__init__",
          [](pl::LogicalDeviceConfiguration* self, nb::handle limit) {
            new (self) pl::LogicalDeviceConfiguration{optional_bytes(limit).value_or(0)};
          },
          nb::arg("memory_limit").none() = nb::none(),
          nb::sig("def __init__(self, memory_limit: str | int | None = None) -> None"))
      .def_ro("memory_limit", &pl::LogicalDeviceConfiguration::memory_limit)
      .def("__eq__",
           [](const pl::LogicalDeviceConfiguration& a, const pl::LogicalDeviceConfiguration& b) { return a == b; })
      .def("__repr__", [](const pl::LogicalDeviceConfiguration& c) {
        return fmt::format("LogicalDeviceConfiguration(memory_limit={})", c.memory_limit);
      });
  m.def(
      "list_physical_devices", [](const std::string& type) { return pl::config::list_physical_devices(type); },
      nb::arg("device_type") = "");
  m.def(
      "list_logical_devices", [](const std::string& type) { return pl::config::list_logical_devices(type); },
      nb::arg("device_type") = "");
  m.def(
      "set_visible_devices",
      [](nb::handle devices, const std::string& type) {
        std::vector<pl::PhysicalDevice> all;
        if (PyList_Check(devices.ptr()) || PyTuple_Check(devices.ptr()))
          all = nb::cast<std::vector<pl::PhysicalDevice>>(devices);
        else
          all.push_back(nb::cast<pl::PhysicalDevice>(devices));
        pl::config::set_visible_devices(all, type);
      },
      nb::arg("devices"), nb::arg("device_type") = "",
      nb::sig("def set_visible_devices(devices: PhysicalDevice | typing.Sequence[PhysicalDevice], device_type: str = "
              "'') -> None"));
  m.def(
      "get_visible_devices", [](const std::string& type) { return pl::config::get_visible_devices(type); },
      nb::arg("device_type") = "");
  m.def("set_logical_device_configuration", &pl::config::set_logical_device_configuration, nb::arg("device"),
        nb::arg("logical_devices"));
  m.def("get_logical_device_configuration", &pl::config::get_logical_device_configuration, nb::arg("device"));
  m.def(
      "get_memory_info",
      [](const std::string& device) {
        const auto info = pl::config::get_memory_info(device);
        nb::dict row;
        row["current"] = info.current;
        row["peak"] = info.peak;
        return row;
      },
      nb::arg("device"), nb::sig("def get_memory_info(device: str) -> dict[str, int]"));
}

void bind_settings(Module& m) {
  m.def("set_memory_growth", &pl::config::set_memory_growth, nb::arg("device"), nb::arg("enable"));
  m.def("get_memory_growth", &pl::config::get_memory_growth, nb::arg("device"));
  m.def("set_memory_fraction", &pl::config::set_memory_fraction, nb::arg("device"), nb::arg("fraction"));
  m.def("get_memory_fraction", &pl::config::get_memory_fraction, nb::arg("device"));
  m.def("set_lazy_allocation", &pl::config::set_lazy_allocation, nb::arg("enable"));
  m.def("get_lazy_allocation", &pl::config::get_lazy_allocation);
  m.def("set_deferred_release", &pl::config::set_deferred_release, nb::arg("enable"));
  m.def("get_deferred_release", &pl::config::get_deferred_release);
  m.def("set_threads", &pl::config::set_threads, nb::arg("threads"));
  m.def("get_threads", &pl::config::get_threads);
  m.def("set_seed", &pl::config::set_seed, nb::arg("seed"));
  m.def("get_seed", &pl::config::get_seed);
  m.def(
      "set_log_level", [](const std::string& level) { pl::config::set_log_level(level); }, nb::arg("level"));
  m.def("get_log_level", &pl::config::get_log_level);
  m.def(
      "reset_for_testing",
      [] {
        unlocked([] {
          pl::config::reset_for_testing();
          return 0;
        });
      },
      "Forgets devices and settings, as if the process had just begun; refuses while tensors live.");
}

}  // namespace

void bind_config(Module& m) {
  Module config = m.def_submodule("config", "Which devices there are, how much memory each may take, and how.");
  bind_devices(config);
  bind_settings(config);
}

}  // namespace binding
