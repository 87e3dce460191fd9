// DeviceKind: one kind of device: how to find the devices of this machine, and how to start using one.
//
// A new kind is a folder under plimsoll/device with a DeviceBackend and a function that returns its DeviceKind, and one
// line in device_kind.cc. See docs/adding.md.
//
// Looking for devices may load a driver, so a kind is asked only when someone needs to know: for a list of devices, a
// device's name, PLIMSOLL_VISIBLE_DEVICES. The host is always there.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/api.h"
#include "plimsoll/device/backend.h"
#include "plimsoll/device/physical_device.h"

namespace plimsoll::internal {

struct DeviceKind {
  std::string name;                // "host".
  std::vector<std::string> types;  // Of its devices: {"CPU"}.
  // The devices of this machine, numbered from 0 for each type. Does not throw: note() reports what is missing.
  std::vector<PhysicalDevice> (*find)() = nullptr;
  // A backend for a part of this device's memory. Throws Error.
  std::unique_ptr<DeviceBackend> (*make)(const PhysicalDevice& device) = nullptr;
  // (optional) What was found and why not more, for people: one line. Looks for devices.
  std::string (*note)() = nullptr;
  bool waits_to_be_asked = false;  // Not looked for by a program that uses only others.
};

// All of them, the host's first unless a test put one before it.
PLIMSOLL_API const std::vector<DeviceKind>& device_kinds();

// From now on devices of these types are looked for: those of the kind that has `type`, or all for "".
PLIMSOLL_API void want_devices(std::string_view type);

PLIMSOLL_API void forget_wanted_devices();  // As if nobody had asked.
bool is_looked_for(const DeviceKind& kind);

// A backend for a device from find_physical_devices(). Throws NotFound, and what DeviceKind::make throws.
std::unique_ptr<DeviceBackend> make_backend(const std::string& physical_device);

}  // namespace plimsoll::internal
