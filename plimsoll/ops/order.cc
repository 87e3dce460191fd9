#include "plimsoll/ops/order.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/order.h"
#include "plimsoll/kernels/reduce.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/axis_split.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/ops/scratch.h"
#include "plimsoll/ops/take_along.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

class ArgExtreme final : public OpOf<ArgExtreme> {
 public:
  ArgExtreme(std::size_t axis, bool is_max) noexcept : axis_(axis), is_max_(is_max) {}
  const char* name() const noexcept override { return is_max_ ? "argmax" : "argmin"; }
  void infer(const Specs& in, SpecList& out) const override {
    const Shape& shape = in.shape(0);
    if (shape[axis_] == 0)
      throw InvalidArgument(fmt::format("{}: axis {} of shape {} is empty; there is nothing to choose from", name(),
                                        axis_, shape.to_string()));
    std::int64_t sizes[kMaxRank];
    std::size_t rank = 0;
    for (std::size_t axis = 0; axis < shape.rank(); ++axis)
      if (axis != axis_) sizes[rank++] = shape[axis];
    out.add(Shape(std::span<const std::int64_t>(sizes, rank)), i64);
  }
  void run(const OpRun& run) const noexcept override {
    if (run.out[0].size() == 0) return;
    (is_max_ ? plimsoll::argmax : plimsoll::argmin)(run.in[0], axis_, run.out[0]);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    return run.in[0].dtype() == f32 && launch_reduce(queue, is_max_ ? "argmax.f32" : "argmin.f32", run.in[0],
                                                     std::uint32_t{1} << axis_, run.out[0]);
  }
  OpFacts facts() const noexcept override { return {.has_gradient = false}; }
  bool operator==(const ArgExtreme&) const = default;

 private:
  std::size_t axis_;
  bool is_max_;
};

class TopKOp final : public OpOf<TopKOp> {
 public:
  explicit TopKOp(std::int64_t k) noexcept : k_(k) {}
  const char* name() const noexcept override { return "top_k"; }
  void infer(const Specs& in, SpecList& out) const override {
    const Shape& shape = in.shape(0);
    require_rank_at_least(*this, shape, 1);
    if (k_ < 0 || (shape.back() != kUnknownSize && k_ > shape.back()))
      throw InvalidArgument(fmt::format("top_k: k is {}, the last axis of shape {} has {}; give 0 to {}", k_,
                                        shape.to_string(), shape.back(), shape.back()));
    std::int64_t sizes[kMaxRank];
    std::copy(shape.begin(), shape.end(), sizes);
    sizes[shape.rank() - 1] = k_;
    const Shape chosen(std::span<const std::int64_t>(sizes, shape.rank()));
    out.add(chosen, in.dtype(0));
    out.add(chosen, i64);
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList& out) const override {
    return out[0].shape.size() == 0 ? 0 : top_k_scratch_bytes(in.shape(0));
  }
  void run(const OpRun& run) const noexcept override {
    internal::top_k(run.in[0], k_, run.out[0], run.out[1], run.scratch);
  }
  SavedSlots saved(SlotMask) const override { return {.outputs = slot(1)}; }
  void gradient(GradientContext& c) const override {
    const Shape& shape = c.input_shape(0);
    if (c.has_grad(0)) c.give(0, execute(PlaceAlong(shape.rank() - 1, shape.back()), c.grad(0), c.output(1)));
  }
  bool operator==(const TopKOp&) const = default;

 private:
  std::int64_t k_;
};

