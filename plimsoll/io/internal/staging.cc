#include "plimsoll/io/internal/staging.h"

#include <algorithm>

#include "plimsoll/base/bytes.h"
#include "plimsoll/device/device.h"
#include "plimsoll/memory/meter_center.h"
#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll::internal {

std::size_t staging_bytes(std::size_t wanted) {
  std::size_t limit = current_host_device().arena().limit();
  for (const Meter* meter = ThreadMemory::current().budget; meter; meter = meter->parent)
    limit = std::min(limit, meter->center->limit());
  return std::min({wanted, 16_MiB, std::max(limit / 16, 1_KiB)});
}

Staging::Staging(std::size_t wanted) {
  const std::size_t size = staging_bytes(wanted);
  BlockLabel label;
  label.op = "file staging";
  label.category = Category::kWorkspace;
  storage_ = Storage::take(current_host_device(), size, label);
  bytes_ = {static_cast<std::byte*>(storage_->resident()), size};
}

}  // namespace plimsoll::internal
