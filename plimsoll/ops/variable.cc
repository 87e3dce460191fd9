#include "plimsoll/ops/variable.h"

#include <fmt/format.h>

#include <atomic>
#include <mutex>

#include "plimsoll/base/error.h"
#include "plimsoll/base/names.h"
#include "plimsoll/device/device.h"
#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/memory/thread_memory.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/tensor/holder.h"
#include "plimsoll/tensor/interceptor.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

std::string default_name() {
  static std::atomic<std::uint64_t> next{0};
  const std::uint64_t number = next.fetch_add(1);
  return number == 0 ? "variable" : fmt::format("variable_{}", number);
}

// Outside of every scope: variables end by themselves.
Tensor make_outside_scopes(StorageRef storage, const Shape& shape, DType dtype) {
  ThreadContext& context = ThreadContext::current();
  ScopeList* const scope = std::exchange(context.scope, nullptr);
  struct Restore {
    ThreadContext& context;
    ScopeList* scope;
    ~Restore() { context.scope = scope; }
  } restore{context, scope};
  return make_tensor_on(std::move(storage), 0, shape, dtype, {.op = "variable", .category = Category::kParameters});
}

// The bytes of `value` to share; a copy when they are part of a larger buffer or of the program's own memory.
StorageRef shareable(const Tensor& value, const char* where) {
  TensorRecord* record = value.record();
  Storage* storage = record ? record->storage.load(std::memory_order_acquire) : nullptr;
  if (!storage) refuse_disposed(value, where, "value");
  if (record->offset == 0 && storage->bytes() == value.nbytes() && !storage->is_wrapped())
    return StorageRef::share(storage);
  const Origin origin{.op = "variable", .category = Category::kParameters};
  StorageRef own = Storage::take(storage->device(), value.nbytes(), block_label(origin, value.shape(), value.dtype()));
  copy(value.view(), TensorView(own->resident(), 0, value.dtype(), value.shape()));
  return own;
}

}  // namespace

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
  ~State() override { retire(); }

  std::string describe() const override { return fmt::format("variable \"{}\"", name); }
  void visit_held(Visit f) const override {
    if (Storage* storage = tensor.record()->storage.load(std::memory_order_acquire)) f(*storage, "its value");
  }

  Storage& storage(const char* where) const {
    Storage* storage = tensor.record()->storage.load(std::memory_order_acquire);
    if (!storage) refuse_disposed(tensor, where, "the variable");
    return *storage;
  }
  void relabel() {
    if (Storage* storage = tensor.record()->storage.load()) storage->relabel(Category::kParameters, "");
  }
  void replace(StorageRef with) {  // The old bytes go after the gate.
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
  const Tensor tensor;
};

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
  if (held.references() == 1 && !held.is_pinned()) {
    held.resident();
    return;
  }
  const Origin origin{.op = "variable", .category = Category::kParameters};
  StorageRef own = Storage::take(held.device(), tensor.nbytes(), block_label(origin, tensor.shape(), tensor.dtype()));
  copy(tensor.view(), TensorView(own->resident(), 0, tensor.dtype(), tensor.shape()));
  replace(std::move(own));
}

void Variable::State::update(const Tensor& value, BinaryOp op, const char* where) {
  require_fitting(value, where);
  if (!is_supported(op, tensor.dtype()))
    throw InvalidArgument(fmt::format("{}: is not defined for {}", where, dtype_name(tensor.dtype())));
  const ConstTensorView change = value.view();
  own_bytes(where);
  binary(op, tensor.view(), change, writable(tensor));
  storage(where).note_write();
}

Variable::Variable(const Tensor& initial, const VariableOptions& options) {
  if (initial.is_empty_handle() || initial.is_disposed()) refuse_disposed(initial, "Variable", "initial");
  state_ = std::make_shared<State>(initial, options);
}

Tensor Variable::value() const {
  StorageRef bytes;
  {
    const std::lock_guard lock(state_->mutex);
    bytes = StorageRef::share(&state_->storage("Variable"));
  }
  const int flags = TensorRecord::kView | (state_->trainable ? TensorRecord::kTrainable : 0);
  Tensor snapshot =
      make_tensor_on(std::move(bytes), 0, shape(), dtype(), {.op = "variable", .category = Category::kParameters},
                     static_cast<std::uint8_t>(flags));
  snapshot.record()->id = id();
  return snapshot;
}

void Variable::assign(const Tensor& value) const {
  const std::lock_guard lock(state_->mutex);
  state_->require_fitting(value, "assign");
  StorageRef bytes = shareable(value, "assign");
  if (bytes.get() == &state_->storage("assign")) return;
  state_->replace(std::move(bytes));
}

void Variable::assign_add(const Tensor& value) const {
  const std::lock_guard lock(state_->mutex);
  state_->update(value, BinaryOp::add, "assign_add");
}

void Variable::assign_sub(const Tensor& value) const {
  const std::lock_guard lock(state_->mutex);
  state_->update(value, BinaryOp::subtract, "assign_sub");
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
