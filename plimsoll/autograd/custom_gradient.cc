#include "plimsoll/autograd/custom_gradient.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/tensor/interceptor.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

// What a tape remembers of a call; the value was computed before.
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
    std::vector<Tensor> gradients = backward_(c.grad(), inputs);
    if (gradients.size() != inputs.size())
      throw InvalidArgument(fmt::format("custom_gradient: {} gradients for {} inputs; give one for each",
                                        gradients.size(), inputs.size()));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!gradients[i].is_empty_handle()) c.give(i, std::move(gradients[i]));
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
  {
    const InterceptWith nobody(nullptr);
    value = forward(inputs);
    if (tape && !value.is_empty_handle()) value = make_view(value, "custom_gradient", value.shape(), 0);
  }
  if (!tape) return value;
  std::vector<const Tensor*> list;
  for (const Tensor& input : inputs) list.push_back(&input);
  tape->executed(CustomGradient(backward), list, {&value, 1});
  return value;
}

Tensor stop_gradient(const Tensor& x) { return execute(StopGradient(), x); }

}  // namespace plimsoll
