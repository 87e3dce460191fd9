#include "plimsoll/autograd/backward.h"

#include <fmt/format.h>

#include <unordered_set>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/tensor/context_guards.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/on_device_of.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll::internal {
namespace {

// What the walk knows about each slot.
struct Slot {
  Tensor gradient;      // So far; an empty handle when there is none yet.
  bool asked = false;   // It depends on a source.
  bool source = false;  // It is one.
};

// A handle to what a node saved in `held`, with its original identity, by which an outer tape knows it.
Tensor saved_tensor(const TapeValue& value, const TapeValue& held, const Shape& shape, const char* op) {
  if (held.saved->is_symbolic())
    return make_symbolic_on(held.saved, {.shape = shape, .dtype = value.dtype, .op = op, .id = value.id});
  Tensor tensor = make_tensor_on(held.saved, held.offset, shape, value.dtype,
                                 {.op = op, .category = Category::kActivations}, TensorRecord::kView);
  tensor.record()->id = value.id;
  return tensor;
}

Tensor in_shape(const Tensor& tensor, const Shape& shape) {
  return tensor.shape() == shape ? tensor : tensor.reshape(shape);
}

class NodeGradient final : public GradientContext {
 public:
  NodeGradient(TapeRecord& record, const TapeNode& node, std::vector<Slot>& slots, bool keep)
      : record_(record),
        op_(*node.op),
        inputs_(record.inputs(node)),
        outputs_(record.outputs(node)),
        slots_(slots),
        keep_(keep) {}

  std::size_t num_inputs() const noexcept override { return inputs_.size(); }
  bool wants(std::size_t input) const noexcept override {
    return inputs_[input].slot != kNoSlot && slots_[inputs_[input].slot].asked;
  }
  const Shape& input_shape(std::size_t input) const override { return record_.shape(inputs_[input]); }
  DType input_dtype(std::size_t input) const override { return inputs_[input].dtype; }
  const Tensor& input(std::size_t input) override { return saved(inputs_, input, 0, "input"); }
  const Tensor& output(std::size_t output) override { return saved(outputs_, output, inputs_.size(), "output"); }
  bool has_grad(std::size_t output) const noexcept override {
    return !slots_[outputs_[output].slot].gradient.is_empty_handle();
  }
  const Tensor& grad(std::size_t output) override {
    Tensor& gradient = slots_[outputs_[output].slot].gradient;
    if (gradient.is_empty_handle()) gradient = zeros(record_.shape(outputs_[output]), outputs_[output].dtype);
    return gradient;
  }
  Tensor take_grad() override {
    grad(0);  // Zeros where there is none.
    Slot& slot = slots_[outputs_[0].slot];
    if (slot.source) return slot.gradient;
    return std::move(slot.gradient);
  }
  void done_with(std::size_t input) override {
    if (input < tensors_.size()) tensors_[input] = Tensor();
    if (!keep_) TapeRecord::drop(inputs_[input]);
  }
  void give(std::size_t input, Tensor gradient) override {
    if (!wants(input)) return;
    const TapeValue& value = inputs_[input];
    const Shape& shape = record_.shape(value);
    if (!(gradient.shape() == shape) || gradient.dtype() != value.dtype)
      throw InvalidArgument(fmt::format("{}: its gradient for {} is {} {}, the input {} {}", op_.name(),
                                        op_.input_name(input), dtype_name(gradient.dtype()),
                                        gradient.shape().to_string(), dtype_name(value.dtype), shape.to_string()));
    Tensor& sum = slots_[value.slot].gradient;
    sum = sum.is_empty_handle() ? std::move(gradient) : std::move(sum) + std::move(gradient);
  }

 private:
  const Tensor& saved(std::span<TapeValue> values, std::size_t index, std::size_t base, const char* what) {
    if (tensors_.empty()) tensors_.resize(inputs_.size() + outputs_.size());
    Tensor& tensor = tensors_[base + index];
    if (!tensor.is_empty_handle()) return tensor;
    const TapeValue& value = values[index];
    if (value.maker != kNoNodeOfTape) return tensor = made_again(value);
    if (!value.saved)
      throw FailedPrecondition(
          fmt::format("{}: its gradient reads {} {}, which it did not ask to be saved", op_.name(), what, index));
    return tensor = saved_tensor(value, value, record_.shape(value), op_.name());
  }

