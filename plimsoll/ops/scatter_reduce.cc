#include "plimsoll/ops/scatter_reduce.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/ops/check_indices.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll::internal {
namespace {

// Operands: indices, x, updates.
class ScatterReduce final : public OpOf<ScatterReduce> {
 public:
  explicit ScatterReduce(ScatterReduction reduction) noexcept : reduction_(reduction) {}
  const char* name() const noexcept override { return "scatter_reduce"; }
  std::string input_name(std::size_t input) const override {
    return input == 0 ? "indices" : input == 1 ? "x" : "updates";
  }
  void infer(const Specs& in, SpecList& out) const override {
    const Shape &indices = in.shape(0), &x = in.shape(1), &updates = in.shape(2);
    require_index_dtype(in.dtype(0), name());
    require_same_dtype(*this, in, 1);
    require_rank_at_least(*this, x, 1);
    bool fits = updates.rank() == indices.rank() + x.rank() - 1;
    for (std::size_t axis = 0; fits && axis < updates.rank(); ++axis)
      fits = updates[axis] == (axis < indices.rank() ? indices[axis] : x[axis - indices.rank() + 1]);
    if (!fits)
      throw InvalidArgument(fmt::format("{}: updates {} are not rows of x {} for the indices {}", name(),
                                        updates.to_string(), x.to_string(), indices.to_string()));
    out.add(x, in.dtype(1));
  }
  void run(const OpRun& run) const noexcept override {
    if (run.out[0].bytes() != run.in[1].bytes()) copy(run.in[1], run.out[0]);
    internal::scatter_reduce(reduction_, run.in[2], run.in[0], run.out[0]);
  }
  bool index_rule(std::span<const ConstTensorView> in, IndexRule& rule) const override {
    rule = axis_rule(0, in[1].shape(), 0, name());
    return true;
  }
  OpFacts facts() const noexcept override { return {.checks = true, .overwrites = slot(1)}; }
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(0) | slot(1) | slot(2), .outputs = slot(0)}; }
  void gradient(GradientContext& c) const override;
  bool operator==(const ScatterReduce&) const = default;

 private:
  ScatterReduction reduction_;
};

// Each factor's gradient is the product of the others. Zeros are counted and left out of the products, so that the
// product of the others is known where a factor is the only zero.
void give_of_product(GradientContext& c, const ScatterReduce& op) {
  const Tensor &indices = c.input(0), &x = c.input(1), &updates = c.input(2);
  const auto or_one = [](const Tensor& t) { return where(t == 0, ones_like(t), t); };
  const auto is_zero = [](const Tensor& t) { return (t == 0).cast(t.dtype()); };
  const Tensor others = execute(op, indices, or_one(x), or_one(updates));
  const Tensor zeros_in = scatter_add(is_zero(x), indices, is_zero(updates));
  const auto part = [&](const Tensor& factor, const Tensor& product, const Tensor& count) {
    const Tensor other_zeros = count - is_zero(factor);
    return where(other_zeros == 0, product / or_one(factor), zeros_like(factor));
  };
  if (c.wants(1)) c.give(1, c.grad() * part(x, others, zeros_in));
  if (!c.wants(2)) return;
  const Tensor product = gather(others, indices), count = gather(zeros_in, indices);
  c.give(2, gather(c.grad(), indices) * part(updates, product, count));
}

void ScatterReduce::gradient(GradientContext& c) const {
  if (reduction_ == ScatterReduction::multiply) return give_of_product(c, *this);
  const Tensor &indices = c.input(0), &x = c.input(1), &y = c.output(0);
  const Tensor stayed = (x == y).cast(x.dtype()), chosen = (c.input(2) == gather(y, indices)).cast(x.dtype());
  const Tensor part = c.grad() / scatter_add(stayed, indices, chosen);
  if (c.wants(1)) c.give(1, part * stayed);
  if (c.wants(2)) c.give(2, gather(part, indices) * chosen);
}

}  // namespace

Tensor scatter_reduce(const Tensor& x, const Tensor& indices, const Tensor& updates, ScatterReduction reduction) {
  constexpr const char* kName = "scatter_reduce";
  require_tensor(x, kName);
  require_tensor(updates, kName, "updates");
  if (x.rank() == 0) throw InvalidArgument("scatter_reduce: x is a scalar, which has no rows");
  check_indices(indices, x.shape(), 0, kName);
  const DType dtype = x.dtype();
  if (dtype == f32 || dtype == f64 || dtype == i32 || dtype == i64)
    return execute(ScatterReduce(reduction), indices, x, updates);
  const DType wide = is_half(dtype) ? f32 : i32;
  return execute(ScatterReduce(reduction), indices, x.cast(wide), updates.cast(wide)).cast(dtype);
}

}  // namespace plimsoll::internal
