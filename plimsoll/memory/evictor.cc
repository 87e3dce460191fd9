#include "plimsoll/memory/evictor.h"

#include <atomic>

#include "plimsoll/base/error.h"

namespace plimsoll::internal {
namespace {

constinit std::atomic<EvictorFactory> the_factory{nullptr};

}  // namespace

Evictor::~Evictor() = default;

void set_evictor_factory(EvictorFactory factory) noexcept { the_factory.store(factory, std::memory_order_release); }

std::shared_ptr<Evictor> make_evictor(const EvictorOptions& options) {
  const EvictorFactory make = the_factory.load(std::memory_order_acquire);
  if (!make)
    throw FailedPrecondition(
        "Budget: .evict needs the tensor layer, which is not part of this program or has not begun; link the whole "
        "library, or leave .evict out");
  return make(options);
}

}  // namespace plimsoll::internal
