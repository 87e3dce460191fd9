#include "plimsoll/ops/variable.h"

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "plimsoll/base/error.h"
#include "plimsoll/base/names.h"
#include "plimsoll/device/device.h"
#include "plimsoll/memory/chunk.h"
#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/memory/trace/trace_recorder.h"
#include "plimsoll/ops/copy_on.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/graph_variables.h"
#include "plimsoll/ops/internal/elementwise_ops.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/holder.h"
#include "plimsoll/tensor/index_check.h"
#include "plimsoll/tensor/interceptor.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/run_on.h"

namespace plimsoll {
namespace {

std::string default_name() {
  static std::atomic<std::uint64_t> next{0};
  const std::uint64_t number = next.fetch_add(1);
  return number == 0 ? "variable" : fmt::format("variable_{}", number);
}

// Outside every scope: no scope disposes of variables.
Tensor make_outside_scopes(StorageRef storage, const Shape& shape, DType dtype,
                           Category category = Category::kParameters) {
  const OutsideTidyScopes outside;
  return make_tensor_on(std::move(storage), 0, shape, dtype, {.op = "variable", .category = category});
}

StorageRef take_late(const LateVariable& late, const std::string& name) {
  BlockLabel label = block_label({.op = late.op, .category = late.category}, late.shape, late.dtype);
  label.name = intern(name);  // Its block is allocated later, when nobody is there to name it.
  return Storage::take_lazily(
      late.device, late.shape.size() * size_of(late.dtype), label,
      {.pattern = Number(late.value).to(late.dtype), .element_bytes = static_cast<std::uint8_t>(size_of(late.dtype))});
}

// The graph for an operation on the variable; nullptr when it runs now.
std::shared_ptr<GraphVariables> graph_for(const Tensor& value) {
  const Tensor* const operands[] = {&value};
  return std::static_pointer_cast<GraphVariables>(tracer_for(operands));
}

// The bytes of `value` to share; a copy when they are part of a larger buffer or of memory that the program may write.
StorageRef shareable(const Tensor& value, const char* where) {
  TensorRecord* record = value.record();
  Storage* storage = record ? record->storage.load(std::memory_order_acquire) : nullptr;
  if (!storage) refuse_disposed(value, where, "value");
  storage->keep_resident();  // A variable is never dropped.
  const bool is_programs = storage->is_wrapped() && storage->is_written_outside();
  if (record->offset == 0 && storage->bytes() == value.nbytes() && !is_programs) return StorageRef::share(storage);
  const Origin origin{.op = "variable", .category = Category::kParameters};
  StorageRef own = Storage::take(storage->device(), value.nbytes(), block_label(origin, value.shape(), value.dtype()));
  copy_on(storage->device(), value.view(), TensorView(own->resident(), 0, value.dtype(), value.shape()));
  return own;
}

}  // namespace

// Eager variables by the ids of their values.
class Variable::Registry {
 public:
  static Registry& instance() {
    static Registry& registry = *new Registry;  // Never destroyed: variables may outlive it.
    return registry;
  }
  void add(const std::shared_ptr<State>& state);
  void remove(std::uint64_t id) noexcept {
    const std::lock_guard lock(mutex_);
    variables_.erase(id);
  }
  std::shared_ptr<State> find(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    const auto found = variables_.find(id);
    return found == variables_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::weak_ptr<State>> variables_;  // Guarded by mutex_.
};

struct Variable::State final : Holder {
  State(const Tensor& initial, const VariableOptions& options)
      : name(options.name.empty() ? default_name() : options.name),
        trainable(options.trainable && is_floating(initial.dtype())),
        tensor(make_outside_scopes(shareable(initial, "Variable"), initial.shape(), initial.dtype())) {
    set_name(tensor, name);
    tensor.record()->set(TensorRecord::kVariable);
    relabel();
    enrol();
  }
  State(const LateVariable& late, const std::string& given_name)
      : name(given_name),
        trainable(false),
        category(late.category),
        tensor(make_outside_scopes(take_late(late, given_name), late.shape, late.dtype, late.category)) {
    set_name(tensor, name);
    tensor.record()->set(TensorRecord::kVariable);
    if (const Storage* storage = tensor.record()->storage.load()) tell_trace(*storage);
    enrol();
  }
  // For a variable of a graph.
  State(GraphVariables::Declared declared, bool is_trainable)
      : name(std::move(declared.name)),
        trainable(is_trainable && is_floating(declared.handle.dtype())),
        index(declared.index),
        tensor(std::move(declared.handle)) {
    enrol();
  }
  ~State() override {
    retire();
    if (!index) Registry::instance().remove(tensor.id());
  }

