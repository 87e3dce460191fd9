#include "plimsoll/tensor/index_check.h"

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/movement.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {

void check_indices(const ConstTensorView& indices, const IndexRule& rule) {
  const std::int64_t bad = first_bad_index(indices, rule.size);
  if (bad < 0) [[likely]]
    return;
  const std::int64_t index =
      indices.dtype() == i32 ? indices.data<std::int32_t>()[bad] : indices.data<std::int64_t>()[bad];
  throw InvalidArgument(rule.text(rule, indices.shape(), bad, index));
}

void check_indices(const Tensor& indices, const IndexRule& rule) {
  if (is_symbolic(indices)) return;
  Device& device = device_of(indices);
  if (!device.is_host() && !device.backend().is_reachable()) [[unlikely]] {
    BytesLock lock;
    if (device.index_checks().defer(rule, indices.view(lock))) return;
  }
  check_indices(HostRead(indices).view(), rule);
}

}  // namespace plimsoll::internal
