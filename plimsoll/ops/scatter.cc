// scatter, scatter_add, scatter_update: add to the rows at the indices, or replace them.
#include <fmt/format.h>

#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/device/device.h"
#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/kernels/movement.h"
#include "plimsoll/ops/axis_list.h"
#include "plimsoll/ops/check_indices.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/make_tensor.h"

namespace plimsoll {
namespace {

bool can_add(DType dtype) noexcept { return dtype == f32 || dtype == f64 || dtype == i32 || dtype == i64; }

// The dtype in which elements are added up.
DType dtype_to_add(DType dtype) noexcept { return is_half(dtype) ? f32 : dtype == boolean ? boolean : i32; }

// Rows of f32, in the order of the indices: one item per column.
bool launch_add_rows(KernelQueue& queue, const ConstTensorView& updates, const ConstTensorView& indices,
                     const TensorView& out) noexcept {
  const std::int64_t rows = out.shape()[0], count = static_cast<std::int64_t>(indices.size());
  const std::int64_t width = count == 0 ? 0 : static_cast<std::int64_t>(updates.size()) / count;
  KernelCall call(indices.dtype() == i32 ? "scatter_add.i32" : "scatter_add.i64");
  call.out(out.bytes()).in(updates.bytes()).in(indices.bytes()).integer(rows).integer(count).integer(width);
  return queue.run(call.items(static_cast<std::size_t>(width)));
}

// Updates have the shape of the indices, then that of a row.
void require_rows(const char* where, const Shape& indices, const Shape& updates, std::span<const std::int64_t> row) {
  SizeList wanted;
  wanted.add(indices.sizes());
  wanted.add(row);
  const Shape shape = wanted.shape();
  bool fits = updates.rank() == shape.rank();
  for (std::size_t axis = 0; fits && axis < shape.rank(); ++axis) fits = may_equal(updates[axis], shape[axis]);
  if (!fits)
    throw InvalidArgument(fmt::format("{}: updates are {}; with indices {} they must be {}: a row for each index",
                                      where, updates.to_string(), indices.to_string(), shape.to_string()));
}

// Zeros with the updates added at rows. The number of rows is an attribute; the rows have the updates' shape.
class Scatter final : public OpOf<Scatter> {
 public:
  explicit Scatter(std::int64_t rows) noexcept : rows_(rows) {}
  const char* name() const noexcept override { return "scatter"; }
  std::string input_name(std::size_t input) const override { return input == 0 ? "indices" : "updates"; }
  void infer(const Specs& in, SpecList& out) const override {
    const Shape &indices = in.shape(0), &updates = in.shape(1);
    require_index_dtype(in.dtype(0), name());
    if (!can_add(in.dtype(1))) refuse_dtype(*this, in.dtype(1));
    const std::size_t fixed = std::min(indices.rank(), updates.rank());
    require_rows(name(), indices, updates, updates.sizes().subspan(fixed));
    SizeList sizes;
    sizes.add(rows_);
    sizes.add(updates.sizes().subspan(fixed));
    out.add(sizes.shape(), in.dtype(1));
  }
  void run(const OpRun& run) const noexcept override {
    if (run.out[0].size() > 0) std::memset(run.out[0].bytes(), 0, run.out[0].nbytes());
    internal::scatter_add(run.in[1], run.in[0], run.out[0]);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    return run.in[1].dtype() == f32 && launch_fill(queue, 0, run.out[0]) &&
           launch_add_rows(queue, run.in[1], run.in[0], run.out[0]);
  }
  bool index_rule(std::span<const ConstTensorView>, IndexRule& rule) const override {
    rule = axis_rule(0, {rows_}, 0, name());
    return true;
  }
  OpFacts facts() const noexcept override { return {.checks = true}; }
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(0)}; }
  void gradient(GradientContext& c) const override {
    if (c.wants(1)) c.give(1, gather(c.grad(), c.input(0)));
  }
  bool operator==(const Scatter&) const = default;

 private:
  std::int64_t rows_;
};

