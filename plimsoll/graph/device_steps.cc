#include "plimsoll/graph/device_steps.h"

#include <algorithm>

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/index_check.h"
#include "plimsoll/tensor/staging.h"

namespace plimsoll::internal {
namespace {

constexpr std::size_t kStagedAlignment = 64;

bool is_index(const ConstTensorView& view) noexcept { return view.dtype() == i32 || view.dtype() == i64; }

bool is_away(const Device& device) noexcept { return !device.is_host() && !device.backend().is_reachable(); }

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
  if (tables.changes_variables)
    for (Device* const device : context.devices)
      if (device) settle_checks(*device);
  has_words_ = tables.changes_variables || reads_results;
  if (!is_prepared_)
    for (std::size_t i = 0; i < tables.steps.size(); ++i) {
      const ProgramTables::Step& step = tables.steps[i];
      if (!moved_from(context, step)) there_.prepare(context.device_of(step), *context.ops[i], context.run_of(step));
    }
  if (!is_prepared_) prepare_moves(context);
  is_prepared_ = true;
  there_.take();
  if (most_moved_ > 0) moved_bytes_ = take_staging(most_moved_);
  if (!reads_results) return;
  fetched_.reserve(tables.fetches.size());
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < tables.fetches.size(); ++i)
    bytes += round_up(fetched_view(context, i).nbytes(), kStagedAlignment);
  if (bytes > 0) fetched_bytes_ = take_staging(bytes);
}

void DeviceSteps::prepare_moves(const ProgramContext& context) {
  std::size_t moves = 0;
  for (const ProgramTables::Step& step : context.tables.steps) {
    const Device* const from = moved_from(context, step);
    if (!from) continue;
    ++moves;
    if (is_away(*from) && is_away(context.device_of(step)))
      most_moved_ = std::max(most_moved_, context.run_of(step).in[0].nbytes());
  }
  host_copies_.reserve(moves);
}

void DeviceSteps::check(const ProgramContext& context, std::size_t number) {
  const ProgramTables::Step& step = context.tables.steps[number];
  if (check_on_host(context, step)) return;
  const OpRun run = context.run_of(step);
  Device& device = context.device_of(step);
  if (is_away(device) && !has_kernel(device, *step.op, run)) return;  // Checked when its operands are copied.
  if (is_away(device) && check_there(context, number, device)) return;
  there_.check(device, *step.op, run);
}

// False: a device has them, and the host does not.
bool DeviceSteps::check_on_host(const ProgramContext& context, const ProgramTables::Step& step) {
  checked_.clear();
  for (const ConstTensorView& in : context.run_of(step).in) {
    const bool is_checked = is_index(in);
    const auto is_copy = [&](const HostCopy& copy) { return copy.there == in.bytes() && copy.bytes == in.nbytes(); };
    const auto found = std::find_if(host_copies_.begin(), host_copies_.end(), is_copy);
    if (is_checked && found == host_copies_.end()) return false;
    checked_.emplace_back(is_checked ? found->here : nullptr, std::size_t{0}, in.dtype(), in.shape());
  }
  step.op->check(checked_);
  return true;
}

bool DeviceSteps::check_there(const ProgramContext& context, std::size_t number, Device& device) {
  const ProgramTables::Step& step = context.tables.steps[number];
  const OpRun run = context.run_of(step);
  IndexRule rule;
  if (!step.op->index_rule(run.in, rule)) return false;
  const ConstTensorView& indices = run.in[rule.input];
  if (indices.size() == 0) return true;
  if (!has_words_) return device.index_checks().defer(rule, indices);
  Word* const word = word_of(device);
  if (!word) return false;
  const auto check = static_cast<std::uint32_t>(number + 1);
  if (!device.backend().kernels()->check_indices(word->number, check, indices, rule.size)) return false;
  word->is_pending = true;
  return true;
}

DeviceSteps::Word* DeviceSteps::word_of(Device& device) {
  for (Word& word : words_)
    if (word.device == &device) return &word;
  const std::uint32_t taken = device.backend().kernels()->take_word();
  return taken == KernelQueue::kNoWord ? nullptr : &words_.emplace_back(Word{&device, taken, false});
}

void DeviceSteps::settle(const ProgramContext& context, Word& word) {
  if (!word.is_pending) return;
  const RefusedIndex refused = word.device->backend().kernels()->read_word(word.number);
  word.is_pending = false;
  if (refused.check == 0) return;
  const ProgramTables::Step& step = context.tables.steps[refused.check - 1];
  const OpRun run = context.run_of(step);
  IndexRule rule;
  step.op->index_rule(run.in, rule);
  throw InvalidArgument(rule.text(rule, run.in[rule.input].shape(), refused.position, refused.index));
}

void DeviceSteps::settle(const ProgramContext& context, Device& device) {
  for (Word& word : words_)
    if (word.device == &device) settle(context, word);
  if (!context.tables.changes_variables) settle_checks(device);
}

// A call that changes variables has settled before its first step what was left to the devices; what others leave to
// them since then is not this call's.
void DeviceSteps::settle(const ProgramContext& context) {
  for (Word& word : words_) settle(context, word);
  if (has_words_ && !context.tables.changes_variables)
    for (Device* const device : context.devices)
      if (device) settle_checks(*device);
}

std::uint32_t DeviceSteps::guard_changes(const ProgramContext& context, const Device& device) {
  std::uint32_t guard = KernelQueue::kNoWord;
  for (Word& word : words_)
    if (word.device != &device)
      settle(context, word);
    else if (word.is_pending)
      guard = word.number;
  return guard;
}

void DeviceSteps::run(const ProgramContext& context, std::size_t number) {
  const ProgramTables::Step& step = context.tables.steps[number];
  const OpRun run = context.run_of(step);
  for (const TensorView& out : run.out)
    std::erase_if(host_copies_, [&](const HostCopy& copy) {
      return out.bytes() < copy.there + copy.bytes && copy.there < out.bytes() + out.nbytes();
    });
  Device& device = context.device_of(step);
  if (Device* const from = moved_from(context, step)) {
    if (!from->is_host()) settle(context, *from);  // It waits for that device anyway.
    if (step.changes) guard_changes(context, device);
    if (is_away(*from) && is_away(device)) {
      from->backend().copy_out(moved_bytes_->base(), run.in[0].bytes(), run.in[0].nbytes());
      device.backend().copy_in(run.out[0].bytes(), moved_bytes_->base(), run.in[0].nbytes());
    } else {
      copy_between(*from, run.in[0], device, run.out[0]);
    }
    if (is_fed(context.tables, context.tables.in[step.first_in].base) && from->is_host())
      host_copies_.push_back({run.out[0].bytes(), run.in[0].bytes(), run.in[0].nbytes()});
    return;
  }
  const std::uint32_t guard = step.changes ? guard_changes(context, device) : KernelQueue::kNoWord;
  const Op& op = *context.ops[number];
  if (there_.launch(device, op, run, guard)) return;
  if (is_away(device)) settle(context, device);  // The same.
  there_.run_here(device, op, run);
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
  for (const Word& word : words_) word.device->backend().kernels()->give_word(word.number);
  words_.clear();
  host_copies_.clear();
  fetched_bytes_ = moved_bytes_ = StorageRef();
}

}  // namespace plimsoll::internal
