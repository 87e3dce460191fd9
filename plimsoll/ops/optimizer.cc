#include "plimsoll/ops/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "plimsoll/base/error.h"
#include "plimsoll/memory/chunk.h"
#include "plimsoll/ops/copy_on.h"
#include "plimsoll/ops/inline_array.h"
#include "plimsoll/ops/optimizer_checks.h"
#include "plimsoll/ops/optimizer_update.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/index_check.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/parked.h"
#include "plimsoll/tensor/run_on.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll {
namespace {

// The state of one parameter.
struct Entry {
  std::uint64_t parameter = 0;
  Device* device = nullptr;
  std::vector<Variable> slots;
};

// The same for a parameter that functions know and no step has used yet: the functions hold the slots.
struct Pending {
  std::uint64_t parameter = 0;
  Device* device = nullptr;
  std::vector<std::uint64_t> slots;

  std::optional<Entry> find() const {
    Entry entry{.parameter = parameter, .device = device, .slots = {}};
    entry.slots.reserve(slots.size());
    for (const std::uint64_t id : slots) {
      std::optional<Variable> slot = Variable::find(id);
      if (!slot) return std::nullopt;
      entry.slots.push_back(*std::move(slot));
    }
    return entry;
  }
};

Entry make_entry(const OptimizerOptions& options, const char* name, const Variable& parameter, Device& device) {
  Entry entry{.parameter = parameter.id(), .device = &device, .slots = {}};
  for (std::size_t i = 0; i < OptimizerUpdate::num_slots(options); ++i) {
    const OptimizerUpdate::SlotSpec spec = OptimizerUpdate::slot_spec(options, i);
    entry.slots.emplace_back(LateVariable{.shape = parameter.shape(),
                                          .dtype = parameter.dtype(),
                                          .device = device,
                                          .value = spec.initial,
                                          .op = name},
                             fmt::format("{}/{}", parameter.name(), spec.name));
  }
  return entry;
}

}  // namespace

struct Optimizer::State final : OptimizerNow, std::enable_shared_from_this<State> {
  explicit State(const OptimizerOptions& given) { options = given; }

  // A graph with updates of this optimizer runs: nobody else changes it meanwhile.
  void begin() override {
    mutex.lock();
    try {
      obtained.clear();
      if (pending.empty()) return;
      for (const Pending& one : pending)
        if (std::optional<Entry> entry = one.find()) obtained.push_back(*std::move(entry));
      entries.reserve(entries.size() + obtained.size());
    } catch (...) {
      end();
      throw;
    }
  }
  void commit(std::size_t times) noexcept override {
    step += static_cast<std::int64_t>(times);
    if (obtained.empty()) return;
    for (Entry& entry : obtained) entries.push_back(std::move(entry));
    pending.clear();
  }
  void end() noexcept override {
    obtained.clear();
    mutex.unlock();
  }

  OptimizerUpdate op(std::int64_t number) const noexcept { return {options, number}; }

  // Parameters mostly come in the same order as before.
  Entry* find(std::uint64_t id, std::size_t guess) noexcept {
    if (guess < entries.size() && entries[guess].parameter == id) return &entries[guess];
    for (Entry& entry : entries)
      if (entry.parameter == id) return &entry;
    return nullptr;
  }
  Entry known_or_new(const Variable& parameter, std::size_t guess, Device& device);
  void check(const Variable& parameter, const Tensor& gradient, std::size_t index, const Entry* entry) const;
  void apply(std::span<const Variable> parameters, std::span<const Tensor> gradients);
  void trace(GraphVariables& graph, std::span<const Variable> parameters, std::span<const Tensor> gradients);

  void refuse_spread(std::span<const Variable> parameters) const;
  void prepare(std::span<const Variable> parameters, std::span<const Stretch> stretches);

  // The state of elements [begin, end) of a parameter, when other processes have the rest.
  struct PartEntry {
    Entry entry;
    std::int64_t begin = 0, end = 0;
  };
  PartEntry make_part(const Stretch& stretch);
  const PartEntry* find_part(std::uint64_t id) const noexcept {
    for (const PartEntry& part : parts)
      if (part.entry.parameter == id) return &part;
    return nullptr;
  }

  mutable std::mutex mutex;  // Guards everything.
  std::vector<Entry> entries;
  std::vector<PartEntry> parts;
  std::set<std::uint64_t> spread;  // Parameters whose state is partly or wholly elsewhere.
  std::vector<Pending> pending;
  std::vector<Entry> obtained;  // By begin(), from pending.
};

