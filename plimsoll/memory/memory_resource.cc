#include "plimsoll/memory/memory_resource.h"

namespace plimsoll {

MemoryResource::~MemoryResource() = default;

}  // namespace plimsoll
