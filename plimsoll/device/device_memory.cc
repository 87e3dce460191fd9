#include "plimsoll/device/device_memory.h"

#include "plimsoll/device/runtime.h"

namespace plimsoll {
namespace {

Device& device_of(std::string_view name) { return Runtime::instance().device(name); }

}  // namespace

MemoryStats memory_stats(std::string_view device) { return device_of(device).arena().stats(); }
void reset_memory_stats(std::string_view device) { device_of(device).arena().reset_peaks(); }
std::size_t memory_overhead(std::string_view device) { return Runtime::instance().overhead_bytes(device_of(device)); }
std::pmr::memory_resource& memory_resource(std::string_view device) { return device_of(device).pmr_resource(); }

std::size_t trim() {
  std::size_t bytes = 0;
  if (const Runtime::Devices* devices = Runtime::instance().started_devices())
    for (const auto& device : *devices) bytes += device->trim();
  return bytes + Runtime::trim_tensors();
}

void collect_garbage() {
  if (const Runtime::Devices* devices = Runtime::instance().started_devices())
    for (const auto& device : *devices) device->arena().collect();
  Runtime::trim_tensors();
}

}  // namespace plimsoll