void Optimizer::State::check(const Variable& parameter, const Tensor& gradient, std::size_t index,
                             const Entry* entry) const {
  const char* where = op(1).name();
  if (gradient.is_disposed()) refuse_disposed(gradient, where, fmt::format("gradient {}", index));
  if (parameter.is_disposed())
    throw Disposed(fmt::format("{}: variable \"{}\" was disposed; leave it out", where, parameter.name()));
  if (parameter.dtype() != f32 && parameter.dtype() != f64)
    throw InvalidArgument(fmt::format("{}: variable \"{}\" is of {}; optimizers change float32 and float64 only", where,
                                      parameter.name(), dtype_name(parameter.dtype())));
  if (!(parameter.shape() == gradient.shape()) || parameter.dtype() != gradient.dtype())
    throw InvalidArgument(fmt::format("{}: variable \"{}\" is {} {}, its gradient {} {}; they must agree", where,
                                      parameter.name(), dtype_name(parameter.dtype()), parameter.shape().to_string(),
                                      dtype_name(gradient.dtype()), gradient.shape().to_string()));
  const bool same_device = entry ? entry->device == &device_of(gradient) : parameter.device() == gradient.device();
  if (!same_device)
    throw InvalidArgument(fmt::format("{}: variable \"{}\" is on {}, its gradient on {}; move it with .to(\"{}\")",
                                      where, parameter.name(), parameter.device(), gradient.device(),
                                      parameter.device()));
}

void Optimizer::State::refuse_spread(std::span<const Variable> parameters) const {
  if (spread.empty()) return;
  for (const Variable& parameter : parameters)
    if (spread.count(parameter.id()) > 0)
      throw FailedPrecondition(
          fmt::format("{}: the state of variable \"{}\" is spread over the processes of a job; train with that job, or "
                      "save the weights and load them again",
                      op(1).name(), parameter.name()));
}

void Optimizer::State::apply(std::span<const Variable> parameters, std::span<const Tensor> gradients) {
  struct Place {
    ConstTensorView gradient;
    TensorView out[1 + kMaxOptimizerSlots];
    std::size_t slots;
    Device* device;

    using Operands = std::array<ConstTensorView, 2 + kMaxOptimizerSlots>;
    Operands operands() const {
      Operands in = {out[0], gradient};
      for (std::size_t s = 0; s < slots; ++s) in[2 + s] = out[1 + s];
      return in;
    }
    OpRun run(const Operands& in) const { return {{in.data(), 2 + slots}, {out, 1 + slots}, {}}; }
  };
  require_gradients(op(1).name(), parameters, gradients);
  InlineArray<Place, 16> places(parameters.size());
  std::vector<Entry> fresh;
  HostRun there;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (gradients[i].is_empty_handle()) continue;
    Entry* entry = find(parameters[i].id(), i);
    check(parameters[i], gradients[i], i, entry);
    for (Entry& made : fresh)
      if (made.parameter == parameters[i].id()) entry = &made;
    if (!entry) {
      fresh.reserve(parameters.size());  // So that entries stay where they are.
      entry = &fresh.emplace_back(known_or_new(parameters[i], i, device_of(gradients[i])));
    }
    Place place{.gradient = gradients[i].view(), .out = {}, .slots = entry->slots.size(), .device = entry->device};
    place.out[0] = parameters[i].writable_value();
    for (std::size_t s = 0; s < place.slots; ++s) place.out[1 + s] = entry->slots[s].writable_value();
    places.add(place);
    if (!place.device->is_host()) there.prepare(*place.device, op(1), place.run(place.operands()));
  }
  there.take();
  if (!fresh.empty()) entries.reserve(entries.size() + fresh.size());

  // Nothing below can fail.
  ++step;
  for (const Place& place : places.span()) {
    const Place::Operands in = place.operands();
    there.run(*place.device, op(step), place.run(in));
  }
  for (Entry& entry : fresh) entries.push_back(std::move(entry));
}

Entry Optimizer::State::known_or_new(const Variable& parameter, std::size_t guess, Device& device) {
  if (const Entry* known = find(parameter.id(), guess)) return *known;
  for (const Pending& one : pending)
    if (one.parameter == parameter.id())
      if (std::optional<Entry> entry = one.find()) return *std::move(entry);
  return make_entry(options, op(1).name(), parameter, device);
}

