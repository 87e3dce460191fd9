// The far device, FAR:0: memory that the host must not access, for tests on every machine.
//
//   PLIMSOLL_TEST_DEVICE=FAR build/ops_test            // FAR:0 is the default device
//   PLIMSOLL_TEST_DEVICE=FAR_STAGED build/ops_test     // and every op is a fallback: operands are copied, see run_on.h
//
// Its addresses have no access rights: code that dereferences one without HostRead, HostWrite or an op's run faults at
// once. The bytes are in a memory file that is mapped elsewhere, where the backend, and the host's kernels unless it is
// staged, find them. So it finds every place that mistakes a device's address for the host's.
#pragma once

#include "plimsoll/device/device_kind.h"

namespace plimsoll::internal {

DeviceKind far_kind(bool staged);

}  // namespace plimsoll::internal
