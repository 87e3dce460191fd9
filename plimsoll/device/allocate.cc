#include "plimsoll/device/allocate.h"

#include <fmt/format.h>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"
#include "plimsoll/base/names.h"
#include "plimsoll/device/runtime.h"

namespace plimsoll {

Block allocate(std::size_t bytes, const AllocateOptions& options) {
  Arena& arena = Runtime::instance().device(options.device).arena();
  BlockLabel label;
  if (!options.tag.empty()) label.op = intern(options.tag);
  return arena.allocate(bytes, kDefaultAlignment, label);
}

void deallocate(const Block& block) {
  if (!block) return;
  if (const Runtime::Devices* devices = Runtime::instance().started_devices())
    for (const auto& device : *devices)
      if (block.owner() == &device->arena()) return device->arena().deallocate(block);
  throw InvalidArgument(
      fmt::format("deallocate: no device owns the block of {} at {}; return it to the resource it came from",
                  format_bytes_exactly(block.size()), block.data()));
}

OwnedBlock::~OwnedBlock() {
  try {
    deallocate(block_);
  } catch (const Error& error) {  // A destructor must not throw.
    log_message(LogLevel::error, error.what());
  }
}

}  // namespace plimsoll