  // Throws FailedPrecondition when its graph is gone.
  std::shared_ptr<GraphVariables> owner() const { return std::static_pointer_cast<GraphVariables>(tracer_of(tensor)); }

  std::string describe() const override { return fmt::format("variable \"{}\"", name); }
  void visit_held(Visit f) const override {
    Storage* const storage = tensor.record()->storage.load(std::memory_order_acquire);
    if (storage && !index) f(*storage, "its value");
  }

  Storage& storage(const char* where) const {
    Storage* storage = tensor.record()->storage.load(std::memory_order_acquire);
    if (!storage) refuse_disposed(tensor, where, "the variable");
    return *storage;
  }
  void relabel() {
    if (Storage* storage = tensor.record()->storage.load()) {
      storage->relabel(category, "");
      tell_trace(*storage);
    }
  }
  void tell_trace(const Storage& storage) const noexcept {
    if (storage.chunk()) trace_named(storage.chunk()->label.id, category_name(category), name);
  }
  void replace(StorageRef with) {  // The old bytes are freed after the gate.
    StorageRef old;
    {
      const EnterThread inside(ThreadMemory::current());
      old = StorageRef::adopt(tensor.record()->storage.exchange(with.release(), std::memory_order_acq_rel));
    }
    relabel();
  }
  void require_fitting(const Tensor& value, const char* where) const;
  void update(const Tensor& value, BinaryOp op, const char* where);
  void own_bytes(const char* where);