// Copies of x, changed at rows. Operands: indices, x, updates.
class ScatterInto final : public OpOf<ScatterInto> {
 public:
  explicit ScatterInto(bool adds) noexcept : adds_(adds) {}
  const char* name() const noexcept override { return adds_ ? "scatter_add" : "scatter_update"; }
  std::string input_name(std::size_t input) const override {
    return input == 0 ? "indices" : input == 1 ? "x" : "updates";
  }
  void infer(const Specs& in, SpecList& out) const override {
    const Shape& x = in.shape(1);
    require_index_dtype(in.dtype(0), name());
    require_same_dtype(*this, in, 1);
    if (adds_ && !can_add(in.dtype(1))) refuse_dtype(*this, in.dtype(1));
    require_rank_at_least(*this, x, 1);
    require_rows(name(), in.shape(0), in.shape(2), x.sizes().subspan(1));
    out.add(x, in.dtype(1));
  }
  void run(const OpRun& run) const noexcept override {
    if (run.out[0].bytes() != run.in[1].bytes()) copy(run.in[1], run.out[0]);
    if (adds_)
      internal::scatter_add(run.in[2], run.in[0], run.out[0]);
    else
      internal::scatter(run.in[2], run.in[0], run.out[0]);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    if (!adds_ || run.in[1].dtype() != f32) return false;
    if (run.out[0].bytes() != run.in[1].bytes() && !launch_copy(queue, run.in[1], run.out[0])) return false;
    return launch_add_rows(queue, run.in[2], run.in[0], run.out[0]);
  }
  bool index_rule(std::span<const ConstTensorView> in, IndexRule& rule) const override {
    rule = axis_rule(0, in[1].shape(), 0, name());
    return true;
  }
  OpFacts facts() const noexcept override { return {.checks = true, .overwrites = slot(1)}; }
  SavedSlots saved(SlotMask wanted) const override {
    return {.inputs = adds_ && (wanted & slot(2)) == 0 ? SlotMask{0} : slot(0)};
  }
  void gradient(GradientContext& c) const override;
  bool operator==(const ScatterInto&) const = default;

 private:
  bool adds_;
};

// Whether each index is the last of its equals: only its update stays.
Tensor is_last(const Tensor& indices, std::int64_t rows) {
  const Tensor order = make_tensor({.op = "scatter_update"}, indices.shape(), i64, device_of(indices));
  {
    const HostWrite written(order);
    const std::span<std::int64_t> positions = written.span<std::int64_t>();
    for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<std::int64_t>(i);
  }
  const Tensor none = make_tensor({.op = "scatter_update"}, {rows}, i64, device_of(indices));
  if (rows > 0) device_of(none).backend().fill(writable(none).bytes(), 0, 1, none.nbytes());
  return gather(execute(ScatterInto(false), indices, none, order), indices) == order;
}

void ScatterInto::gradient(GradientContext& c) const {
  if (adds_) {
    c.give(1, c.grad());
    if (c.wants(2)) c.give(2, gather(c.grad(), c.input(0)));
    return;
  }
  const Tensor& indices = c.input(0);
  const Tensor chosen = gather(c.grad(), indices), nothing = zeros_like(chosen);
  if (c.wants(1)) c.give(1, execute(ScatterInto(false), indices, c.grad(), nothing));
  if (!c.wants(2)) return;
  std::vector<std::int64_t> sizes(indices.shape().begin(), indices.shape().end());
  sizes.resize(chosen.rank(), 1);
  c.give(2, where(is_last(indices, c.input_shape(1)[0]).reshape(Shape(sizes)), chosen, nothing));
}

Tensor into(bool adds, const char* where, const Tensor& x, const Tensor& indices, const Tensor& updates) {
  require_tensor(x, where);
  if (x.rank() == 0)
    throw InvalidArgument(fmt::format("{}: x is a scalar, which has no rows; give it an axis with expand_dims", where));
  check_indices(indices, x.shape(), 0, where);
  return execute(ScatterInto(adds), indices, x, updates);
}

}  // namespace

Tensor scatter(const Tensor& indices, const Tensor& updates, const Shape& shape) {
  require_tensor(indices, "scatter", "indices");
  require_tensor(updates, "scatter", "updates");
  if (shape.rank() == 0 || shape[0] == kUnknownSize)
    throw InvalidArgument(
        fmt::format("scatter: shape {} has no number of rows; give the sizes of the result", shape.to_string()));
  require_rows("scatter", indices.shape(), updates.shape(), shape.sizes().subspan(1));
  check_indices(indices, shape, 0, "scatter");
  if (can_add(updates.dtype())) return execute(Scatter(shape[0]), indices, updates);
  return execute(Scatter(shape[0]), indices, updates.cast(dtype_to_add(updates.dtype()))).cast(updates.dtype());
}

Tensor scatter_add(const Tensor& x, const Tensor& indices, const Tensor& updates) {
  if (can_add(x.dtype()) || x.dtype() != updates.dtype()) return into(true, "scatter_add", x, indices, updates);
  const DType wide = dtype_to_add(x.dtype());
  return into(true, "scatter_add", x.cast(wide), indices, updates.cast(wide)).cast(x.dtype());
}

Tensor scatter_update(const Tensor& x, const Tensor& indices, const Tensor& updates) {
  return into(false, "scatter_update", x, indices, updates);
}

}  // namespace plimsoll