// Values and positions.
class Sort final : public OpOf<Sort> {
 public:
  Sort(std::size_t axis, SortOptions options) noexcept : axis_(axis), options_(options) {}
  const char* name() const noexcept override { return "sort"; }
  void infer(const Specs& in, SpecList& out) const override {
    out.add(in.shape(0), in.dtype(0));
    out.add(in.shape(0), i64);
  }
  std::size_t workspace_bytes(const Specs& in, const SpecList&) const override {
    const Shape& shape = in.shape(0);
    if (AxisSplit(shape, axis_).is_last()) return 0;
    return 2 * scratch_bytes(in.dtype(0), shape.size()) + scratch_bytes(i64, shape.size());
  }
  void run(const OpRun& run) const noexcept override {
    const ConstTensorView& x = run.in[0];
    if (x.size() == 0) return;
    const AxisSplit split(x.shape(), axis_);
    const SortFlags flags{.descending = options_.descending};
    const Shape moved = split.moved();
    if (split.is_last())
      return internal::sort(x.reshaped(moved), flags, run.out[0].reshaped(moved), run.out[1].reshaped(moved));
    ScratchViews scratch(run.scratch);
    const TensorView lanes = scratch.take(x.dtype(), moved), values = scratch.take(x.dtype(), moved),
                     indices = scratch.take(i64, moved);
    split.move_last(x, lanes);
    internal::sort(lanes, flags, values, indices);
    split.move_back(values, run.out[0]);
    split.move_back(indices, run.out[1]);
  }
  SavedSlots saved(SlotMask) const override { return {.outputs = slot(1)}; }
  void gradient(GradientContext& c) const override {
    if (c.has_grad(0)) c.give(0, execute(PlaceAlong(axis_, c.input_shape(0)[axis_]), c.grad(0), c.output(1)));
  }
  bool operator==(const Sort&) const = default;

 private:
  std::size_t axis_;
  SortOptions options_;
};

class Cumsum final : public OpOf<Cumsum> {
 public:
  Cumsum(std::size_t axis, CumsumOptions options) noexcept : axis_(axis), options_(options) {}
  const char* name() const noexcept override { return "cumsum"; }
  void infer(const Specs& in, SpecList& out) const override {
    if (in.dtype(0) == boolean) refuse_dtype(*this, boolean);
    out.add(in.shape(0), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    internal::cumsum(run.in[0], axis_, {.exclusive = options_.exclusive, .reverse = options_.reverse}, run.out[0]);
  }
  void gradient(GradientContext& c) const override {
    const CumsumOptions back{.exclusive = options_.exclusive, .reverse = !options_.reverse};
    c.give(0, execute(Cumsum(axis_, back), c.grad()));
  }
  OpFacts facts() const noexcept override { return {.overwrites = slot(0)}; }
  bool operator==(const Cumsum&) const = default;

 private:
  std::size_t axis_;
  CumsumOptions options_;
};

std::size_t axis_of(const Tensor& x, std::int64_t axis, const char* where) {
  if (x.is_empty_handle()) refuse_disposed(x, where, "x");
  return resolve_axis(axis, x.rank(), where);
}

std::vector<Tensor> sorted(const Tensor& x, std::int64_t axis, SortOptions options, const char* where) {
  const Tensor* const inputs[] = {&x};
  return execute_all(Sort(axis_of(x, axis, where), options), inputs);
}

}  // namespace

Tensor Tensor::argmax(std::int64_t axis) const {
  return execute(ArgExtreme(axis_of(*this, axis, "argmax"), true), *this);
}
Tensor Tensor::argmin(std::int64_t axis) const {
  return execute(ArgExtreme(axis_of(*this, axis, "argmin"), false), *this);
}

TopK top_k(const Tensor& x, std::int64_t k) {
  const Tensor* const inputs[] = {&x};
  std::vector<Tensor> outputs = execute_all(TopKOp(k), inputs);
  return {std::move(outputs[0]), std::move(outputs[1])};
}

Tensor sort(const Tensor& x, std::int64_t axis, SortOptions options) { return sorted(x, axis, options, "sort")[0]; }
Tensor argsort(const Tensor& x, std::int64_t axis, SortOptions options) {
  return sorted(x, axis, options, "argsort")[1];
}

Tensor cumsum(const Tensor& x, std::int64_t axis, CumsumOptions options) {
  return execute(Cumsum(axis_of(x, axis, "cumsum"), options), x);
}

}  // namespace plimsoll
