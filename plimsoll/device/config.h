// config: which devices there are, how much memory each may take, and how.
//
//   const PhysicalDevice cpu = config::list_physical_devices("CPU").at(0);
//   config::set_logical_device_configuration(cpu, {{.memory_limit = 1_GiB}, {.memory_limit = 512_MiB}});
//   config::set_memory_growth(cpu, true);              // together with the limits
//   config::list_logical_devices("CPU");               // CPU:0, CPU:1; from here on the settings are fixed
//
// Setters of devices and memory check their arguments first (InvalidArgument), then throw FailedPrecondition once the
// runtime has started: at the first allocation, list_logical_devices() or query of a device's memory. Setting the value
// already in force is never an error. A call that throws has changed nothing. Calls override environment variables
// (environment.h). A type is "CPU", "GPU" or "OPENCL" in any case; "" means all.
// Thread safety: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/device/physical_device.h"

namespace plimsoll::config {

// What the machine has. Does not start the runtime.
PLIMSOLL_API std::vector<PhysicalDevice> list_physical_devices(std::string_view type = "");

// Which of them (with that type) are used. CPU:0 always is, and stays the default device: other devices need it for
// what they cannot do themselves. InvalidArgument for a device that is unknown or of another type, and for type "CPU"
// without CPU:0.
PLIMSOLL_API void set_visible_devices(const std::vector<PhysicalDevice>& devices, std::string_view type = "");
PLIMSOLL_API std::vector<PhysicalDevice> get_visible_devices(std::string_view type = "");

// With growth, pages are taken as they are needed, 2 MiB at first, and pages of holes are reused before new ones are
// taken. Without it (the default), the whole limit is available at once. The limit holds either way.
// The environment's PLIMSOLL_FORCE_ALLOW_GROWTH ("true" or "false"; TF_FORCE_GPU_ALLOW_GROWTH when it is not set)
// overrides this setting. get_memory_growth() returns what is or will be in force.
PLIMSOLL_API void set_memory_growth(const PhysicalDevice& device, bool enable);
PLIMSOLL_API bool get_memory_growth(const PhysicalDevice& device);

// The device's limit as a share of its memory_bytes, above 0 and up to 1; 0 restores the default. InvalidArgument
// when its logical devices have limits of their own. The default is default_memory_limit() at the start.
PLIMSOLL_API void set_memory_fraction(const PhysicalDevice& device, double fraction);
PLIMSOLL_API double get_memory_fraction(const PhysicalDevice& device);  // 0: not set.

// Splits the device into one logical device per entry, each with its own limit and memory; no entries restore a single
// one that takes all. InvalidArgument for a limit below a page (4 KiB) or above 16 TiB, more than 64 entries, or a
// limit beside a fraction. Limits may add up to more than there is; the start then logs a warning.
PLIMSOLL_API void set_logical_device_configuration(const PhysicalDevice& device,
                                                   const std::vector<LogicalDeviceConfiguration>& logical_devices);
PLIMSOLL_API std::vector<LogicalDeviceConfiguration> get_logical_device_configuration(const PhysicalDevice& device);

// The devices to work with. Starts the runtime.
PLIMSOLL_API std::vector<LogicalDevice> list_logical_devices(std::string_view type = "");

// Bytes in use on a logical device: now, and at most since the start or reset_memory_stats(). Starts the runtime.
// Throws InvalidArgument for text that is not a device name, NotFound, listing the existing ones, for an unknown
// device.
struct DeviceMemoryInfo {
  std::size_t current = 0;
  std::size_t peak = 0;
};
PLIMSOLL_API DeviceMemoryInfo get_memory_info(std::string_view device);

// Tensors take their storage at first use instead of when they are made.
PLIMSOLL_API void set_lazy_allocation(bool enable);
PLIMSOLL_API bool get_lazy_allocation();

// Deallocations are queued and take effect at safe points: collect_garbage(), trim(), pressure, the end of a thread.
PLIMSOLL_API void set_deferred_release(bool enable);
PLIMSOLL_API bool get_deferred_release();

// Our own records (memory_overhead()) count against each device's limit: pages and records together never exceed it.
// Records of tensors count for the first CPU device. Off by default: limits then bound the memory of blocks.
PLIMSOLL_API void set_charge_overhead(bool enable);
PLIMSOLL_API bool get_charge_overhead();

// These may change at any time.
PLIMSOLL_API void set_threads(int threads);  // For loops, the caller included: 1 to 1024 (InvalidArgument).
PLIMSOLL_API int get_threads();
PLIMSOLL_API void set_seed(std::uint64_t seed);        // For random numbers drawn without a seed of their own.
PLIMSOLL_API std::optional<std::uint64_t> get_seed();  // Empty: never set.
// For random number generators: a new version means to start over, even with the same seed.
struct SeedState {
  std::optional<std::uint64_t> seed;
  std::uint64_t version = 0;
};
PLIMSOLL_API SeedState seed_state();
PLIMSOLL_API void set_log_level(
    std::string_view level);  // "debug", "info", "warning", "error", "off" (InvalidArgument).
PLIMSOLL_API std::string get_log_level();

// Forgets devices and all of the settings above, as if the process had just begun. For tests: no other thread may use
// devices meanwhile, and resources from memory_resource() become invalid. FailedPrecondition while blocks or tensors
// live.
PLIMSOLL_API void reset_for_testing();

}  // namespace plimsoll::config
