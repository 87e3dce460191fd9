// Between sparse and dense: conversions, reductions, products entry by entry.
#include "plimsoll/kernels/sparse.h"
#include "plimsoll/ops/check_indices.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/internal/sparse_parts.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/reduced_shape.h"
#include "plimsoll/ops/scratch.h"
#include "plimsoll/ops/sparse_math.h"

namespace plimsoll {
namespace {

void require_coordinates(const Op& op, const Specs& in) {
  if (in.dtype(1) != i64 || in.shape(1).rank() != 2)
    throw InvalidArgument(fmt::format("{}: indices are {} {}; give int64 [entries, rank]", op.name(),
                                      dtype_name(in.dtype(1)), in.shape(1).to_string()));
}

// Elements of x, of the sparse shape or one that broadcasts to it, at the entries' places. Operands: x, indices.
class SparseTake final : public OpOf<SparseTake> {
 public:
  const char* name() const noexcept override { return "sparse_take"; }
  std::string input_name(std::size_t input) const override { return input == 0 ? "dense" : "indices"; }
  void infer(const Specs& in, SpecList& out) const override {
    require_coordinates(*this, in);
    out.add({in.shape(1)[0]}, in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    const auto rank = static_cast<std::size_t>(run.in[1].shape()[1]);
    sparse_take(run.in[0], run.in[1], sparse_steps(run.in[0].shape(), rank), run.out[0]);
  }
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(1)}; }
  void gradient(GradientContext& c) const override;
};

// Zeros of a shape with the values added at their places. Operands: values, indices.
class SparseAddAt final : public OpOf<SparseAddAt> {
 public:
  SparseAddAt(const char* name, const Shape& shape) noexcept : name_(name), shape_(shape) {}
  const char* name() const noexcept override { return name_; }
  std::string input_name(std::size_t input) const override { return input == 0 ? "values" : "indices"; }
  void infer(const Specs& in, SpecList& out) const override {
    require_coordinates(*this, in);
    out.add(shape_, in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    const auto rank = static_cast<std::size_t>(run.in[1].shape()[1]);
    sparse_add_at(run.in[0], run.in[1], sparse_steps(shape_, rank), run.out[0]);
  }
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(1)}; }
  void gradient(GradientContext& c) const override {
    if (c.wants(0)) c.give(0, execute(SparseTake(), c.grad(), c.input(1)));
  }
  bool operator==(const SparseAddAt&) const = default;

 private:
  const char* name_;
  Shape shape_;
};

void SparseTake::gradient(GradientContext& c) const {
  if (c.wants(0)) c.give(0, execute(SparseAddAt(name(), c.input_shape(0)), c.grad(), c.input(1)));
}

// The largest value at each place of a shape to which `full` elements of the sparse tensor are reduced. Operands:
// values, indices.
class SparseMaxAt final : public OpOf<SparseMaxAt> {
 public:
  SparseMaxAt(const Shape& shape, std::int64_t full) noexcept : shape_(shape), full_(full) {}
  const char* name() const noexcept override { return "sparse_max"; }
  std::string input_name(std::size_t input) const override { return input == 0 ? "values" : "indices"; }
  void infer(const Specs& in, SpecList& out) const override {
    require_coordinates(*this, in);
    out.add(shape_, in.dtype(0));
  }
  std::size_t workspace_bytes(const Specs&, const SpecList& out) const override {
    return scratch_bytes(i64, out[0].shape.size());
  }
  void run(const OpRun& run) const noexcept override {
    const auto rank = static_cast<std::size_t>(run.in[1].shape()[1]);
    const TensorView counts = ScratchViews(run.scratch).take(i64, shape_);
    sparse_max_at(run.in[0], run.in[1], sparse_steps(shape_, rank), full_, counts, run.out[0]);
  }
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(0) | slot(1), .outputs = slot(0)}; }
  // Shared by all elements that equal it, including the zeros that are not stored.
  void gradient(GradientContext& c) const override {
    if (!c.wants(0)) return;
    const Tensor &x = c.input(0), &at = c.input(1), &y = c.output(0), &g = c.grad();
    const SparseAddAt add("sparse_max", shape_);
    const Tensor hit = (x == execute(SparseTake(), y, at)).cast(g.dtype());
    const Tensor unstored = static_cast<double>(full_) - execute(add, ones_like(hit), at);
    const Tensor sharers = execute(add, hit, at) + where(y == 0, unstored, zeros_like(unstored));
    c.give(0, hit * execute(SparseTake(), g / sharers, at));
  }
  bool operator==(const SparseMaxAt&) const = default;

 private:
  Shape shape_;
  std::int64_t full_;
};

