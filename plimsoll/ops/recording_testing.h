// Recording: an interceptor for tests of ops: keeps what ran, and goes back through it for gradients.
//
//   Recording recording;
//   Tensor y = recording.watch([&] { return x.transpose(); });
//   Tensor dx = recording.gradient(y, g, x);               // g: the gradient of y
//   recording.op(0).infer(...);                            // the op as it was recorded
//
// check_linear(f, x) compares the gradient of a linear function, and the gradient of that gradient, with what they must
// be: the product with the function's matrix, found column by column.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "plimsoll/ops/creation.h"
#include "plimsoll/tensor/interceptor.h"

namespace plimsoll {

class Recording final : public Interceptor {
 public:
  void executed(const Op& op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs) override {
    steps_.emplace_back(op);
    for (const Tensor* input : inputs) steps_.back().inputs.push_back(*input);
    steps_.back().outputs.assign(outputs.begin(), outputs.end());
  }
  template <class F>
  auto watch(F&& f) {
    const InterceptWith here(this);
    return f();
  }
  const Op& op(std::size_t step) const { return *steps_.at(step).op; }
  std::size_t size() const noexcept { return steps_.size(); }

  // Of the sum of y * seed, with respect to x; an empty handle when they are not connected.
  Tensor gradient(const Tensor& y, const Tensor& seed, const Tensor& x) const {
    std::map<std::uint64_t, Tensor> gradients{{y.id(), seed}};
    for (std::size_t i = steps_.size(); i-- > 0;) {
      Context context(steps_[i], gradients);
      if (steps_[i].op->facts().has_gradient && context.has_grad(0)) steps_[i].op->gradient(context);
    }
    return gradients[x.id()];
  }

 private:
  struct Step {
    explicit Step(const Op& from) : memory(new std::byte[from.object_bytes()]), op(from.copy_to(memory.get())) {}
    Step(Step&&) = default;
    ~Step() {
      if (memory) op->~Op();
    }
    std::unique_ptr<std::byte[]> memory;
    Op* op;
    std::vector<Tensor> inputs, outputs;
  };

  class Context final : public GradientContext {
   public:
    Context(const Step& step, std::map<std::uint64_t, Tensor>& gradients) : step_(step), gradients_(gradients) {}
    std::size_t num_inputs() const noexcept override { return step_.inputs.size(); }
    bool wants(std::size_t input) const noexcept override { return is_floating(step_.inputs[input].dtype()); }
    const Shape& input_shape(std::size_t input) const override { return step_.inputs[input].shape(); }
    DType input_dtype(std::size_t input) const override { return step_.inputs[input].dtype(); }
    const Tensor& input(std::size_t input) override {
      EXPECT_TRUE(step_.op->saved(UINT32_MAX).inputs & slot(input)) << step_.op->name() << " did not save " << input;
      return step_.inputs[input];
    }
    const Tensor& output(std::size_t output) override {
      EXPECT_TRUE(step_.op->saved(UINT32_MAX).outputs & slot(output)) << step_.op->name() << " did not save " << output;
      return step_.outputs[output];
    }
    const Tensor& grad(std::size_t output) override { return gradients_.at(step_.outputs[output].id()); }
    bool has_grad(std::size_t output) const noexcept override {
      return gradients_.count(step_.outputs[output].id()) != 0;
    }
    void give(std::size_t input, Tensor gradient) override {
      if (!wants(input)) return;
      EXPECT_EQ(gradient.shape(), input_shape(input)) << step_.op->name();
      EXPECT_EQ(gradient.dtype(), input_dtype(input)) << step_.op->name();
      Tensor& sum = gradients_[step_.inputs[input].id()];
      sum = sum.is_empty_handle() ? gradient : sum + gradient;
    }

   private:
    const Step& step_;
    std::map<std::uint64_t, Tensor>& gradients_;
  };

  std::vector<Step> steps_;
};

using TensorFunction = std::function<Tensor(const Tensor&)>;

// Different small whole numbers, so that sums of products are exact.
inline Tensor whole_numbers(const Shape& shape) {
  std::vector<float> values(shape.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 7 + 3) % 11) - 4;
  return from_vector(values, shape);
}

// Requires a linear f of f32 tensors; `depth` gradients one after the other are checked.
inline void check_linear(const TensorFunction& f, const Tensor& x, int depth = 2) {
  Recording recording;
  const Tensor y = recording.watch([&] { return f(x); });
  const Tensor seed = whole_numbers(y.shape());
  const Tensor found = recording.gradient(y, seed, x);
  ASSERT_FALSE(found.is_empty_handle()) << "no gradient reached x";
  for (std::size_t column = 0; column < x.size(); ++column) {
    std::vector<float> unit(x.size());
    unit[column] = 1;
    const float expected = (f(from_vector(unit, x.shape())) * seed).sum().item<float>();
    ASSERT_EQ(found.to_vector<float>()[column], expected) << "element " << column << " of depth " << depth;
  }
  if (depth > 1) check_linear([&](const Tensor& g) { return recording.gradient(y, g, x); }, seed, depth - 1);
}

}  // namespace plimsoll
