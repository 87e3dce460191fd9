#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/cli/command.h"
#include "plimsoll/cli/print_document.h"
#include "plimsoll/cli/table.h"
#include "plimsoll/device/config.h"
#include "plimsoll/device/device_kind.h"
#include "plimsoll/device/environment.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/memory/pages/host_page_source.h"
#include "plimsoll/memory/system_memory.h"

namespace plimsoll::internal {
namespace {

std::size_t max_map_count() {
  std::size_t count = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> count;
  return count;
}

// Finds the limit before the devices start: their addresses count against RLIMIT_AS.
struct Report {
  SystemMemory system = read_system_memory();
  DefaultLimit limit = default_memory_limit(system);
  std::vector<PhysicalDevice> physical = config::list_physical_devices();
  const Runtime::Devices& logical = Runtime::instance().devices();
  std::vector<EnvironmentVariable> environment = environment_variables();
};

// The kinds of devices that were searched for, and what was found or is missing.
std::vector<std::pair<std::string, std::string>> kind_notes() {
  std::vector<std::pair<std::string, std::string>> notes;
  bool has_opencl = false;
  for (const DeviceKind& kind : device_kinds()) {
    has_opencl |= kind.name == "OpenCL";
    if (kind.note) notes.emplace_back(kind.name, kind.note());
  }
  if (!has_opencl)
    notes.emplace_back(
        "OpenCL", "this program was built without it (PLIMSOLL_OPENCL was OFF, or its headers were not installed)");
  return notes;
}

std::string group_note(const MemoryGroup& group) {
  return fmt::format("limit {}, used {} ({} reclaimable)", format_bytes(group.limit), format_bytes(group.used),
                     format_bytes(group.reclaimable));
}

// Explains the candidate with this number; they are in the order of default_memory_limit().
std::string note_of(const SystemMemory& system, std::size_t number) {
  if (number == 0) return fmt::format("of {} in the machine", format_bytes(system.total));
  if (number <= system.groups.size()) return group_note(system.groups[number - 1]);
  return fmt::format("limit {}, used {}", format_bytes(system.address_space_limit), format_bytes(system.address_space));
}

void print_json(const Report& report) {
  nlohmann::ordered_json document;
  document["physical_devices"] = nlohmann::ordered_json::array();
  for (const PhysicalDevice& device : report.physical)
    document["physical_devices"].push_back(
        {{"name", device.name}, {"type", device.type}, {"memory_bytes", device.memory_bytes}});
  document["logical_devices"] = nlohmann::ordered_json::array();
  for (const auto& device : report.logical) {
    const LogicalDevice& logical = device->properties();
    document["logical_devices"].push_back({{"name", logical.name},
                                           {"type", logical.type},
                                           {"physical_device", logical.physical_device},
                                           {"memory_limit", logical.memory_limit},
                                           {"growth", device->growth()},
                                           {"reserved_addresses", device->arena().range_bytes()},
                                           {"page_mover", device->arena().mover()},
                                           {"note", device->arena().note()}});
  }
  document["kinds"] = nlohmann::ordered_json::array();
  for (const auto& [kind, note] : kind_notes()) document["kinds"].push_back({{"kind", kind}, {"note", note}});
  document["default_limit"] = {{"bytes", report.limit.bytes}, {"from", report.limit.from}};
  document["default_limit"]["candidates"] = nlohmann::ordered_json::array();
  for (const LimitCandidate& candidate : report.limit.candidates)
    document["default_limit"]["candidates"].push_back(
        {{"from", candidate.from}, {"left", candidate.left}, {"bytes", candidate.bytes}});
  document["page_bytes"] = HostPageSource().page_bytes();
  document["max_map_count"] = max_map_count();
  document["threads"] = num_threads();
  document["environment"] = nlohmann::ordered_json::array();
  for (const EnvironmentVariable& variable : report.environment)
    document["environment"].push_back(
        {{"name", variable.name}, {"value", variable.value}, {"in_force", variable.in_force}});
  print_document(document);
}

void print_text(const Report& report) {
  Table physical({"physical device", "memory"});
  for (const PhysicalDevice& device : report.physical) physical.add({device.name, format_bytes(device.memory_bytes)});
  Table logical({"logical device", "limit", "growth", "addresses", "page mover"});
  for (const auto& device : report.logical)
    logical.add({device->name(), format_bytes(device->properties().memory_limit), device->growth() ? "on" : "off",
                 format_bytes(device->arena().range_bytes()), device->arena().mover()});
  Table limits({"limited by", "left", "less a margin", ""});
  for (std::size_t i = 0; i < report.limit.candidates.size(); ++i) {
    const LimitCandidate& candidate = report.limit.candidates[i];
    limits.add(
        {candidate.from, format_bytes(candidate.left), format_bytes(candidate.bytes), note_of(report.system, i)});
  }
  std::printf("%s\n%s\n%s\n", physical.text().c_str(), logical.text().c_str(), limits.text().c_str());
  for (const auto& device : report.logical)
    if (const std::string note = device->arena().note(); !note.empty())
      std::printf("%s: %s.\n", device->name().c_str(), note.c_str());
  std::printf("Default limit: %s, from %s.\n", format_bytes_exactly(report.limit.bytes).c_str(),
              report.limit.from.c_str());
  for (const auto& [kind, note] : kind_notes()) std::printf("%s: %s.\n", kind.c_str(), note.c_str());
  std::printf("Pages of %zu bytes; at most %zu mappings per process (vm.max_map_count); %d threads.\n",
              HostPageSource().page_bytes(), max_map_count(), num_threads());
  if (report.environment.empty()) return;
  Table environment({"environment", "value", "in force"});
  for (const EnvironmentVariable& variable : report.environment)
    environment.add({variable.name, variable.value, variable.in_force ? "yes" : "no"});
  std::printf("\n%s", environment.text().c_str());
}

}  // namespace

void add_devices_command(CommandLine& line) {
  auto json = std::make_shared<bool>(false);
  Command command(line, "devices", "Show devices, their memory, and how much of it may be used by default");
  command.flag("--json", *json, "Print one JSON document");
  command.run([json] {
    const Report report;
    *json ? print_json(report) : print_text(report);
    std::fflush(stdout);
  });
}

}  // namespace plimsoll::internal
