// slice, strided_slice, reverse, roll: parts of each axis, in steps, backwards, around.
#include <fmt/format.h>

#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/movement.h"
#include "plimsoll/ops/axis_list.h"
#include "plimsoll/ops/check_indices.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll {
namespace {

class Slice final : public OpOf<Slice> {
 public:
  Slice(AxisList begin, AxisList size) : begin_(std::move(begin)), size_(std::move(size)) {}
  const char* name() const noexcept override { return "slice"; }
  void infer(const Specs& in, SpecList& out) const override {
    const Shape& shape = in.shape(0);
    if (begin_.size() != size_.size() || size_.size() > shape.rank())
      throw InvalidArgument(fmt::format("slice: begin {} and size {} for shape {}; give both for each axis",
                                        begin_.to_string(), size_.to_string(), shape.to_string()));
    SizeList sizes(shape);
    for (std::size_t axis = 0; axis < size_.size(); ++axis) sizes[axis] = size_on(axis, shape);
    out.add(sizes.shape(), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    const Shape& shape = run.out[0].shape();
    copy_box(run.in[0], box_layout(run.in[0].shape(), begin_.span()), run.out[0], box_layout(shape, {}), shape);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    return launch_box(queue, run.in[0], box_layout(run.in[0].shape(), begin_.span()), run.out[0]);
  }
  OpFacts facts() const noexcept override { return {.is_view = is_leading()}; }
  std::size_t view_offset(const Specs& in) const override {
    if (begin_.size() == 0) return 0;
    std::size_t row = size_of(in.dtype(0));
    for (std::size_t axis = 1; axis < in.shape(0).rank(); ++axis) row *= static_cast<std::size_t>(in.shape(0)[axis]);
    return static_cast<std::size_t>(begin_[0]) * row;
  }
  void gradient(GradientContext& c) const override {
    const Shape &whole = c.input_shape(0), &part = c.grad().shape();
    Paddings paddings(whole.rank());
    bool cut = false;
    for (std::size_t axis = 0; axis < size_.size(); ++axis) {
      paddings[axis] = {begin_[axis], size_[axis] == -1 ? 0 : whole[axis] - begin_[axis] - part[axis]};
      cut |= paddings[axis].first != 0 || paddings[axis].second != 0;
    }
    c.give(0, cut ? pad(c.grad(), paddings) : c.grad());
  }
  bool operator==(const Slice&) const = default;

 private:
  // Cut along the first axis only: then the part is one piece of x's bytes.
  bool is_leading() const noexcept {
    for (std::size_t axis = 1; axis < size_.size(); ++axis)
      if (begin_[axis] != 0 || size_[axis] != -1) return false;
    return true;
  }
  std::int64_t size_on(std::size_t axis, const Shape& shape) const {
    const std::int64_t whole = shape[axis], begin = begin_[axis], size = size_[axis];
    const bool known = whole != kUnknownSize;
    if (begin < 0 || size < -1 || (known && (begin > whole || size > whole - begin)))
      throw InvalidArgument(fmt::format(
          "slice: begin {} and size {} are outside of axis {} of shape {}; use 0 <= begin, and size -1 for the rest",
          begin, size, axis, shape.to_string()));
    return size != -1 ? size : known ? whole - begin : kUnknownSize;
  }

  AxisList begin_, size_;
};

// The positions that the strides of an axis select: the first one, and the number of steps.
struct Walk {
  std::int64_t first, step, count;
};

// begin:end:stride for each axis, as given.
class Strided {
 public:
  Strided(std::span<const std::int64_t> begin, std::span<const std::int64_t> end, std::span<const std::int64_t> strides)
      : begin_(begin), end_(end), strides_(strides) {}

