#include "plimsoll/ops/execute.h"

#include <fmt/format.h>

#include "plimsoll/base/clock.h"
#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/ops/graph_variables.h"
#include "plimsoll/ops/inline_array.h"
#include "plimsoll/tensor/evict/eager.h"
#include "plimsoll/tensor/interceptor.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/run_on.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll {
namespace {

constexpr std::size_t kFew = 4;  // Operands that need no heap allocation.
using SpecRefs = InlineArray<SpecRef, kFew>;

[[noreturn, gnu::cold]] void refuse_devices(const Op& op, std::span<const Tensor* const> inputs, std::size_t other) {
  const std::string first = inputs[0]->device(), second = inputs[other]->device();
  throw InvalidArgument(fmt::format("{}: {} is on {}, {} on {}; move one with .to(\"{}\") or .to(\"{}\")", op.name(),
                                    op.input_name(0), first, op.input_name(other), second, second, first));
}

// Fills in the specs for infer(); returns the operands' device, nullptr when one is symbolic. Allocates the memory of
// lazy operands; sets `locks` when an operand's bytes may be dropped.
Device* check_inputs(const Op& op, std::span<const Tensor* const> inputs, SpecRefs& specs, bool& locks) {
  Device* device = nullptr;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorRecord* record = inputs[i]->record();
    Storage* storage = record ? record->storage.load(std::memory_order_acquire) : nullptr;
    if (!storage) [[unlikely]]
      refuse_disposed(*inputs[i], op.name(), op.input_name(i));
    if (!storage->is_fixed()) [[unlikely]] {
      if (storage->is_symbolic()) return nullptr;
      if (storage->is_resident() || storage->is_dropped())
        locks = true;
      else
        storage->resident();
    }
    if (!device) device = &storage->device();
    if (device != &storage->device()) [[unlikely]]
      refuse_devices(op, inputs, i);
    specs.add(SpecRef{&record->shape(), record->dtype});
  }
  return device ? device : &current_device();
}

// Memory for the kernel only, freed when it is done.
class Scratch {
 public:
  Scratch(const Op& op, Device& device, std::size_t bytes) {
    if (bytes == 0) return;
    const Shape shape({static_cast<std::int64_t>(bytes)});
    storage_ =
        Storage::take(device, bytes, block_label({.op = op.name(), .category = Category::kWorkspace}, shape, u8));
    bytes_ = {static_cast<std::byte*>(storage_->resident()), bytes};
  }
  std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  StorageRef storage_;
  std::span<std::byte> bytes_;
};

void run_kernel(const Op& op, Device& device, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs,
                std::span<std::byte> scratch) {
  InlineArray<ConstTensorView, kFew> in(inputs.size());
  for (const Tensor* input : inputs) {
    const TensorRecord& record = *input->record();
    in.add(record.storage.load(std::memory_order_relaxed)->base(), record.offset, record.dtype, record.shape());
  }
  InlineArray<TensorView, kFew> out(outputs.size());
  for (const Tensor& output : outputs) {
    const TensorRecord& record = *output.record();
    out.add(record.storage.load(std::memory_order_relaxed)->base(), record.offset, record.dtype, record.shape());
  }
  run_on(device, op, {in.span(), out.span(), scratch});
}

[[gnu::noinline]] void run_observed(const Op& op, Device& device, std::span<const Tensor* const> inputs,
                                    std::span<const Tensor> outputs, std::span<std::byte> scratch) {
  const std::int64_t start = monotonic_ns();
  run_kernel(op, device, inputs, outputs, scratch);
  ThreadContext::current().observer->ran(op, inputs, outputs, monotonic_ns() - start);
}

// Turns the op into a node.
[[gnu::noinline, gnu::cold]] void trace_into(const Op& op, std::span<const Tensor* const> inputs, Tensor* one,
                                             std::vector<Tensor>* many) {
  const std::shared_ptr<Tracer> tracer = tracer_for(inputs);
  std::vector<Tensor> placed;  // What a tape records: moves have gradients too.
  std::vector<const Tensor*> operands(inputs.begin(), inputs.end());
  static_cast<GraphVariables&>(*tracer).place(op, inputs, placed);
  for (std::size_t i = 0; i < placed.size(); ++i) operands[i] = &placed[i];
  std::vector<Tensor> outputs = tracer->add(op, operands);
  if (Interceptor* const interceptor = ThreadContext::current().interceptor)
    interceptor->executed(op, operands, outputs);
  if (one)
    *one = std::move(outputs[0]);
  else
    *many = std::move(outputs);
}

