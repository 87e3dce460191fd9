// gather, embedding_lookup, take_along_axis: elements chosen by index.
#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/movement.h"
#include "plimsoll/ops/axis_list.h"
#include "plimsoll/ops/check_indices.h"
#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/ops/movement.h"
#include "plimsoll/ops/take_along.h"
#include "plimsoll/tensor/host_access.h"
#include "plimsoll/tensor/make_tensor.h"
#include "plimsoll/tensor/tracer.h"

namespace plimsoll {
namespace {

class Gather final : public OpOf<Gather> {
 public:
  Gather(const char* name, std::size_t axis) noexcept : name_(name), axis_(axis) {}
  const char* name() const noexcept override { return name_; }
  std::string input_name(std::size_t input) const override { return input == 0 ? "x" : "indices"; }
  void infer(const Specs& in, SpecList& out) const override {
    const Shape &shape = in.shape(0), &indices = in.shape(1);
    resolve_axis(static_cast<std::int64_t>(axis_), shape.rank(), name_);
    require_index_dtype(in.dtype(1), name_);
    SizeList sizes;
    sizes.add(shape.sizes().first(axis_));
    sizes.add(indices.sizes());
    sizes.add(shape.sizes().subspan(axis_ + 1));
    out.add(sizes.shape(), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override { internal::gather(run.in[0], run.in[1], axis_, run.out[0]); }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    const ConstTensorView &x = run.in[0], &indices = run.in[1];
    const TensorView& out = run.out[0];
    if (size_of(x.dtype()) != 4) return false;
    std::int64_t width = 1;
    for (std::size_t axis = axis_ + 1; axis < x.rank(); ++axis) width *= x.shape()[axis];
    KernelCall call(indices.dtype() == i32 ? "gather.i32" : "gather.i64");
    call.out(out.bytes()).in(x.bytes()).in(indices.bytes()).integer(static_cast<std::int64_t>(out.size()));
    call.integer(x.shape()[axis_]).integer(static_cast<std::int64_t>(indices.size())).integer(width);
    return queue.run(call.items(out.size()));
  }
  bool index_rule(std::span<const ConstTensorView> in, IndexRule& rule) const override {
    rule = axis_rule(1, in[0].shape(), axis_, name_);
    return true;
  }
  OpFacts facts() const noexcept override { return {.checks = true}; }
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(1)}; }
  // Added up at the places the elements came from. For an axis other than the first, moves that axis to the front and
  // back.
  void gradient(GradientContext& c) const override {
    if (!c.wants(0)) return;
    const Shape &shape = c.input_shape(0), &indices = c.input_shape(1);
    std::vector<std::int64_t> sizes = {shape[axis_]};
    for (std::size_t axis = 0; axis < shape.rank(); ++axis)
      if (axis != axis_) sizes.push_back(shape[axis]);
    if (axis_ == 0) return c.give(0, scatter(c.input(1), c.grad(), Shape(sizes)));
    std::vector<std::int64_t> there, back;
    const auto axis = static_cast<std::int64_t>(axis_), rank = static_cast<std::int64_t>(indices.rank());
    for (std::int64_t i = 0; i < rank; ++i) there.push_back(axis + i);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(c.grad().rank()); ++i)
      if (i < axis || i >= axis + rank) there.push_back(i);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(shape.rank()); ++i)
      back.push_back(i < axis ? i + 1 : i == axis ? 0 : i);
    c.give(0, scatter(c.input(1), c.grad().transpose(there), Shape(sizes)).transpose(back));
  }
  bool operator==(const Gather&) const = default;

 private:
  const char* name_;
  std::size_t axis_;
};

// For each of `indices`, the place of its element in all of x.
Tensor places_along(const Shape& shape, const Tensor& indices, std::size_t along) {
  Tensor places = make_tensor({.op = "take_along_axis"}, indices.shape(), i64, device_of(indices));
  const HostRead read(indices);
  const HostWrite written(places);
  const ConstTensorView& from = read.view();
  std::int64_t* const to = written.data<std::int64_t>();
  std::int64_t inner = 1;
  for (std::size_t axis = along + 1; axis < shape.rank(); ++axis) inner *= shape[axis];
  const std::int64_t size = shape[along], chosen = indices.shape()[along];
  visit_dtype(from.dtype(), [&]<class T>(TypeTag<T>) {
    if constexpr (std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t>) {
      const T* const index = from.data<T>();
      for (std::int64_t i = 0, n = static_cast<std::int64_t>(from.size()); i < n; ++i)
        to[i] = (i / (chosen * inner) * size + index[i]) * inner + i % inner;
    }
  });
  return places;
}

}  // namespace

Tensor gather(const Tensor& x, const Tensor& indices, std::int64_t axis) {
  require_tensor(x, "gather");
  const std::size_t along = resolve_axis(axis, x.rank(), "gather");
  check_indices(indices, x.shape(), along, "gather");
  return execute(Gather("gather", along), x, indices);
}

Tensor gather(const Tensor& x, std::initializer_list<std::int64_t> indices, std::int64_t axis) {
  return gather(x, constant(indices), axis);
}

Tensor embedding_lookup(const Tensor& table, const Tensor& ids) {
  require_tensor(table, "embedding_lookup", "table");
  if (table.rank() == 0) throw InvalidArgument("embedding_lookup: the table is a scalar; give one of rows");
  IndexRule rule = axis_rule(0, table.shape(), 0, "embedding_lookup");
  rule.text = [](const IndexRule& words, const Shape& indices, std::int64_t position, std::int64_t index) {
    return index_text(words, indices, position, index,
                      fmt::format("the vocabulary of {}, the rows of the table {}", words.size, words.of.to_string()));
  };
  check_indices(ids, rule, "ids");
  return execute(Gather("embedding_lookup", 0), table, ids);
}

Tensor take_along_axis(const Tensor& x, const Tensor& indices, std::int64_t axis) {
  require_tensor(x, "take_along_axis");
  require_tensor(indices, "take_along_axis", "indices");
  const std::size_t along = resolve_axis(axis, x.rank(), "take_along_axis");
  bool fits = x.rank() == indices.rank();
  for (std::size_t i = 0; fits && i < x.rank(); ++i) fits = i == along || x.shape()[i] == indices.shape()[i];
  if (!fits)
    throw InvalidArgument(
        fmt::format("take_along_axis: x is {}, indices are {}; all sizes but that of axis {} must be equal",
                    x.shape().to_string(), indices.shape().to_string(), along));
  check_indices(indices, x.shape(), along, "take_along_axis");
  if (is_symbolic(indices)) return execute(TakeAlong(along), x, indices);
  return execute(Gather("take_along_axis", 0), x.flatten(), places_along(x.shape(), indices, along));
}

}  // namespace plimsoll
