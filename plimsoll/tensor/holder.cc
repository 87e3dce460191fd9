#include "plimsoll/tensor/holder.h"

#include <mutex>

#include "plimsoll/memory/thread_memory.h"

namespace plimsoll {
namespace {

std::mutex mutex;
Holder* first = nullptr;

}  // namespace

Holder::~Holder() = default;

void Holder::enrol() {
  const std::lock_guard lock(mutex);
  next_ = first;
  if (next_) next_->previous_ = this;
  first = this;
}

void Holder::retire() noexcept {
  const std::lock_guard lock(mutex);
  (previous_ ? previous_->next_ : first) = next_;
  if (next_) next_->previous_ = previous_;
}

void Holder::for_each(FunctionRef<void(const Holder&)> f) {
  const std::lock_guard lock(mutex);
  const StopThreads stopped;
  for (const Holder* holder = first; holder; holder = holder->next_) f(*holder);
}

}  // namespace plimsoll
