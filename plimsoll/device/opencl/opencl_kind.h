// OpenCL devices: "GPU:n" for graphics processors, "OPENCL:n" for others, such as PoCL on this machine's processor.
//
//   plimsoll devices                         # what was found, and why not more
//   PLIMSOLL_VISIBLE_DEVICES=OPENCL:0 ./trainer
//
// Limits are ours: drivers hand out more memory than there is. A device's memory comes in segments (segments.h), and
// its addresses are numbers that nobody can dereference.
#pragma once

#include "plimsoll/device/device_kind.h"

namespace plimsoll::internal {

DeviceKind opencl_kind();

}  // namespace plimsoll::internal
