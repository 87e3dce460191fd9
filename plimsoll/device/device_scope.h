// DeviceScope: the device on which this thread allocates when it names none.
//
//   { DeviceScope second("CPU:1"); Block block = allocate(1_MiB); }     // on CPU:1
//
// Scopes nest; the innermost one applies. Thread safety: a scope belongs to the thread that made it. Cost: a store.
#pragma once

#include <cstddef>
#include <string_view>

#include "plimsoll/base/api.h"

namespace plimsoll {

class PLIMSOLL_API DeviceScope {
 public:
  // Starts the runtime. Throws InvalidArgument or NotFound as Runtime::device.
  explicit DeviceScope(std::string_view device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

  static std::size_t current() noexcept;  // Position among the runtime's devices; 0 outside any scope.

 private:
  std::size_t before_;
};

}  // namespace plimsoll