  // Recomputes a value that was not saved, in the shape in which it was read. Kept for later readers; the last one owns
  // it.
  Tensor made_again(const TapeValue& value) {
    const TapeNode& maker = record_.node(value.maker);
    TapeValue& output = record_.outputs(maker)[0];
    const bool is_last = !keep_ && --output.makings == 0;
    Tensor tensor;
    if (output.saved) {
      // For a symbolic value it is the maker's node, in its own shape.
      const bool is_as_made = output.saved->is_symbolic();
      tensor = is_as_made ? saved_tensor(output, output, record_.shape(output), maker.op->name())
                          : saved_tensor(value, output, record_.shape(value), maker.op->name());
      if (is_last) TapeRecord::drop(output);
      return in_shape(tensor, record_.shape(value));
    }
    NodeGradient context(record_, maker, slots_, true);
    tensor = maker.op->remake(context);
    if (!keep_ && !is_last) TapeRecord::save(output, tensor);
    return in_shape(tensor, record_.shape(value));
  }

  TapeRecord& record_;
  const Op& op_;
  const std::span<TapeValue> inputs_, outputs_;
  std::vector<Slot>& slots_;
  const bool keep_;
  std::vector<Tensor> tensors_;
};

// Marks the slots that depend on the sources.
void mark_asked(TapeRecord& record, std::span<const Tensor> sources, std::vector<Slot>& slots) {
  for (const Tensor& source : sources)
    if (const std::uint32_t found = record.find(source.id()); found != kNoSlot)
      slots[found].asked = slots[found].source = true;
  for (const TapeNode& node : record.nodes()) {
    bool asked = false;
    for (const TapeValue& input : record.inputs(node)) asked |= input.slot != kNoSlot && slots[input.slot].asked;
    if (asked)
      for (const TapeValue& output : record.outputs(node)) slots[output.slot].asked = true;
  }
}

}  // namespace

std::vector<Tensor> run_backward(TapeRecord& record, const Tensor& target, std::span<const Tensor> sources, bool keep) {
  const BackwardSeed seed{target, {}};
  return run_backward(record, {&seed, 1}, sources, keep);
}

std::vector<Tensor> run_backward(TapeRecord& record, std::span<const BackwardSeed> seeds,
                                 std::span<const Tensor> sources, bool keep) {
  std::vector<Tensor> gradients(sources.size());
  std::vector<Slot> slots(record.num_slots());
  mark_asked(record, sources, slots);
  for (const BackwardSeed& seed : seeds) {
    const std::uint32_t last = record.find(seed.target.id());
    if (last == kNoSlot || !slots[last].asked) continue;
    const Tensor gradient = seed.gradient.is_empty_handle() ? ones_like(seed.target) : seed.gradient;
    Tensor& sum = slots[last].gradient;
    sum = sum.is_empty_handle() ? gradient : std::move(sum) + gradient;
  }
  const NameScopeGuard kept;
  for (std::size_t i = record.size(); i-- > 0;) {
    const TapeNode& node = record.node(i);
    const Tensor* reached = nullptr;
    for (const TapeValue& output : record.outputs(node))
      if (slots[output.slot].asked && !slots[output.slot].gradient.is_empty_handle())
        reached = &slots[output.slot].gradient;
    if (reached) {
      const OnDeviceOf there(*reached);  // For tensors made without operands.
      NodeGradient context(record, node, slots, keep);
      ThreadContext::current().name_scope = node.scope;
      node.op->gradient(context);
    }
    for (const TapeValue& output : record.outputs(node))
      if (!slots[output.slot].source) slots[output.slot].gradient = Tensor();
    if (!keep) record.release(node);
  }
  std::unordered_set<const TensorRecord*> given;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::uint32_t found = record.find(sources[i].id());
    if (found == kNoSlot || slots[found].gradient.is_empty_handle()) continue;
    const Tensor& gradient = slots[found].gradient;
    const bool first = given.insert(gradient.record()).second;  // Else disposing of one would dispose of both.
    gradients[i] = first || is_symbolic(gradient) ? gradient : make_view(gradient, "gradient", gradient.shape(), 0);
  }
  return gradients;
}

}  // namespace plimsoll::internal