// Adds nodes that update everything in place at each run, with the options and the step count of that time.
void Optimizer::State::trace(GraphVariables& graph, std::span<const Variable> parameters,
                             std::span<const Tensor> gradients) {
  const std::size_t nth = graph.add_effect(*this);
  require_gradients(op(1).name(), parameters, gradients);
  std::erase_if(pending, [](const Pending& one) { return !one.find(); });
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Variable& parameter = parameters[i];
    if (gradients[i].is_empty_handle()) continue;
    if (parameter.graph_index())
      throw InvalidArgument(fmt::format("{}: variable \"{}\" belongs to a graph; use one of train:: for it",
                                        op(1).name(), parameter.name()));
    check(parameter, gradients[i], i, nullptr);
    const Entry entry = known_or_new(parameter, i, device_of(gradients[i]));
    const auto same = [&](const Pending& one) { return one.parameter == entry.parameter; };
    if (!find(entry.parameter, i) && std::none_of(pending.begin(), pending.end(), same)) {
      Pending made{entry.parameter, entry.device, {}};
      for (const Variable& slot : entry.slots) made.slots.push_back(slot.id());
      pending.push_back(std::move(made));
    }
    std::vector<Tensor> operands = {graph.read(parameter), gradients[i]};
    std::vector<Variable> changed = {parameter};
    for (const Variable& slot : entry.slots) {
      operands.push_back(graph.read(slot));
      changed.push_back(slot);
    }
    graph.update(ScheduledUpdate(shared_from_this(), nth), operands, changed);
  }
}

Optimizer::Optimizer(const OptimizerOptions& options) {
  check_optimizer(options);
  state_ = std::make_shared<State>(options);
}

void Optimizer::apply(std::span<const Variable> parameters, std::span<const Tensor> gradients) const {
  if (parameters.size() != gradients.size())
    throw InvalidArgument(fmt::format("{}: {} parameters and {} gradients; give one for each", state_->op(1).name(),
                                      parameters.size(), gradients.size()));
  const std::lock_guard lock(state_->mutex);
  state_->refuse_spread(parameters);
  Tracer* tracer = ThreadContext::current().tracer;
  for (std::size_t i = 0; !tracer && i < gradients.size(); ++i)
    if (!gradients[i].is_empty_handle() && is_symbolic(gradients[i])) tracer = tracer_of(gradients[i]).get();
  if (tracer) return state_->trace(static_cast<GraphVariables&>(*tracer), parameters, gradients);
  state_->apply(parameters, gradients);
}
void Optimizer::apply(const std::vector<Variable>& parameters, const std::vector<Tensor>& gradients) const {
  apply(std::span<const Variable>(parameters), std::span<const Tensor>(gradients));
}

const OptimizerOptions& Optimizer::options() const noexcept { return state_->options; }

std::int64_t Optimizer::step() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return state_->step;
}

double Optimizer::learning_rate() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return std::visit([](const auto& o) { return o.learning_rate; }, state_->options);
}

void Optimizer::set_learning_rate(double rate) const {
  require_factor("learning_rate", rate);
  const std::lock_guard lock(state_->mutex);
  std::visit([&](auto& o) { o.learning_rate = rate; }, state_->options);
}

std::size_t Optimizer::state_bytes() const {
  const std::lock_guard lock(state_->mutex);
  std::size_t bytes = 0;
  const auto add = [&](const Entry& entry) {
    for (const Variable& slot : entry.slots) {
      const StorageRef storage = slot.share_bytes();
      if (storage->chunk()) bytes += storage->chunk()->size;
    }
  };
  for (const Entry& entry : state_->entries) add(entry);
  for (const State::PartEntry& part : state_->parts) add(part.entry);
  return bytes;
}

std::vector<Variable> Optimizer::state_variables() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<Variable> variables;
  const auto add = [&](const Entry& entry) {
    variables.insert(variables.end(), entry.slots.begin(), entry.slots.end());
  };
  for (const Entry& entry : state_->entries) add(entry);
  for (const State::PartEntry& part : state_->parts) add(part.entry);
  return variables;
}