Tensor take_entries(const Tensor& dense, const SparseTensor& x, const char* where) {
  require_tensor(dense, where, "dense");
  const bool fits = dense.rank() <= x.rank() && broadcast_shapes(dense.shape(), x.shape(), where) == x.shape();
  if (!fits)
    throw InvalidArgument(fmt::format("{}: a dense {} does not broadcast to the sparse {}", where,
                                      dense.shape().to_string(), x.shape().to_string()));
  return execute(SparseTake(), dense, x.indices());
}

// How many elements of x are reduced to one element.
std::int64_t group_size(const Shape& shape, std::uint32_t axes) {
  std::int64_t size = 1;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    if (axes >> axis & 1) size *= shape[axis];
  return size;
}

}  // namespace

Tensor internal::sum_at(const Tensor& values, const Tensor& positions, std::int64_t count) {
  if (is_half(values.dtype())) return scatter(positions, values.cast(f32), {count}).cast(values.dtype());
  return scatter(positions, values, {count});
}

SparseTensor sparse_from_dense(const Tensor& x) {
  require_tensor(x, "sparse_from_dense");
  if (x.rank() == 0) throw InvalidArgument("sparse_from_dense: x is a scalar; give a tensor of rank 1 or more");
  require_host(x, "sparse_from_dense");
  const std::int64_t entries = count_nonzero(x.view());
  const Tensor indices = new_indices({entries, x.rank()}, x, "sparse_from_dense");
  nonzero_coordinates(x.view(), filling(indices));
  const SparseTensor result = SparseParts::coo(indices, execute(SparseTake(), x, indices), x.shape());
  return x.rank() == 2 ? result.to_csr() : result;
}

Tensor SparseTensor::to_dense() const { return execute(SparseAddAt("to_dense", shape_), values_, indices()); }

Tensor SparseTensor::sum(const Axes& axes, ReduceOptions options) const {
  if (dtype() == boolean) throw InvalidArgument("sum: is not defined for bool; cast the sparse tensor first");
  const std::uint32_t mask = axes.mask(rank(), "sum");
  if (is_half(dtype())) return cast(f32).sum(axes, options).cast(dtype());
  const Shape shape = shape_without(shape_, mask, options.keep_dims);
  if (shape_without(shape_, mask, false).rank() == 0) return values_.sum().reshape(shape);
  return execute(SparseAddAt("sparse_sum", shape_without(shape_, mask, true)), values_, indices()).reshape(shape);
}

Tensor SparseTensor::mean(const Axes& axes, ReduceOptions options) const {
  if (!is_floating(dtype()))
    throw InvalidArgument(
        fmt::format("mean: is not defined for sparse {}; cast it to a float first", dtype_name(dtype())));
  if (is_half(dtype())) return cast(f32).mean(axes, options).cast(dtype());
  return sum(axes, options) / static_cast<double>(group_size(shape_, axes.mask(rank(), "mean")));
}

Tensor SparseTensor::max(const Axes& axes, ReduceOptions options) const {
  const std::uint32_t mask = axes.mask(rank(), "max");
  const SparseMaxAt op(shape_without(shape_, mask, true), group_size(shape_, mask));
  return execute(op, values_, indices()).reshape(shape_without(shape_, mask, options.keep_dims));
}

SparseTensor operator*(const SparseTensor& x, const Tensor& dense) {
  return x.with_values(x.values() * take_entries(dense, x, "multiply"));
}
SparseTensor operator*(const Tensor& dense, const SparseTensor& x) { return x * dense; }
SparseTensor operator/(const SparseTensor& x, const Tensor& dense) {
  return x.with_values(x.values() / take_entries(dense, x, "divide"));
}

}  // namespace plimsoll
