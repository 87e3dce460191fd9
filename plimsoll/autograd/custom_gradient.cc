#include "plimsoll/autograd/custom_gradient.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/tensor/interceptor.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll {
namespace {

std::vector<Tensor> gradients_of(const CustomBackward& backward, const Tensor& gradient,
                                 const std::vector<Tensor>& inputs) {
  std::vector<Tensor> gradients = backward(gradient, inputs);
  if (gradients.size() != inputs.size())
    throw InvalidArgument(
        fmt::format("custom_gradient: {} gradients for {} inputs; give one for each", gradients.size(), inputs.size()));
  return gradients;
}

// What a tape records of a call; the value was computed before.
class CustomGradient final : public OpOf<CustomGradient> {
 public:
  explicit CustomGradient(const CustomBackward& backward) : backward_(backward) {}
  const char* name() const noexcept override { return "custom_gradient"; }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(0), in.dtype(0)); }
  void run(const OpRun&) const noexcept override {}
  SavedSlots saved(SlotMask) const override { return {.inputs = ~SlotMask{0}}; }
  void gradient(GradientContext& c) const override {
    std::vector<Tensor> inputs;
    for (std::size_t i = 0; i < c.num_inputs(); ++i) inputs.push_back(c.input(i));
    std::vector<Tensor> gradients = gradients_of(backward_, c.grad(), inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!gradients[i].is_empty_handle()) c.give(i, std::move(gradients[i]));
  }

 private:
  CustomBackward backward_;
};

// The same in a graph, where it must be a node: its operands are the value and the inputs, its output is the value.
class CustomGradientNode final : public OpOf<CustomGradientNode> {
 public:
  explicit CustomGradientNode(const CustomBackward& backward) : backward_(backward) {}
  const char* name() const noexcept override { return "custom_gradient"; }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(0), in.dtype(0)); }
  void run(const OpRun&) const noexcept override {}
  OpFacts facts() const noexcept override { return {.is_view = true}; }
  SavedSlots saved(SlotMask) const override { return {.inputs = ~slot(0)}; }
  void gradient(GradientContext& c) const override {
    std::vector<Tensor> inputs;
    for (std::size_t i = 1; i < c.num_inputs(); ++i) inputs.push_back(c.input(i));
    std::vector<Tensor> gradients = gradients_of(backward_, c.grad(), inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!gradients[i].is_empty_handle()) c.give(i + 1, std::move(gradients[i]));
  }

 private:
  CustomBackward backward_;
};

class StopGradient final : public OpOf<StopGradient> {
 public:
  const char* name() const noexcept override { return "stop_gradient"; }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(0), in.dtype(0)); }
  void run(const OpRun&) const noexcept override {}
  OpFacts facts() const noexcept override { return {.is_view = true, .has_gradient = false, .overwrites = slot(0)}; }
};

}  // namespace

Tensor custom_gradient(const std::vector<Tensor>& inputs, const CustomForward& forward,
                       const CustomBackward& backward) {
  for (const Tensor& input : inputs)
    if (input.is_empty_handle() || input.is_disposed()) refuse_disposed(input, "custom_gradient", "an input");
  Interceptor* const tape = ThreadContext::current().interceptor;
  Tensor value;
  std::vector<const Tensor*> list;
  for (const Tensor& input : inputs) list.push_back(&input);
  if (tracer_for(list)) {
    {
      const InterceptWith nobody(nullptr);
      value = stop_gradient(forward(inputs));
    }
    list.insert(list.begin(), &value);
    return execute_on(CustomGradientNode(backward), list);
  }
  {
    const InterceptWith nobody(nullptr);
    value = forward(inputs);
    if (tape && !value.is_empty_handle()) value = make_view(value, "custom_gradient", value.shape(), 0);
  }
  if (!tape) return value;
  tape->executed(CustomGradient(backward), list, {&value, 1});
  return value;
}

Tensor stop_gradient(const Tensor& x) { return execute(StopGradient(), x); }

}  // namespace plimsoll
