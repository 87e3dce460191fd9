// concat, stack, and their inverses split and unstack.
#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/movement.h"
#include "plimsoll/ops/axis_list.h"
#include "plimsoll/ops/check_indices.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll {
namespace {

void require_operands(const Op& op, const Specs& in) {
  if (in.size() == 0) throw InvalidArgument(fmt::format("{}: no tensors; give at least one", op.name()));
  require_same_dtype(op, in);
}

// `size` positions of an axis from `begin` on.
Tensor part_of(const Tensor& x, std::size_t axis, std::int64_t begin, std::int64_t size) {
  std::vector<std::int64_t> begins(axis + 1), sizes(axis + 1, -1);
  begins[axis] = begin;
  sizes[axis] = size;
  return x.slice(begins, sizes);
}

class Concat final : public OpOf<Concat> {
 public:
  explicit Concat(std::int64_t axis) noexcept : axis_(axis) {}
  const char* name() const noexcept override { return "concat"; }
  std::string input_name(std::size_t input) const override { return fmt::format("operand {}", input); }
  void infer(const Specs& in, SpecList& out) const override {
    require_operands(*this, in);
    const std::size_t along = resolve_axis(axis_, in.shape(0).rank(), name());
    SizeList sizes(in.shape(0));
    for (std::size_t i = 1; i < in.size(); ++i) append(in, i, along, sizes);
    out.add(sizes.shape(), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    const auto rank = static_cast<std::int64_t>(run.out[0].rank());
    const auto along = static_cast<std::size_t>(axis_ < 0 ? axis_ + rank : axis_);
    std::int64_t begin = 0;
    for (const ConstTensorView& part : run.in) begin = concat_part(part, along, begin, run.out[0]);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    const auto rank = static_cast<std::int64_t>(run.out[0].rank());
    const auto along = static_cast<std::size_t>(axis_ < 0 ? axis_ + rank : axis_);
    BoxLayout to = box_layout(run.out[0].shape(), {});
    for (const ConstTensorView& part : run.in) {
      if (!launch_into_box(queue, part, run.out[0], to)) return false;
      to.start += part.shape()[along] * to.strides[along];
    }
    return true;
  }
  void gradient(GradientContext& c) const override {
    const std::size_t along = resolve_axis(axis_, c.input_shape(0).rank(), name());
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < c.num_inputs(); ++i) {
      const std::int64_t size = c.input_shape(i)[along];
      if (c.wants(i)) c.give(i, part_of(c.grad(), along, begin, size));
      begin += size;
    }
  }
  bool operator==(const Concat&) const = default;

 private:
  void append(const Specs& in, std::size_t input, std::size_t along, SizeList& sizes) const {
    const Shape &first = in.shape(0), &other = in.shape(input);
    bool fits = first.rank() == other.rank();
    for (std::size_t axis = 0; fits && axis < first.rank(); ++axis) {
      if (axis != along) {
        fits = may_equal(sizes[axis], other[axis]);
        if (sizes[axis] == kUnknownSize) sizes[axis] = other[axis];
      } else if (sizes[axis] == kUnknownSize || other[axis] == kUnknownSize) {
        sizes[axis] = kUnknownSize;
      } else {
        fits = !__builtin_add_overflow(sizes[axis], other[axis], &sizes[axis]);
      }
    }
    if (!fits)
      throw InvalidArgument(fmt::format("concat: {} is {}, {} is {}; all sizes but that of axis {} must be equal",
                                        input_name(0), first.to_string(), input_name(input), other.to_string(), along));
  }

