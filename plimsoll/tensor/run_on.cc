#include "plimsoll/tensor/run_on.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "plimsoll/base/log.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/tensor/index_check.h"
#include "plimsoll/tensor/staging.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kAlignment = 64;
std::size_t rounded(std::size_t bytes) { return round_up(bytes, kAlignment); }

// Which input has the bytes of this output; as many as there are inputs: none.
std::size_t same_input(const OpRun& run, const TensorView& out) {
  std::size_t i = 0;
  while (i < run.in.size() && (run.in[i].bytes() != out.bytes() || run.in[i].nbytes() != out.nbytes())) ++i;
  return i;
}

std::size_t staging_bytes(const OpRun& run) {
  std::size_t bytes = rounded(run.scratch.size());
  for (const ConstTensorView& in : run.in) bytes += rounded(in.nbytes());
  for (const TensorView& out : run.out) bytes += rounded(out.nbytes());
  return bytes;
}

constexpr std::size_t kFew = 8;  // Operands that need no room of their own.

void log_fallback(const Device& device, const Op& op) noexcept {
  try {
    log_message(LogLevel::info,
                fmt::format("{}: has no kernel on {}; its operands are copied to the host, where it runs", op.name(),
                            device.name()));
  } catch (const std::exception&) {  // In the middle of a step, which must not fail.
  }
}

thread_local std::uint64_t thread_fallbacks = 0;

// Answers instead of running.
class KernelQuestion final : public KernelQueue {
 public:
  explicit KernelQuestion(KernelQueue& queue) : queue_(queue) {}
  bool run(const KernelCall& call) noexcept override { return call.fits() && queue_.has(call.kernel()); }
  bool has(std::string_view kernel) const noexcept override { return queue_.has(kernel); }
  std::size_t num_processors() const noexcept override { return queue_.num_processors(); }

 private:
  KernelQueue& queue_;
};

// Makes each call depend on a word.
class GuardedQueue final : public KernelQueue {
 public:
  GuardedQueue(KernelQueue& queue, std::uint32_t word) : queue_(queue), word_(word) {}
  bool run(const KernelCall& call) noexcept override {
    KernelCall guarded = call;
    return queue_.run(guarded.guard(word_));
  }
  bool has(std::string_view kernel) const noexcept override { return queue_.has(kernel); }
  std::size_t num_processors() const noexcept override { return queue_.num_processors(); }

 private:
  KernelQueue& queue_;
  const std::uint32_t word_;
};

}  // namespace

// The same operands where the host can access them. Takes no memory of the heap after make_room(): in the middle of a
// step there may be none.
struct HostRun::HereViews {
  HereViews(HostRun& room, const OpRun& run) {
    room.make_room(run);
    in = run.in.size() > kFew ? std::span(room.many_in_).first(run.in.size()) : std::span(few_in_).first(run.in.size());
    out = run.out.size() > kFew ? std::span(room.many_out_).first(run.out.size())
                                : std::span(few_out_).first(run.out.size());
  }
  void reach(const DeviceBackend& backend, const OpRun& run) {
    for (std::size_t i = 0; i < run.in.size(); ++i) {
      const ConstTensorView& view = run.in[i];
      in[i] = {view.base() ? backend.host_address(view.base()) : nullptr, view.offset(), view.dtype(), view.shape()};
    }
    for (std::size_t i = 0; i < run.out.size(); ++i) {
      const TensorView& view = run.out[i];
      out[i] = {view.base() ? backend.host_address(view.base()) : nullptr, view.offset(), view.dtype(), view.shape()};
    }
    if (!run.scratch.empty()) scratch = {backend.host_address(run.scratch.data()), run.scratch.size()};
  }
  OpRun run() const { return {in, out, scratch}; }

  std::span<ConstTensorView> in;
  std::span<TensorView> out;
  std::span<std::byte> scratch;

 private:
  std::array<ConstTensorView, kFew> few_in_;
  std::array<TensorView, kFew> few_out_;
};

void HostRun::make_room(const OpRun& run) {
  if (run.in.size() > kFew && run.in.size() > many_in_.size()) many_in_.resize(run.in.size());
  if (run.out.size() > kFew && run.out.size() > many_out_.size()) many_out_.resize(run.out.size());
}

std::uint64_t fallbacks_of_thread() noexcept { return thread_fallbacks; }