// Whether output 0 may overwrite this operand. If recipes refer to it, they must release it first.
bool may_take_over(const Op& op, std::span<const Tensor* const> inputs, const Tensor& over, std::size_t bytes,
                   const ThreadContext& context, bool even_of_recipes = false) noexcept {
  constexpr std::uint8_t kOthers = TensorRecord::kKept | TensorRecord::kReturned | TensorRecord::kVariable;
  const TensorRecord& record = *over.record();
  const Storage& storage = *record.storage.load(std::memory_order_relaxed);
  if ((record.references.load(std::memory_order_acquire) & TensorRecord::kStrongMask) != 1 ||
      !(even_of_recipes ? storage.references() == 1 : storage.is_sole()) || !storage.chunk() || storage.is_pinned() ||
      record.offset != 0 || storage.bytes() != bytes || (record.flags.load(std::memory_order_relaxed) & kOthers) != 0)
    return false;
  SlotMask places = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i]->record() == &record) places |= slot(i);
  if ((op.facts().overwrites & places) != places) return false;
  return !context.interceptor || (op.saved(~SlotMask{0}).inputs & places) == 0;
}

Tensor take_over(const Op& op, const Tensor& over, const Shape& shape, DType dtype, Category category) {
  Storage* const storage = over.record()->storage.load(std::memory_order_relaxed);
  return make_tensor_on(StorageRef::share(storage), 0, shape, dtype, {.op = op.name(), .category = category});
}

// The end of execute_into() when operands or results may be dropped.
[[gnu::noinline]] void execute_evictably(const Op& op, std::span<const Tensor* const> inputs, const Specs& specs,
                                         const SpecList& out, std::span<Tensor> outputs, const Tensor* over,
                                         Device& device) {
  const ThreadContext& context = ThreadContext::current();
  evict::RecipeBook& book = evict::RecipeBook::instance();
  evict::Domain* const domain = evict::current_domain();
  const evict::OperandLocks locks(inputs);
  const Origin origin{.op = op.name(), .category = context.category};
  const bool takes_over = over && may_take_over(op, inputs, *over, out[0].bytes(), context, true);
  for (std::size_t i = takes_over ? 1 : 0; i < outputs.size(); ++i)
    outputs[i] = make_tensor(origin, out[i].shape, out[i].dtype, device);
  const Scratch scratch(op, device, op.workspace_bytes(specs, out));
  evict::OldValue old;
  if (takes_over) outputs[0] = take_over(op, *over, out[0].shape, out[0].dtype, context.category);
  if (takes_over && !book.give_up(*over->record()->storage.load(std::memory_order_relaxed), locks.values(), old.value))
    outputs[0] = make_tensor(origin, out[0].shape, out[0].dtype, device);
  if (context.observer)
    run_observed(op, device, inputs, outputs, scratch.bytes());
  else
    run_kernel(op, device, inputs, outputs, scratch.bytes());
  if (domain && context.category != Category::kGradients)
    book.record(*domain, op, inputs, outputs, old.value, op.cost(specs, out));
  else if (domain)
    book.offer(*domain, outputs, op.cost(specs, out));
  if (context.interceptor) context.interceptor->executed(op, inputs, outputs);
}

