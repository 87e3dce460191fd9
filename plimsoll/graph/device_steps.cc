#include "plimsoll/graph/device_steps.h"

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/staging.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kStagedAlignment = 64;

bool is_index(const ConstTensorView& view) noexcept { return view.dtype() == i32 || view.dtype() == i64; }

bool is_fed(const ProgramTables& tables, std::uint32_t base) noexcept {
  return base >= tables.first_feed && base < tables.first_constant;
}

// The device that a move reads from; nullptr for every other step.
Device* moved_from(const ProgramContext& context, const ProgramTables::Step& step) {
  Device* const from = step.num_in == 1 ? context.devices[context.tables.in[step.first_in].base] : nullptr;
  return from && from != &context.device_of(step) ? from : nullptr;
}

const ConstTensorView& fetched_view(const ProgramContext& context, std::size_t fetch) {
  return context.in[context.tables.first_fetched + fetch];
}

}  // namespace

void DeviceSteps::obtain(const ProgramContext& context, bool reads_results) {
  const ProgramTables& tables = context.tables;
  if (!tables.slot_bytes.empty() || !tables.parked.empty())
    throw Unsupported("run: values of a device that the host cannot reach are not spilled; run without a spill file");
  if (!is_prepared_)
    for (std::size_t i = 0; i < tables.steps.size(); ++i) {
      const ProgramTables::Step& step = tables.steps[i];
      if (!moved_from(context, step)) there_.prepare(context.device_of(step), *context.ops[i], context.run_of(step));
    }
  is_prepared_ = true;
  there_.take();
  read_fed_indices(context);
  if (!reads_results) return;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < tables.fetches.size(); ++i)
    bytes += round_up(fetched_view(context, i).nbytes(), kStagedAlignment);
  if (bytes > 0) fetched_bytes_ = take_staging(bytes);
}

void DeviceSteps::read_fed_indices(const ProgramContext& context) {
  const ProgramTables& tables = context.tables;
  std::vector<std::uint32_t> found;  // Numbers of views.
  std::size_t bytes = 0;
  for (const ProgramTables::Step& step : tables.steps)
    for (std::uint32_t i = step.first_in; step.checks && i < step.first_in + step.num_in; ++i) {
      const std::uint32_t base = tables.in[i].base;
      const ConstTensorView& in = context.in[i];
      if (!is_fed(tables, base) || !is_index(in) || in.nbytes() == 0) continue;
      if (context.devices[base]->backend().is_reachable()) continue;
      const auto is_same = [&](std::uint32_t other) { return context.in[other].bytes() == in.bytes(); };
      if (std::any_of(found.begin(), found.end(), is_same)) continue;
      found.push_back(i);
      bytes += round_up(in.nbytes(), kStagedAlignment);
    }
  if (found.empty()) return;
  fed_indices_ = take_staging(bytes);
  auto* to = static_cast<std::byte*>(fed_indices_->base());
  for (const std::uint32_t i : found) {
    const ConstTensorView& in = context.in[i];
    context.devices[tables.in[i].base]->backend().copy_out(to, in.bytes(), in.nbytes());
    host_copies_.push_back({in.bytes(), to, in.nbytes()});
    to += round_up(in.nbytes(), kStagedAlignment);
  }
}

void DeviceSteps::check(const ProgramContext& context, const ProgramTables::Step& step) {
  const OpRun run = context.run_of(step);
  std::vector<ConstTensorView> here;
  for (const ConstTensorView& in : run.in) {
    const bool is_checked = is_index(in);
    const auto is_copy = [&](const HostCopy& copy) { return copy.there == in.bytes() && copy.bytes == in.nbytes(); };
    const auto found = std::find_if(host_copies_.begin(), host_copies_.end(), is_copy);
    if (is_checked && found == host_copies_.end()) return there_.check(context.device_of(step), *step.op, run);
    here.emplace_back(is_checked ? found->here : nullptr, std::size_t{0}, in.dtype(), in.shape());
  }
  step.op->check(here);
}

void DeviceSteps::run(const ProgramContext& context, std::size_t number) {
  const ProgramTables::Step& step = context.tables.steps[number];
  const OpRun run = context.run_of(step);
  for (const TensorView& out : run.out)
    std::erase_if(host_copies_, [&](const HostCopy& copy) {
      return out.bytes() < copy.there + copy.bytes && copy.there < out.bytes() + out.nbytes();
    });
  Device* const from = moved_from(context, step);
  if (!from) return there_.run(context.device_of(step), *context.ops[number], run);
  copy_between(*from, run.in[0], context.device_of(step), run.out[0]);
  if (is_fed(context.tables, context.tables.in[step.first_in].base) && from->is_host())
    host_copies_.push_back({run.out[0].bytes(), run.in[0].bytes(), run.in[0].nbytes()});
}

std::span<const ConstTensorView> DeviceSteps::fetched(const ProgramContext& context) {
  const ProgramTables& tables = context.tables;
  fetched_.clear();
  auto* to = fetched_bytes_ ? static_cast<std::byte*>(fetched_bytes_->base()) : nullptr;
  for (std::size_t i = 0; i < tables.fetches.size(); ++i) {
    const ConstTensorView& from = fetched_view(context, i);
    if (from.nbytes() > 0)
      context.devices[tables.in[tables.first_fetched + i].base]->backend().copy_out(to, from.bytes(), from.nbytes());
    fetched_.emplace_back(to, std::size_t{0}, from.dtype(), from.shape());
    to += round_up(from.nbytes(), kStagedAlignment);
  }
  return fetched_;
}

void DeviceSteps::release() noexcept {
  there_.give_back();
  host_copies_.clear();
  fetched_bytes_ = fed_indices_ = StorageRef();
}

}  // namespace plimsoll::internal