namespace {

std::vector<Optimizer::Slot> copies_of(const Entry& entry, const OptimizerOptions& options) {
  std::vector<Optimizer::Slot> slots;
  for (std::size_t i = 0; i < entry.slots.size(); ++i) {
    const Tensor slot = entry.slots[i].value();
    Tensor value = make_tensor({.op = "optimizer_slot", .category = Category::kOther}, slot.shape(), slot.dtype(),
                               device_of(slot));
    // State that is in a spill file stays there.
    if (!Parking::read(*entry.slots[i].share_bytes(), writable(value).bytes()))
      copy_on(device_of(slot), slot.view(), writable(value));
    slots.push_back({OptimizerUpdate::slot_spec(options, i).name, std::move(value)});
  }
  return slots;
}

}  // namespace

std::vector<Optimizer::Slot> Optimizer::slots(const Variable& parameter) const {
  const std::lock_guard lock(state_->mutex);
  const Entry* entry = state_->find(parameter.id(), 0);
  return entry ? copies_of(*entry, state_->options) : std::vector<Slot>();
}

void Optimizer::restore_step(std::int64_t step) const {
  require(step >= 0, "step", static_cast<double>(step), "0 or more");
  const std::lock_guard lock(state_->mutex);
  state_->step = step;
}

void Optimizer::restore(const Variable& parameter, std::span<const Slot> slots) const {
  const std::lock_guard lock(state_->mutex);
  const char* where = state_->op(1).name();
  if (parameter.is_disposed())
    throw Disposed(fmt::format("{}: variable \"{}\" was disposed; leave it out", where, parameter.name()));
  Entry made = make_entry(state_->options, where, parameter, device_of(parameter.value()));
  for (const Slot& slot : slots) {
    std::size_t at = 0;
    while (at < made.slots.size() && slot.name != OptimizerUpdate::slot_spec(state_->options, at).name) ++at;
    if (at == made.slots.size())
      throw InvalidArgument(
          fmt::format("{}: has no slot \"{}\" for variable \"{}\"", where, slot.name, parameter.name()));
    if (slot.value.is_empty_handle() || slot.value.is_disposed()) refuse_disposed(slot.value, where, slot.name);
    if (!(slot.value.shape() == parameter.shape()) || slot.value.dtype() != parameter.dtype())
      throw InvalidArgument(fmt::format("{}: slot \"{}\" is {} {}, variable \"{}\" {} {}; they must agree", where,
                                        slot.name, dtype_name(slot.value.dtype()), slot.value.shape().to_string(),
                                        parameter.name(), dtype_name(parameter.dtype()),
                                        parameter.shape().to_string()));
    settle_checks(device_of(slot.value));
    copy_between(device_of(slot.value), slot.value.view(), *made.device, made.slots[at].writable_value());
  }
  // Functions that hold the slots keep them: they get the values.
  const Entry kept = state_->known_or_new(parameter, 0, *made.device);
  if (!state_->find(parameter.id(), 0)) state_->entries.push_back(kept);
  for (std::size_t i = 0; i < made.slots.size(); ++i) kept.slots[i].assign(made.slots[i].value());
  std::erase_if(state_->pending, [&](const Pending& one) { return one.parameter == kept.parameter; });
  std::erase_if(state_->parts, [&](const State::PartEntry& part) { return part.entry.parameter == kept.parameter; });
  state_->spread.erase(kept.parameter);
}

namespace {

// Elements [begin, end) of a tensor seen as one row.
TensorView part_of(const TensorView& whole, std::int64_t begin, std::int64_t end) {
  return {whole.bytes(), static_cast<std::size_t>(begin) * size_of(whole.dtype()), whole.dtype(), Shape({end - begin})};
}

bool is_all(const Optimizer::Stretch& stretch) {
  return stretch.begin == 0 && stretch.end == static_cast<std::int64_t>(stretch.parameter.size());
}

}  // namespace

// With the values of the whole parameter, where there are any.
Optimizer::State::PartEntry Optimizer::State::make_part(const Stretch& stretch) {
  const Variable& parameter = stretch.parameter;
  if (spread.count(parameter.id()) > 0)
    throw FailedPrecondition(fmt::format(
        "{}: the state of variable \"{}\" is spread over another number of processes; save the weights and load them",
        op(1).name(), parameter.name()));
  PartEntry part{{parameter.id(), &device_of(parameter.value()), {}}, stretch.begin, stretch.end};
  const Entry* const whole = find(parameter.id(), 0);
  for (std::size_t i = 0; i < OptimizerUpdate::num_slots(options); ++i) {
    const OptimizerUpdate::SlotSpec spec = OptimizerUpdate::slot_spec(options, i);
    const Variable& slot = part.entry.slots.emplace_back(LateVariable{.shape = Shape({stretch.end - stretch.begin}),
                                                                      .dtype = parameter.dtype(),
                                                                      .device = *part.entry.device,
                                                                      .value = spec.initial,
                                                                      .op = op(1).name()},
                                                         fmt::format("{}/{}", parameter.name(), spec.name));
    const TensorView values = slot.writable_value();
    if (whole) copy(part_of(whole->slots[i].writable_value(), stretch.begin, stretch.end), values);
  }
  return part;
}