bool has_kernel(Device& device, const Op& op, const OpRun& run) noexcept {
  KernelQueue* const queue = device.backend().kernels();
  if (!queue) return false;
  KernelQuestion question(*queue);
  return op.launch(question, run);
}

void HostRun::prepare(Device& device, const Op& op, const OpRun& run) {
  if (device.is_host() || has_kernel(device, op, run)) return;
  make_room(run);
  if (device.backend().is_reachable()) return;
  bytes_ = std::max(bytes_, staging_bytes(run));
}

void HostRun::take() {
  if (bytes_ > 0 && !staged_) staged_ = take_staging(bytes_);
}

bool HostRun::launch(Device& device, const Op& op, const OpRun& run, std::uint32_t guard) {
  KernelQueue* const queue = device.is_host() ? nullptr : device.backend().kernels();
  if (!queue) return false;
  if (guard == KernelQueue::kNoWord) return op.launch(*queue, run);
  GuardedQueue guarded(*queue, guard);
  return op.launch(guarded, run);
}

void HostRun::run_here(Device& device, const Op& op, const OpRun& run) {
  if (device.is_host()) return op.run(run);
  if (!device.backend().is_reachable()) return fall_back(device, op, run);
  HereViews here(*this, run);
  here.reach(device.backend(), run);
  op.run(here.run());
}

void HostRun::check(Device& device, const Op& op, const OpRun& run) {
  if (device.is_host()) return op.check(run.in);
  if (device.backend().is_reachable()) {
    HereViews here(*this, run);
    here.reach(device.backend(), run);
    return op.check(here.in);
  }
  // Only integers are checked: labels and indices.
  const auto is_read = [](const ConstTensorView& in) {
    return (in.dtype() == i32 || in.dtype() == i64) && in.nbytes() > 0;
  };
  std::size_t bytes = 0;
  for (const ConstTensorView& in : run.in) bytes += is_read(in) ? rounded(in.nbytes()) : 0;
  const StorageRef staged = bytes > 0 ? take_staging(bytes) : StorageRef();
  std::vector<ConstTensorView> here;
  auto* to = staged ? static_cast<std::byte*>(staged->base()) : nullptr;
  for (const ConstTensorView& in : run.in) {
    here.emplace_back(is_read(in) ? to : nullptr, std::size_t{0}, in.dtype(), in.shape());
    if (!is_read(in)) continue;
    device.backend().copy_out(to, in.bytes(), in.nbytes());
    to += rounded(in.nbytes());
  }
  op.check(here);
}

void HostRun::fall_back(Device& device, const Op& op, const OpRun& run) {
  ++thread_fallbacks;
  DeviceBackend& backend = device.backend();
  if (backend.count_fallback(op.name())) log_fallback(device, op);
  StorageRef own;
  if (!staged_ || staged_->bytes() < staging_bytes(run)) own = take_staging(std::max(staging_bytes(run), kAlignment));
  auto* to = static_cast<std::byte*>((own ? own : staged_)->base());
  HereViews here(*this, run);
  for (std::size_t i = 0; i < run.in.size(); ++i) {
    const ConstTensorView& in = run.in[i];
    if (in.nbytes() > 0) backend.copy_out(to, in.bytes(), in.nbytes());
    here.in[i] = {to, 0, in.dtype(), in.shape()};
    to += rounded(in.nbytes());
  }
  for (std::size_t i = 0; i < run.out.size(); ++i) {
    const TensorView& out = run.out[i];
    const std::size_t same = out.nbytes() > 0 ? same_input(run, out) : run.in.size();
    std::byte* const at = same < run.in.size() ? const_cast<std::byte*>(here.in[same].bytes()) : to;
    if (same == run.in.size()) to += rounded(out.nbytes());
    here.out[i] = {at, 0, out.dtype(), out.shape()};
  }
  here.scratch = {to, run.scratch.size()};
  if (op.facts().checks) op.check(here.in);
  op.run(here.run());
  for (std::size_t i = 0; i < run.out.size(); ++i)
    if (run.out[i].nbytes() > 0) backend.copy_in(run.out[i].bytes(), here.out[i].bytes(), run.out[i].nbytes());
}

namespace run_on_detail {

void run_elsewhere(Device& device, const Op& op, const OpRun& run) {
  if (HostRun::launch(device, op, run)) return;
  settle_checks(device);  // What is copied to the host must not come from a refused index.
  HostRun here;
  here.run_here(device, op, run);
}

}  // namespace run_on_detail

}  // namespace plimsoll::internal