  void check(const Shape& shape) const {
    const bool fits = begin_.size() == end_.size() && begin_.size() <= shape.rank();
    if (!fits || (strides_.size() != 0 && strides_.size() != begin_.size()))
      throw InvalidArgument(fmt::format(
          "strided_slice: {} begins, {} ends and {} strides for shape {}; give all for each axis, or no strides",
          begin_.size(), end_.size(), strides_.size(), shape.to_string()));
    for (std::size_t axis = 0; axis < begin_.size(); ++axis)
      if (stride(axis) == 0 || stride(axis) == INT64_MIN)
        throw InvalidArgument(
            fmt::format("strided_slice: stride {} on axis {} of shape {}; give 1 or more, or -1 or less", stride(axis),
                        axis, shape.to_string()));
  }
  // Requires an axis of known size.
  Walk walk(std::size_t axis, std::int64_t size) const noexcept {
    if (axis >= begin_.size()) return {0, 1, size};
    const std::int64_t step = stride(axis), low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    const std::int64_t first = edge(begin_[axis], size, step > 0 ? low : high, low, high),
                       last = edge(end_[axis], size, step > 0 ? high : low, low, high);
    const std::int64_t distance = step > 0 ? last - first : first - last, pace = step > 0 ? step : -step;
    return {first, step, distance <= 0 ? 0 : (distance - 1) / pace + 1};
  }
  // Whether the axis stays as it is whatever its size.
  bool is_whole(std::size_t axis) const noexcept {
    return axis >= begin_.size() ||
           ((begin_[axis] == 0 || begin_[axis] == kOpen) && end_[axis] == kOpen && stride(axis) == 1);
  }
  Shape shape_of_part(const Shape& shape) const {
    SizeList sizes(shape);
    for (std::size_t axis = 0; axis < shape.rank(); ++axis)
      if (shape[axis] != kUnknownSize) sizes[axis] = walk(axis, shape[axis]).count;
    return sizes.shape();
  }
  // The part in a tensor of that shape.
  BoxLayout layout(const Shape& shape) const noexcept {
    std::int64_t begin[kMaxRank], step[kMaxRank];
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
      const Walk on_axis = walk(axis, shape[axis]);
      begin[axis] = on_axis.first;
      step[axis] = on_axis.count > 1 ? on_axis.step : 1;  // Where it does not matter, a step that cannot overflow.
    }
    return box_layout(shape, {begin, shape.rank()}, {step, shape.rank()});
  }

  Tensor slice(const Tensor& x) const;
  Tensor into_zeros(const Tensor& part, const Shape& shape) const;
  bool operator==(const Strided&) const = default;

 private:
  std::int64_t stride(std::size_t axis) const noexcept { return strides_.size() == 0 ? 1 : strides_[axis]; }
  static std::int64_t edge(std::int64_t position, std::int64_t size, std::int64_t open, std::int64_t low,
                           std::int64_t high) noexcept {
    if (position == kOpen) return open;
    return std::clamp(position < 0 ? position + size : position, low, high);
  }