void Optimizer::State::prepare(std::span<const Variable> parameters, std::span<const Stretch> stretches) {
  std::vector<PartEntry> new_parts;
  std::vector<Entry> new_entries;
  std::set<std::uint64_t> whole;
  for (const Stretch& stretch : stretches) {
    const std::uint64_t id = stretch.parameter.id();
    if (!is_all(stretch)) {
      const PartEntry* const known = find_part(id);
      const bool fits = known && known->begin == stretch.begin && known->end == stretch.end;
      new_parts.push_back(fits ? *known : make_part(stretch));
      continue;
    }
    whole.insert(id);
    if (spread.count(id) > 0 && !find(id, 0)) refuse_spread({&stretch.parameter, 1});
    if (find(id, 0)) continue;
    new_entries.push_back(known_or_new(stretch.parameter, 0, device_of(stretch.parameter.value())));
    for (const Variable& slot : new_entries.back().slots) slot.writable_value();
  }
  entries.reserve(entries.size() + new_entries.size());
  std::set<std::uint64_t> elsewhere;
  for (const Variable& parameter : parameters)
    if (whole.count(parameter.id()) == 0) elsewhere.insert(parameter.id());
  std::erase_if(entries, [&](const Entry& entry) { return elsewhere.count(entry.parameter) > 0; });
  for (Entry& entry : new_entries) entries.push_back(std::move(entry));
  parts = std::move(new_parts);
  std::swap(spread, elsewhere);
}

void Optimizer::prepare(std::span<const Variable> parameters, std::span<const Stretch> stretches) const {
  const std::lock_guard lock(state_->mutex);
  state_->prepare(parameters, stretches);
}

void Optimizer::apply_prepared(std::span<const Stretch> stretches, std::span<const ConstTensorView> gradients,
                               std::span<const TensorView> elsewhere) const {
  const std::lock_guard lock(state_->mutex);
  ++state_->step;
  for (std::size_t i = 0; i < stretches.size(); ++i) {
    const Stretch& stretch = stretches[i];
    const State::PartEntry* const part = state_->find_part(stretch.parameter.id());
    const Entry& entry = part ? part->entry : *state_->find(stretch.parameter.id(), i);
    TensorView out[1 + kMaxOptimizerSlots];
    ConstTensorView in[2 + kMaxOptimizerSlots];
    in[0] = out[0] =
        elsewhere.empty() ? part_of(stretch.parameter.writable_value(), stretch.begin, stretch.end) : elsewhere[i];
    in[1] = gradients[i];
    const std::int64_t count = stretch.end - stretch.begin;
    for (std::size_t s = 0; s < entry.slots.size(); ++s)
      in[2 + s] = out[1 + s] = part_of(entry.slots[s].writable_value(), 0, count);
    state_->op(state_->step).run({{in, 2 + entry.slots.size()}, {out, 1 + entry.slots.size()}, {}});
  }
}

std::optional<Optimizer::StretchSlots> Optimizer::stretch_slots(const Variable& parameter) const {
  const std::lock_guard lock(state_->mutex);
  const State::PartEntry* const part = state_->find_part(parameter.id());
  if (!part) return std::nullopt;
  return StretchSlots{part->begin, part->end, copies_of(part->entry, state_->options)};
}

bool Optimizer::is_spread() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return !state_->spread.empty();
}

std::size_t Optimizer::num_slots() const noexcept { return OptimizerUpdate::num_slots(state_->options); }

std::vector<Optimizer::Slot> Optimizer::blank_slots(const Variable& like) const {
  const std::lock_guard lock(state_->mutex);
  return copies_of(make_entry(state_->options, state_->op(1).name(), like, device_of(like.value())), state_->options);
}

}  // namespace plimsoll
