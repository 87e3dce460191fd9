// pad, mirror_pad: add elements before and after those of each axis.
#include <fmt/format.h>

#include <cstring>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/kernels/movement.h"
#include "plimsoll/ops/axis_list.h"
#include "plimsoll/ops/check_indices.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll {
namespace {

void require_pair_for_each_axis(const char* where, std::size_t pairs, const Shape& shape) {
  if (pairs != shape.rank())
    throw InvalidArgument(fmt::format("{}: {} paddings for shape {} of {} axes; give a pair for each axis", where,
                                      pairs, shape.to_string(), shape.rank()));
}

class Pad final : public OpOf<Pad> {
 public:
  Pad(AxisList before, AxisList after, const Number& value)
      : before_(std::move(before)), after_(std::move(after)), value_(value) {}
  const char* name() const noexcept override { return "pad"; }
  void infer(const Specs& in, SpecList& out) const override {
    const Shape& shape = in.shape(0);
    require_pair_for_each_axis(name(), before_.size(), shape);
    SizeList sizes(shape);
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
      std::int64_t added = 0;
      if (before_[axis] < 0 || after_[axis] < 0 || __builtin_add_overflow(before_[axis], after_[axis], &added) ||
          (shape[axis] != kUnknownSize && __builtin_add_overflow(added, sizes[axis], &sizes[axis])))
        throw InvalidArgument(
            fmt::format("pad: {} before and {} after axis {} of shape {}; give 0 or more, and cut with slice",
                        before_[axis], after_[axis], axis, shape.to_string()));
    }
    out.add(sizes.shape(), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    const TensorView& out = run.out[0];
    if (out.size() == 0) return;
    const std::uint64_t element = value_.to(out.dtype());
    if (element == 0)
      std::memset(out.bytes(), 0, out.nbytes());
    else
      copy(ConstTensorView(&element, 0, out.dtype(), Shape::scalar()), out);
    const Shape& shape = run.in[0].shape();
    copy_box(run.in[0], box_layout(shape, {}), out, box_layout(out.shape(), before_.span()), shape);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    const TensorView& out = run.out[0];
    return launch_fill(queue, value_.to(out.dtype()), out) &&
           launch_into_box(queue, run.in[0], out, box_layout(out.shape(), before_.span()));
  }
  void gradient(GradientContext& c) const override {
    const Shape& shape = c.input_shape(0);
    std::vector<std::int64_t> begin(before_.span().begin(), before_.span().end()), size(shape.begin(), shape.end());
    for (std::size_t axis = 0; axis < size.size(); ++axis)
      if (after_[axis] == 0) size[axis] = -1;  // The rest, even when the size is not known.
    c.give(0, c.grad().slice(begin, size));
  }
  bool operator==(const Pad&) const = default;

 private:
  AxisList before_, after_;
  Number value_;
};

// The axis with `before` and `after` more positions, mirrored at its edges; `skip` is 1 when the edge is left out.
Tensor mirror_axis(const Tensor& x, std::size_t axis, std::int64_t before, std::int64_t after, std::int64_t skip) {
  const std::int64_t size = x.shape()[axis];
  const auto mirrored = [&](std::int64_t begin, std::int64_t count) {
    std::vector<std::int64_t> begins(axis + 1), sizes(axis + 1, -1);
    begins[axis] = begin;
    sizes[axis] = count;
    return reverse(x.slice(begins, sizes), {static_cast<std::int64_t>(axis)});
  };
  std::vector<Tensor> parts;
  if (before > 0) parts.push_back(mirrored(skip, before));
  parts.push_back(x);
  if (after > 0) parts.push_back(mirrored(size - skip - after, after));
  return concat(parts, static_cast<std::int64_t>(axis));
}

}  // namespace

Tensor pad(const Tensor& x, const Paddings& paddings, const Number& value) {
  std::vector<std::int64_t> before, after;
  for (const auto& [first, last] : paddings) {
    before.push_back(first);
    after.push_back(last);
  }
  return execute(Pad(AxisList(before), AxisList(after), value), x);
}

Tensor mirror_pad(const Tensor& x, const Paddings& paddings, std::string_view mode) {
  require_tensor(x, "mirror_pad");
  if (mode != "reflect" && mode != "symmetric")
    throw InvalidArgument(
        fmt::format("mirror_pad: \"{}\" is not a mode; use \"reflect\", \"symmetric\", or pad with a value", mode));
  require_pair_for_each_axis("mirror_pad", paddings.size(), x.shape());
  const std::int64_t skip = mode == "reflect" ? 1 : 0;
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    const auto [before, after] = paddings[axis];
    const std::int64_t most = std::max<std::int64_t>(x.shape()[axis] - skip, 0);
    if (before < 0 || after < 0 || before > most || after > most)
      throw InvalidArgument(
          fmt::format("mirror_pad: {} before and {} after axis {} of shape {}; \"{}\" can give 0 to {}", before, after,
                      axis, x.shape().to_string(), mode, most));
  }
  Tensor result = x.slice({}, {});
  for (std::size_t axis = 0; axis < x.rank(); ++axis)
    if (paddings[axis].first > 0 || paddings[axis].second > 0)
      result = mirror_axis(result, axis, paddings[axis].first, paddings[axis].second, skip);
  return result;
}

}  // namespace plimsoll