// A single output needs no list; more go into `many`. `over`: one of the inputs, or nullptr.
void execute_into(const Op& op, std::span<const Tensor* const> inputs, Tensor* one, std::vector<Tensor>* many,
                  const Tensor* over = nullptr) {
  const ThreadContext& context = ThreadContext::current();
  if (context.observer && context.tracer) [[unlikely]]
    return trace_into(op, inputs, one, many);
  SpecRefs refs(inputs.size());
  bool locks = evict::current_domain() != nullptr;
  Device* const found = check_inputs(op, inputs, refs, locks);
  if (!found) [[unlikely]]
    return trace_into(op, inputs, one, many);
  Device& device = *found;
  const Specs specs(refs.span());
  SpecList out;
  op.infer(specs, out);
  if (one && op.facts().is_view) {
    *one = make_view(*inputs[0], op.name(), out[0].shape, op.view_offset(specs));
    if (context.interceptor) context.interceptor->executed(op, inputs, {one, 1});
    return;
  }
  if (many) many->resize(out.size());
  const std::span<Tensor> outputs = many ? std::span<Tensor>(*many) : std::span<Tensor>(one, 1);
  if (locks) [[unlikely]]
    return execute_evictably(op, inputs, specs, out, outputs, over, device);
  const bool takes_over = over && may_take_over(op, inputs, *over, out[0].bytes(), context);
  for (std::size_t i = takes_over ? 1 : 0; i < outputs.size(); ++i)
    outputs[i] = make_tensor({.op = op.name(), .category = context.category}, out[i].shape, out[i].dtype, device);
  const Scratch scratch(op, device, op.workspace_bytes(specs, out));
  if (takes_over) outputs[0] = take_over(op, *over, out[0].shape, out[0].dtype, context.category);
  if (context.observer) [[unlikely]]
    run_observed(op, device, inputs, outputs, scratch.bytes());
  else
    run_kernel(op, device, inputs, outputs, scratch.bytes());
  if (context.interceptor) context.interceptor->executed(op, inputs, outputs);
}

struct EmptyAfterwards {
  Tensor& handle;
  ~EmptyAfterwards() { handle = Tensor(); }
};

}  // namespace

Tensor execute_on(const Op& op, std::span<const Tensor* const> inputs) {
  Tensor output;
  execute_into(op, inputs, &output, nullptr);
  return output;
}

Tensor execute_over(const Op& op, Tensor&& over, std::span<const Tensor* const> inputs) {
  Tensor output;
  const EmptyAfterwards empty{over};
  execute_into(op, inputs, &output, nullptr, &over);
  return output;
}

std::vector<Tensor> execute_all_over(const Op& op, Tensor&& over, std::span<const Tensor* const> inputs) {
  std::vector<Tensor> outputs;
  const EmptyAfterwards empty{over};
  execute_into(op, inputs, nullptr, &outputs, &over);
  return outputs;
}

std::optional<Tensor> execute_flat(const Op& op, const Tensor& a, const Tensor* b, DType result, FlatKernel kernel,
                                   const Tensor* over) {
  const ThreadContext& context = ThreadContext::current();
  const TensorRecord* const x = a.record();
  const TensorRecord* const y = b ? b->record() : x;
  if (!x || !y || context.observer || evict::current_domain()) [[unlikely]]
    return std::nullopt;
  Storage* const left = x->storage.load(std::memory_order_acquire);
  Storage* const right = y->storage.load(std::memory_order_acquire);
  if (!left || !right || !left->is_fixed() || !right->is_fixed() || &left->device() != &right->device() ||
      !left->device().is_host() || x->dtype != y->dtype || (x->details != y->details && !(x->shape() == y->shape())))
      [[unlikely]]
    return std::nullopt;
  const Tensor* const inputs[2] = {&a, b};
  const std::span<const Tensor* const> operands(inputs, b ? std::size_t{2} : std::size_t{1});
  std::optional<Tensor> output =
      over && may_take_over(op, operands, *over, x->shape().size() * size_of(result), context)
          ? take_over(op, *over, x->shape(), result, context.category)
          : make_tensor_like({.op = op.name(), .category = context.category}, *x, result, left->device());
  kernel(op, x->dtype, static_cast<const std::byte*>(left->base()) + x->offset,
         static_cast<const std::byte*>(right->base()) + y->offset,
         output->record()->storage.load(std::memory_order_relaxed)->base(), x->shape().size());
  if (context.interceptor) context.interceptor->executed(op, operands, {&*output, 1});
  return output;
}

std::vector<Tensor> execute_all(const Op& op, std::span<const Tensor* const> inputs) {
  std::vector<Tensor> outputs;
  execute_into(op, inputs, nullptr, &outputs);
  return outputs;
}

Tensor execute_list(const Op& op, std::span<const Tensor> inputs) {
  InlineArray<const Tensor*, 16> list(inputs.size());
  for (const Tensor& input : inputs) list.add(&input);
  return execute_on(op, list.span());
}

}  // namespace plimsoll
