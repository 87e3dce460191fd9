#include "plimsoll/tensor/tensor_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/runtime.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/holder.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

using Clock = std::chrono::steady_clock;
constexpr Origin kOrigin{.op = "pool", .category = Category::kInputs};
constexpr std::size_t kNone = SIZE_MAX;
constexpr auto kLookAgain = std::chrono::milliseconds(1);  // How often held buffers are checked.

// A thread that waits for a buffer.
struct Waiter {
  std::condition_variable granted;
  std::size_t buffer = kNone;
  Waiter* next = nullptr;
};

[[noreturn]] void refuse_ended() { throw FailedPrecondition("lease: it has ended; acquire another one"); }

}  // namespace

struct TensorPool::State final : Holder {
  State(const TensorPoolOptions& options, const Shape& sizes, Device& on);
  ~State() override { retire(); }

  std::string describe() const override { return "pool"; }
  void visit_held(Visit f) const override {
    for (const StorageRef& buffer : buffers) f(*buffer, "buffer");
  }

  std::size_t acquire(Clock::time_point until, bool wait);  // kNone when there was none in time.
  void give_back(std::size_t buffer) noexcept;
  void grant() noexcept;

  const Shape shape;
  const DType dtype;
  Device& device;
  std::vector<StorageRef> buffers;

  std::mutex mutex;               // Guards what follows.
  std::vector<std::size_t> free;  // Both have room for every buffer.
  std::vector<std::size_t> held;  // Their leases have ended, but something else refers to them.
  std::size_t peak = 0;
  std::size_t num_waiters = 0;
  Waiter* first = nullptr;
  Waiter* last = nullptr;

 private:
  void collect_held() noexcept;
  void remove(Waiter& waiter) noexcept;
};

TensorPool::State::State(const TensorPoolOptions& options, const Shape& sizes, Device& on)
    : shape(sizes), dtype(options.dtype), device(on) {
  const BlockLabel label = block_label(kOrigin, shape, dtype);
  std::size_t bytes;
  if (__builtin_mul_overflow(shape.size(), size_of(dtype), &bytes)) bytes = SIZE_MAX;  // Which is refused.
  for (std::size_t i = 0; i < options.capacity; ++i) buffers.push_back(Storage::take(device, bytes, label));
  held.reserve(buffers.size());
  free.reserve(buffers.size());
  for (std::size_t i = buffers.size(); i > 0; --i) free.push_back(i - 1);
  enrol();
}

void TensorPool::State::collect_held() noexcept {
  std::size_t kept = 0;
  for (const std::size_t buffer : held)
    if (buffers[buffer]->references() == 1)
      free.push_back(buffer);
    else
      held[kept++] = buffer;
  held.resize(kept);
}

// Hands free buffers to those who have waited longest.
void TensorPool::State::grant() noexcept {
  collect_held();
  while (first && !free.empty()) {
    Waiter& waiter = *first;
    remove(waiter);
    waiter.buffer = free.back();
    free.pop_back();
    waiter.granted.notify_one();
  }
  if (first && !held.empty()) first->granted.notify_one();  // It must check again by itself.
  peak = std::max(peak, buffers.size() - free.size());
}

void TensorPool::State::remove(Waiter& waiter) noexcept {
  Waiter* before = nullptr;
  for (Waiter* at = first; at != &waiter; at = at->next) before = at;
  (before ? before->next : first) = waiter.next;
  if (last == &waiter) last = before;
  --num_waiters;
}

std::size_t TensorPool::State::acquire(Clock::time_point until, bool wait) {
  Waiter self;
  std::unique_lock lock(mutex);
  (last ? last->next : first) = &self;
  last = &self;
  ++num_waiters;
  grant();
  while (wait && self.buffer == kNone && Clock::now() < until) {
    const auto look_again = held.empty() || first != &self ? until : std::min(until, Clock::now() + kLookAgain);
    if (look_again == Clock::time_point::max())
      self.granted.wait(lock);
    else
      self.granted.wait_until(lock, look_again);
    if (self.buffer == kNone) grant();
  }
  if (self.buffer == kNone) {
    remove(self);
    grant();  // Another waiter is first now.
  }
  return self.buffer;
}

