#include "plimsoll/memory/evictor.h"

#include <atomic>

namespace plimsoll {
namespace {

constinit std::atomic<EvictorFactory> the_factory{nullptr};

}  // namespace

Evictor::~Evictor() = default;

void set_evictor_factory(EvictorFactory factory) noexcept { the_factory.store(factory, std::memory_order_release); }

std::shared_ptr<Evictor> make_evictor(const EvictorOptions& options) {
  const EvictorFactory make = the_factory.load(std::memory_order_acquire);
  return make ? make(options) : nullptr;
}

}  // namespace plimsoll