  std::int64_t axis_;
};

class Stack final : public OpOf<Stack> {
 public:
  explicit Stack(std::int64_t axis) noexcept : axis_(axis) {}
  const char* name() const noexcept override { return "stack"; }
  std::string input_name(std::size_t input) const override { return fmt::format("operand {}", input); }
  void infer(const Specs& in, SpecList& out) const override {
    require_operands(*this, in);
    const std::size_t along = resolve_axis(axis_, in.shape(0).rank() + 1, name());
    SizeList row(in.shape(0));
    for (std::size_t i = 1; i < in.size(); ++i) match(in, i, row);
    const Shape shape = row.shape();
    SizeList sizes;
    sizes.add(shape.sizes().first(along));
    sizes.add(static_cast<std::int64_t>(in.size()));
    sizes.add(shape.sizes().subspan(along));
    out.add(sizes.shape(), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    for (std::size_t i = 0; i < run.in.size(); ++i) {
      const Shape& shape = run.in[i].shape();
      copy_box(run.in[i], box_layout(shape, {}), run.out[0], place_of(i, run.out[0].shape()), shape);
    }
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    for (std::size_t i = 0; i < run.in.size(); ++i)
      if (!launch_into_box(queue, run.in[i], run.out[0], place_of(i, run.out[0].shape()))) return false;
    return true;
  }
  void gradient(GradientContext& c) const override {
    const std::size_t along = resolve_axis(axis_, c.input_shape(0).rank() + 1, name());
    for (std::size_t i = 0; i < c.num_inputs(); ++i)
      if (c.wants(i)) c.give(i, part_of(c.grad(), along, static_cast<std::int64_t>(i), 1).reshape(c.input_shape(i)));
  }
  bool operator==(const Stack&) const = default;

 private:
  // The place of an operand in the result.
  BoxLayout place_of(std::size_t input, const Shape& out) const noexcept {
    const auto along = static_cast<std::size_t>(axis_ < 0 ? axis_ + static_cast<std::int64_t>(out.rank()) : axis_);
    const BoxLayout all = box_layout(out, {});
    BoxLayout to{.start = static_cast<std::int64_t>(input) * all.strides[along], .strides = all.strides};
    std::copy(all.strides.begin() + static_cast<std::ptrdiff_t>(along) + 1, all.strides.end(),
              to.strides.begin() + static_cast<std::ptrdiff_t>(along));
    return to;
  }
  void match(const Specs& in, std::size_t input, SizeList& row) const {
    const Shape &first = in.shape(0), &other = in.shape(input);
    bool fits = first.rank() == other.rank();
    for (std::size_t axis = 0; fits && axis < first.rank(); ++axis) {
      fits = may_equal(row[axis], other[axis]);
      if (row[axis] == kUnknownSize) row[axis] = other[axis];
    }
    if (!fits)
      throw InvalidArgument(fmt::format("stack: {} is {}, {} is {}; all shapes must be equal", input_name(0),
                                        first.to_string(), input_name(input), other.to_string()));
  }

  std::int64_t axis_;
};

// The axis to cut and its size, which must be known.
std::size_t cut_axis(const Tensor& x, std::int64_t axis, const char* where) {
  require_tensor(x, where);
  const std::size_t along = resolve_axis(axis, x.rank(), where);
  if (x.shape()[along] == kUnknownSize)
    throw InvalidArgument(fmt::format("{}: the size of axis {} of shape {} is not known yet; cut it with slice", where,
                                      along, x.shape().to_string()));
  return along;
}

}  // namespace

Tensor concat(std::span<const Tensor> tensors, std::int64_t axis) {
  if (tensors.size() != 1) return execute_list(Concat(axis), tensors);
  require_tensor(tensors[0], "concat", "operand 0");
  resolve_axis(axis, tensors[0].rank(), "concat");
  return tensors[0].slice({}, {});
}

Tensor stack(std::span<const Tensor> tensors, std::int64_t axis) { return execute_list(Stack(axis), tensors); }

std::vector<Tensor> unstack(const Tensor& x, std::int64_t axis) {
  const std::size_t along = cut_axis(x, axis, "unstack");
  std::vector<Tensor> parts(static_cast<std::size_t>(x.shape()[along]));
  for (std::size_t i = 0; i < parts.size(); ++i)
    parts[i] = part_of(x, along, static_cast<std::int64_t>(i), 1).squeeze({static_cast<std::int64_t>(along)});
  return parts;
}

std::vector<Tensor> split(const Tensor& x, std::int64_t parts, std::int64_t axis) {
  const std::size_t along = cut_axis(x, axis, "split");
  const std::int64_t size = x.shape()[along];
  if (parts < 1 || size % parts != 0)
    throw InvalidArgument(fmt::format(
        "split: axis {} of shape {} has size {}, which {} does not divide; give another number or a list of sizes",
        along, x.shape().to_string(), size, parts));
  return split(x, std::vector<std::int64_t>(static_cast<std::size_t>(parts), size / parts), axis);
}

std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, std::int64_t axis) {
  const std::size_t along = cut_axis(x, axis, "split");
  std::int64_t left = x.shape()[along];
  for (const std::int64_t size : sizes) left = size < 0 || left < size ? -1 : left - size;
  if (left != 0)
    throw InvalidArgument(fmt::format("split: sizes {} do not add up to the {} of axis {} of shape {}",
                                      AxisList(sizes).to_string(), x.shape()[along], along, x.shape().to_string()));
  std::vector<Tensor> parts;
  parts.reserve(sizes.size());
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(part_of(x, along, begin, size));
    begin += size;
  }
  return parts;
}

}  // namespace plimsoll
