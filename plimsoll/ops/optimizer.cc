#include "plimsoll/ops/optimizer.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <mutex>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/ops/inline_array.h"
#include "plimsoll/ops/optimizer_update.h"
#include "plimsoll/tensor/holder.h"
#include "plimsoll/tensor/interceptor.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

void require(bool holds, const char* what, double value, const char* wanted) {
  if (!holds) throw InvalidArgument(fmt::format("optimizer: {} is {}; give {}", what, value, wanted));
}
void require_factor(const char* what, double value) {
  require(std::isfinite(value) && value >= 0, what, value, "a finite number of 0 or more");
}
void require_share(const char* what, double value) {
  require(value >= 0 && value < 1, what, value, "0 or more, and less than 1");
}

void check_options(const OptimizerOptions& options) {
  std::visit(
      [](const auto& o) {
        require_factor("learning_rate", o.learning_rate);
        if constexpr (requires { o.epsilon; }) require_factor("epsilon", o.epsilon);
        if constexpr (requires { o.momentum; }) require_share("momentum", o.momentum);
        if constexpr (requires { o.rho; }) require_share("rho", o.rho);
        if constexpr (requires { o.beta_1; }) require_share("beta_1", o.beta_1);
        if constexpr (requires { o.beta_2; }) require_share("beta_2", o.beta_2);
        if constexpr (requires { o.weight_decay; }) require_factor("weight_decay", o.weight_decay);
        if constexpr (requires { o.initial_accumulator_value; })
          require_factor("initial_accumulator_value", o.initial_accumulator_value);
      },
      options);
}

// What operations make meanwhile belongs to no scope.
class OutsideScopes {
 public:
  OutsideScopes() noexcept : scope_(std::exchange(ThreadContext::current().scope, nullptr)) {}
  ~OutsideScopes() { ThreadContext::current().scope = scope_; }
  OutsideScopes(const OutsideScopes&) = delete;
  OutsideScopes& operator=(const OutsideScopes&) = delete;

 private:
  ScopeList* scope_;
};

// The state of one parameter.
struct Entry {
  std::uint64_t parameter = 0;
  Device* device = nullptr;
  std::size_t size = 0;
  Tensor slots[kMaxOptimizerSlots];
};

void fill(const Tensor& tensor, double value) {
  const TensorView to = writable(tensor);
  copy(ConstTensorView(&value, 0, f64, Shape::scalar()), to);
}

Entry make_entry(const OptimizerOptions& options, const char* name, const Variable& parameter, Device& device) {
  const OutsideScopes outside;
  Entry entry;
  entry.parameter = parameter.id();
  entry.device = &device;
  entry.size = OptimizerUpdate::num_slots(options);
  for (std::size_t i = 0; i < entry.size; ++i) {
    const OptimizerUpdate::SlotSpec spec = OptimizerUpdate::slot_spec(options, i);
    entry.slots[i] =
        make_tensor({.op = name, .category = Category::kOptimizer}, parameter.shape(), parameter.dtype(), device);
    set_name(entry.slots[i], fmt::format("{}/{}", parameter.name(), spec.name));
    fill(entry.slots[i], spec.initial);
  }
  return entry;
}

}  // namespace

struct Optimizer::State final : Holder {
  explicit State(const OptimizerOptions& given) : options(given) { enrol(); }
  ~State() override { retire(); }

  std::string describe() const override { return fmt::format("optimizer \"{}\"", op(1).name()); }
  void visit_held(Visit f) const override {
    const std::lock_guard lock(entries_mutex);
    for (const Entry& entry : entries)
      for (std::size_t i = 0; i < entry.size; ++i)
        if (Storage* storage = entry.slots[i].record()->storage.load(std::memory_order_acquire)) f(*storage, "a slot");
  }

  OptimizerUpdate op(std::int64_t number) const noexcept { return {options, number}; }

  // Parameters mostly come in the order they came before.
  Entry* find(std::uint64_t id, std::size_t guess) noexcept {
    if (guess < entries.size() && entries[guess].parameter == id) return &entries[guess];
    for (Entry& entry : entries)
      if (entry.parameter == id) return &entry;
    return nullptr;
  }
  void check(const Variable& parameter, const Tensor& gradient, std::size_t index, const Entry* entry) const;
  void run(const Entry& entry, const TensorView& parameter, const ConstTensorView& gradient) const noexcept;
  void apply(std::span<const Variable> parameters, std::span<const Tensor> gradients);

