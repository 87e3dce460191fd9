// The far device, FAR:0: memory that nobody may look at, for tests on every machine.
//
//   PLIMSOLL_TEST_DEVICE=FAR build/ops_test            // FAR:0 is the default device
//   PLIMSOLL_TEST_DEVICE=FAR_STAGED build/ops_test     // and every op is a fallback: operands are copied, see run_on.h
//
// Its addresses have no access rights: whoever dereferences one that was not asked for by HostRead, HostWrite or an
// op's run faults at once. The bytes are in a memory file that is mapped elsewhere, where the backend, and the host's
// kernels unless it is staged, find them. So it finds every place that takes a device's address for the host's.
#pragma once

#include "plimsoll/device/device_kind.h"

namespace plimsoll::internal {

DeviceKind far_kind(bool staged);

}  // namespace plimsoll::internal