  mutable std::mutex mutex;
  const std::string name;
  const bool trainable;
  const Category category = Category::kParameters;
  const std::optional<std::uint32_t> index = {};  // Its index in its graph.
  const Tensor tensor;
};

void Variable::Registry::add(const std::shared_ptr<State>& state) {
  const std::lock_guard lock(mutex_);
  variables_[state->tensor.id()] = state;
}

void Variable::State::require_fitting(const Tensor& value, const char* where) const {
  if (value.is_empty_handle() || value.is_disposed()) refuse_disposed(value, where, "value");
  if (!(value.shape() == tensor.shape()) || value.dtype() != tensor.dtype())
    throw InvalidArgument(fmt::format("{}: variable \"{}\" is {} {}, the value {} {}; they must agree", where, name,
                                      dtype_name(tensor.dtype()), tensor.shape().to_string(), dtype_name(value.dtype()),
                                      value.shape().to_string()));
  if (&device_of(value) != &storage(where).device())
    throw InvalidArgument(fmt::format("{}: variable \"{}\" is on {}, the value on {}; move it with .to(\"{}\")", where,
                                      name, tensor.device(), value.device(), tensor.device()));
}

// Makes sure that the bytes may be written in place.
void Variable::State::own_bytes(const char* where) {
  Storage& held = storage(where);
  settle_checks(held.device());
  if (held.references() == 1 && !held.is_pinned() && !held.is_wrapped()) {
    held.resident();
    return;
  }
  const Origin origin{.op = "variable", .category = category};
  StorageRef own = Storage::take(held.device(), tensor.nbytes(), block_label(origin, tensor.shape(), tensor.dtype()));
  copy_on(held.device(), tensor.view(), TensorView(own->resident(), 0, tensor.dtype(), tensor.shape()));
  replace(std::move(own));
}

void Variable::State::update(const Tensor& value, BinaryOp op, const char* where) {
  require_fitting(value, where);
  if (!is_supported(op, tensor.dtype()))
    throw InvalidArgument(fmt::format("{}: is not defined for {}", where, dtype_name(tensor.dtype())));
  const ConstTensorView change = value.view();
  own_bytes(where);
  storage(where).note_write();
  const TensorView out = writable(tensor);
  const ConstTensorView in[] = {out, change};
  run_on(storage(where).device(), Binary(op), {in, {&out, 1}, {}});
}

Variable::Variable(const Tensor& initial, const VariableOptions& options) {
  if (initial.is_empty_handle() || initial.is_disposed()) refuse_disposed(initial, "Variable", "initial");
  if (const std::shared_ptr<GraphVariables> graph = graph_for(initial)) {
    state_ = std::make_shared<State>(graph->declare(initial, options), options.trainable);
    return;
  }
  state_ = std::make_shared<State>(initial, options);
  Registry::instance().add(state_);
}

Variable::Variable(const LateVariable& late, const std::string& name) : state_(std::make_shared<State>(late, name)) {
  Registry::instance().add(state_);
}

Tensor Variable::snapshot(int flags) const {
  if (ThreadContext::current().tracer || state_->index) [[unlikely]] {
    if (state_->index) return state_->owner()->read(*state_->index);
    return static_cast<GraphVariables&>(*ThreadContext::current().tracer).read(*this);
  }
  StorageRef bytes = share_bytes();
  flags |= TensorRecord::kView | (state_->trainable ? TensorRecord::kTrainable : 0);
  Tensor snapshot =
      make_tensor_on(std::move(bytes), 0, shape(), dtype(), {.op = "variable", .category = Category::kParameters},
                     static_cast<std::uint8_t>(flags));
  snapshot.record()->id = id();
  return snapshot;
}

Tensor Variable::value() const { return snapshot(0); }
Variable::operator Tensor() const { return snapshot(TensorRecord::kReference); }

Assigned Variable::update(const Tensor& value, int kind) const {
  if (value.is_empty_handle() || value.is_disposed()) refuse_disposed(value, "assign", "value");
  const auto assignment = static_cast<AssignKind>(kind);
  if (state_->index) return Assigned(*this, state_->owner()->assign(*state_->index, value, assignment));
  if (const auto graph = graph_for(value)) return Assigned(*this, graph->assign(*this, value, assignment));
  const std::lock_guard lock(state_->mutex);
  if (assignment != AssignKind::kSet) {
    const bool adds = assignment == AssignKind::kAdd;
    state_->update(value, adds ? BinaryOp::add : BinaryOp::subtract, adds ? "assign_add" : "assign_sub");
    return Assigned(*this);
  }
  state_->require_fitting(value, "assign");
  settle_checks(device_of(value));
  StorageRef bytes = shareable(value, "assign");
  if (bytes.get() != &state_->storage("assign")) state_->replace(std::move(bytes));
  return Assigned(*this);
}

Assigned Variable::assign(const Tensor& value) const { return update(value, static_cast<int>(AssignKind::kSet)); }
Assigned Variable::assign_add(const Tensor& value) const { return update(value, static_cast<int>(AssignKind::kAdd)); }
Assigned Variable::assign_sub(const Tensor& value) const {
  return update(value, static_cast<int>(AssignKind::kSubtract));
}

std::optional<std::uint32_t> Variable::graph_index() const noexcept { return state_->index; }

StorageRef Variable::share_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return StorageRef::share(&state_->storage("Variable"));
}

std::unique_lock<std::mutex> Variable::lock() const { return std::unique_lock(state_->mutex); }

Storage& Variable::own_bytes() const {
  state_->own_bytes("assign");
  state_->storage("assign").note_write();
  return state_->storage("assign");
}

std::optional<Variable> Variable::find(std::uint64_t id) {
  std::shared_ptr<State> state = Registry::instance().find(id);
  if (!state) return std::nullopt;
  return Variable(std::move(state));
}

TensorView Variable::writable_value() const {
  const std::lock_guard lock(state_->mutex);
  state_->own_bytes("writable_value");
  state_->storage("writable_value").note_write();
  return writable(state_->tensor);
}

const Shape& Variable::shape() const noexcept { return state_->tensor.shape(); }
DType Variable::dtype() const noexcept { return state_->tensor.dtype(); }
const std::string& Variable::name() const noexcept { return state_->name; }
bool Variable::trainable() const noexcept { return state_->trainable; }
std::string Variable::device() const { return state_->tensor.device(); }
std::uint64_t Variable::id() const noexcept { return state_->tensor.id(); }
bool Variable::is_disposed() const noexcept { return state_->tensor.is_disposed(); }

void Variable::dispose() const noexcept {
  const std::lock_guard lock(state_->mutex);
  state_->tensor.dispose();
}

}  // namespace plimsoll