  AxisList begin_, end_, strides_;
};

class StridedSlice final : public OpOf<StridedSlice> {
 public:
  explicit StridedSlice(const Strided& part) : part_(part) {}
  const char* name() const noexcept override { return "strided_slice"; }
  void infer(const Specs& in, SpecList& out) const override {
    part_.check(in.shape(0));
    out.add(part_.shape_of_part(in.shape(0)), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    const Shape& shape = run.out[0].shape();
    copy_box(run.in[0], part_.layout(run.in[0].shape()), run.out[0], box_layout(shape, {}), shape);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    return launch_box(queue, run.in[0], part_.layout(run.in[0].shape()), run.out[0]);
  }
  void gradient(GradientContext& c) const override { c.give(0, part_.into_zeros(c.grad(), c.input_shape(0))); }
  bool operator==(const StridedSlice&) const = default;

 private:
  Strided part_;
};

// Zeros, except for the part.
class StridedSliceGradient final : public OpOf<StridedSliceGradient> {
 public:
  StridedSliceGradient(const Strided& part, const Shape& shape) : part_(part), shape_(shape) {}
  const char* name() const noexcept override { return "strided_slice_gradient"; }
  void infer(const Specs& in, SpecList& out) const override {
    SizeList sizes(shape_);
    for (std::size_t axis = 0; axis < shape_.rank(); ++axis)
      if (shape_[axis] == kUnknownSize && part_.is_whole(axis)) sizes[axis] = in.shape(0)[axis];
    out.add(sizes.shape(), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    const Shape& shape = run.in[0].shape();
    if (run.out[0].size() > 0) std::memset(run.out[0].bytes(), 0, run.out[0].nbytes());
    copy_box(run.in[0], box_layout(shape, {}), run.out[0], part_.layout(run.out[0].shape()), shape);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    return launch_fill(queue, 0, run.out[0]) &&
           launch_into_box(queue, run.in[0], run.out[0], part_.layout(run.out[0].shape()));
  }
  void gradient(GradientContext& c) const override { c.give(0, part_.slice(c.grad())); }
  bool operator==(const StridedSliceGradient&) const = default;

 private:
  Strided part_;
  Shape shape_;
};

Tensor Strided::slice(const Tensor& x) const { return execute(StridedSlice(*this), x); }
Tensor Strided::into_zeros(const Tensor& part, const Shape& shape) const {
  return execute(StridedSliceGradient(*this, shape), part);
}

class Reverse final : public OpOf<Reverse> {
 public:
  explicit Reverse(std::uint32_t axes) noexcept : axes_(axes) {}
  const char* name() const noexcept override { return "reverse"; }
  void infer(const Specs& in, SpecList& out) const override { out.add(in.shape(0), in.dtype(0)); }
  void run(const OpRun& run) const noexcept override {
    const Shape& shape = run.out[0].shape();
    copy_box(run.in[0], layout(shape), run.out[0], box_layout(shape, {}), shape);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    return launch_box(queue, run.in[0], layout(run.out[0].shape()), run.out[0]);
  }
  void gradient(GradientContext& c) const override { c.give(0, execute(Reverse(axes_), c.grad())); }
  bool operator==(const Reverse&) const = default;

 private:
  BoxLayout layout(const Shape& shape) const noexcept {
    std::int64_t begin[kMaxRank], step[kMaxRank];
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
      const bool backwards = axes_ >> axis & 1;
      begin[axis] = backwards ? shape[axis] - 1 : 0;
      step[axis] = backwards ? -1 : 1;
    }
    return box_layout(shape, {begin, shape.rank()}, {step, shape.rank()});
  }
  std::uint32_t axes_;
};

}  // namespace

Tensor Tensor::slice(const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& size) const {
  AxisList sizes(size);
  for (std::size_t axis = 1; axis < std::min({sizes.size(), begin.size(), rank()}); ++axis)
    if (begin[axis] == 0 && sizes[axis] == shape()[axis]) sizes[axis] = -1;  // The op then knows that it is whole.
  return execute(Slice(AxisList(begin), std::move(sizes)), *this);
}

Tensor strided_slice(const Tensor& x, const std::vector<std::int64_t>& begin, const std::vector<std::int64_t>& end,
                     const std::vector<std::int64_t>& strides) {
  return Strided(begin, end, strides).slice(x);
}

Tensor reverse(const Tensor& x, const Axes& axes) {
  require_tensor(x, "reverse");
  return execute(Reverse(axes.mask(x.rank(), "reverse")), x);
}

Tensor roll(const Tensor& x, std::int64_t shift, std::int64_t axis) {
  require_tensor(x, "roll");
  const std::size_t along = resolve_axis(axis, x.rank(), "roll");
  const std::int64_t size = x.shape()[along];
  const std::int64_t cut = size <= 0 ? 0 : (size - shift % size) % size;  // The position that becomes the first.
  std::vector<std::int64_t> begin(along + 1), head(along + 1, -1);
  head[along] = cut;
  const Tensor before = x.slice(begin, head);
  begin[along] = cut;
  return concat({x.slice(begin, std::vector<std::int64_t>(along + 1, -1)), before}, axis);
}

}  // namespace plimsoll