  mutable std::mutex mutex;          // Of whole calls.
  mutable std::mutex entries_mutex;  // Of changes to the list, for those who walk it meanwhile.
  OptimizerOptions options;
  std::int64_t step = 0;
  std::vector<Entry> entries;
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

void Optimizer::State::run(const Entry& entry, const TensorView& parameter,
                           const ConstTensorView& gradient) const noexcept {
  ConstTensorView in[2 + kMaxOptimizerSlots] = {parameter, gradient};
  TensorView out[1 + kMaxOptimizerSlots] = {parameter};
  for (std::size_t s = 0; s < entry.size; ++s) {
    in[2 + s] = out[1 + s] = writable(entry.slots[s]);
    entry.slots[s].record()->storage.load(std::memory_order_relaxed)->note_write();
  }
  op(step).run({{in, 2 + entry.size}, {out, 1 + entry.size}, {}});
}

void Optimizer::State::apply(std::span<const Variable> parameters, std::span<const Tensor> gradients) {
  struct Place {
    TensorView parameter;
    ConstTensorView gradient;
    const Entry* entry;
  };
  InlineArray<Place, 16> places(parameters.size());
  std::vector<Entry> fresh, all;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (gradients[i].is_empty_handle()) continue;
    Entry* entry = find(parameters[i].id(), i);
    check(parameters[i], gradients[i], i, entry);
    for (Entry& made : fresh)
      if (made.parameter == parameters[i].id()) entry = &made;
    if (!entry) {
      fresh.reserve(parameters.size());  // So that entries stay where they are.
      entry = &fresh.emplace_back(make_entry(options, op(1).name(), parameters[i], device_of(gradients[i])));
    }
    places.add(parameters[i].writable_value(), gradients[i].view(), entry);
  }
  if (!fresh.empty()) all.reserve(entries.size() + fresh.size());

  // Nothing fails from here on.
  ++step;
  for (const Place& place : places.span()) run(*place.entry, place.parameter, place.gradient);
  if (fresh.empty()) return;
  const std::lock_guard lock(entries_mutex);
  std::move(entries.begin(), entries.end(), std::back_inserter(all));
  std::move(fresh.begin(), fresh.end(), std::back_inserter(all));
  entries.swap(all);
}

Optimizer::Optimizer(const OptimizerOptions& options) {
  check_options(options);
  state_ = std::make_shared<State>(options);
}

void Optimizer::apply(std::span<const Variable> parameters, std::span<const Tensor> gradients) const {
  if (parameters.size() != gradients.size())
    throw InvalidArgument(fmt::format("{}: {} parameters and {} gradients; give one for each", state_->op(1).name(),
                                      parameters.size(), gradients.size()));
  const std::lock_guard lock(state_->mutex);
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

std::vector<Optimizer::Slot> Optimizer::slots(const Variable& parameter) const {
  const std::lock_guard lock(state_->mutex);
  std::vector<Slot> slots;
  const Entry* entry = state_->find(parameter.id(), 0);
  if (!entry) return slots;
  for (std::size_t i = 0; i < entry->size; ++i) {
    const Tensor& slot = entry->slots[i];
    Tensor value = make_tensor({.op = "optimizer_slot", .category = Category::kOther}, slot.shape(), slot.dtype(),
                               device_of(slot));
    copy(slot.view(), writable(value));
    slots.push_back({OptimizerUpdate::slot_spec(state_->options, i).name, std::move(value)});
  }
  return slots;
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
    while (at < made.size && slot.name != OptimizerUpdate::slot_spec(state_->options, at).name) ++at;
    if (at == made.size)
      throw InvalidArgument(
          fmt::format("{}: has no slot \"{}\" for variable \"{}\"", where, slot.name, parameter.name()));
    if (slot.value.is_empty_handle() || slot.value.is_disposed()) refuse_disposed(slot.value, where, slot.name);
    if (!(slot.value.shape() == parameter.shape()) || slot.value.dtype() != parameter.dtype())
      throw InvalidArgument(fmt::format("{}: slot \"{}\" is {} {}, variable \"{}\" {} {}; they must agree", where,
                                        slot.name, dtype_name(slot.value.dtype()), slot.value.shape().to_string(),
                                        parameter.name(), dtype_name(parameter.dtype()),
                                        parameter.shape().to_string()));
    copy(slot.value.view(), writable(made.slots[at]));
  }
  Entry* entry = state_->find(parameter.id(), 0);
  const std::lock_guard change(state_->entries_mutex);
  if (entry)
    *entry = std::move(made);
  else
    state_->entries.push_back(std::move(made));
}

}  // namespace plimsoll
