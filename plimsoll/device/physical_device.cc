#include "plimsoll/device/physical_device.h"

#include "plimsoll/memory/system_memory.h"

namespace plimsoll {

std::vector<PhysicalDevice> find_physical_devices() { return {{"CPU:0", "CPU", read_system_memory().capacity()}}; }

}  // namespace plimsoll