void TensorPool::State::give_back(std::size_t buffer) noexcept {
  const std::lock_guard lock(mutex);
  held.push_back(buffer);
  grant();
}

TensorPool::TensorPool(const TensorPoolOptions& options) {
  const Shape shape = options.shape.is_set() ? options.shape : Shape::scalar();
  if (options.capacity == 0) throw InvalidArgument("TensorPool: the capacity is 0; give it at least 1");
  if (!shape.is_known())
    throw InvalidArgument(fmt::format("TensorPool: shape {} has unknown sizes; give every size", shape.to_string()));
  Device& device = options.device.empty() ? current_device() : Runtime::instance().device(options.device);
  state_ = std::make_shared<State>(options, shape, device);
}

TensorPool::~TensorPool() = default;

TensorPool::Lease TensorPool::acquire() { return {state_, state_->acquire(Clock::time_point::max(), true)}; }

std::optional<TensorPool::Lease> TensorPool::acquire_for(std::chrono::nanoseconds timeout) {
  const auto now = Clock::now();
  const auto until = timeout < Clock::time_point::max() - now ? now + timeout : Clock::time_point::max();
  const std::size_t buffer = state_->acquire(until, true);
  if (buffer == kNone) return std::nullopt;
  return Lease(state_, buffer);
}

std::optional<TensorPool::Lease> TensorPool::try_acquire() {
  const std::size_t buffer = state_->acquire({}, false);
  if (buffer == kNone) return std::nullopt;
  return Lease(state_, buffer);
}

std::size_t TensorPool::capacity() const noexcept { return state_->buffers.size(); }

std::size_t TensorPool::used() const {
  const std::lock_guard lock(state_->mutex);
  state_->grant();
  return capacity() - state_->free.size();
}

std::size_t TensorPool::peak() const {
  const std::lock_guard lock(state_->mutex);
  return state_->peak;
}

std::string TensorPool::report() const {
  const std::size_t bytes = state_->buffers[0]->bytes();
  const std::lock_guard lock(state_->mutex);
  state_->grant();
  return fmt::format(
      "pool of {} {} on {}: {} of {} tensors used ({} held after their leases), peak {}, {} waiting; {} "
      "in all, {} each",
      dtype_name(state_->dtype), state_->shape.to_string(), state_->device.name(), capacity() - state_->free.size(),
      capacity(), state_->held.size(), state_->peak, state_->num_waiters, format_bytes(bytes * capacity()),
      format_bytes(bytes));
}

TensorPool::Lease::Lease(std::shared_ptr<State> state, std::size_t buffer) : state_(std::move(state)), buffer_(buffer) {
  const OutsideTidyScopes outside;  // It ends with the lease, not with a scope.
  try {
    tensor_ = make_tensor_on(state_->buffers[buffer_], 0, state_->shape, state_->dtype, kOrigin);
  } catch (...) {
    state_->give_back(buffer_);
    throw;
  }
}

TensorPool::Lease::Lease(Lease&& other) noexcept
    : state_(std::move(other.state_)), buffer_(other.buffer_), tensor_(std::move(other.tensor_)) {}

TensorPool::Lease& TensorPool::Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  reset();
  state_ = std::move(other.state_);
  buffer_ = other.buffer_;
  tensor_ = std::move(other.tensor_);
  return *this;
}

TensorPool::Lease::~Lease() { reset(); }

void TensorPool::Lease::reset() noexcept {
  if (!state_) return;
  tensor_.dispose();
  tensor_ = {};
  std::exchange(state_, nullptr)->give_back(buffer_);
}

Tensor TensorPool::Lease::tensor() const {
  if (!state_) refuse_ended();
  return tensor_;
}

TensorView TensorPool::Lease::writable_view() const {
  if (!state_) refuse_ended();
  if (!state_->device.is_host())
    throw Unsupported(
        fmt::format("lease: the pool is on {}, whose memory cannot be written in place; lease a tensor of a "
                    "CPU device and move it with .to(\"{}\")",
                    state_->device.name(), state_->device.name()));
  Storage& buffer = *state_->buffers[buffer_];
  buffer.note_writer_outside();
  return {buffer.resident(), 0, state_->dtype, state_->shape};
}

}  // namespace plimsoll
