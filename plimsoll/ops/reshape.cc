// reshape, squeeze, expand_dims: other shapes on the same bytes.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/execute.h"

namespace plimsoll {
namespace {

class Reshape final : public OpOf<Reshape> {
 public:
  explicit Reshape(const Shape& shape) : shape_(shape) {}
  const char* name() const noexcept override { return "reshape"; }
  void infer(const Specs& in, SpecList& out) const override {
    if (!in.shape(0).is_known() || (shape_.is_known() && shape_.size() == in.shape(0).size()))
      return out.add(shape_, in.dtype(0));
    out.add(filled_in(in.shape(0)), in.dtype(0));
  }
  void run(const OpRun&) const noexcept override {}
  void gradient(GradientContext& c) const override { c.give(0, c.grad().reshape(c.input_shape(0))); }
  OpFacts facts() const noexcept override { return {.is_view = true, .overwrites = slot(0)}; }
  bool operator==(const Reshape&) const = default;

 private:
  // Our shape with its one unknown size computed.
  Shape filled_in(const Shape& from) const {
    std::int64_t sizes[kMaxRank], rest = static_cast<std::int64_t>(from.size()), known = 1;
    std::size_t unknown = kMaxRank;
    for (std::size_t axis = 0; axis < shape_.rank(); ++axis) {
      sizes[axis] = shape_[axis];
      if (sizes[axis] == kUnknownSize && unknown != kMaxRank)
        throw InvalidArgument(
            fmt::format("reshape: {} has two unknown sizes; one can be left open", shape_.to_string()));
      if (sizes[axis] == kUnknownSize)
        unknown = axis;
      else
        known *= sizes[axis];
    }
    if (unknown == kMaxRank || known == 0 || rest % known != 0)
      throw InvalidArgument(
          fmt::format("reshape: {} with {} elements cannot become {}", from.to_string(), rest, shape_.to_string()));
    sizes[unknown] = rest / known;
    return Shape(std::span<const std::int64_t>(sizes, shape_.rank()));
  }

  Shape shape_;
};

std::size_t unknown_sizes(const Shape& shape) {
  return static_cast<std::size_t>(std::count(shape.begin(), shape.end(), kUnknownSize));
}

// Adds or removes an axis of size 1, for shapes whose unknown sizes reshape cannot compute.
class ExpandDims final : public OpOf<ExpandDims> {
 public:
  explicit ExpandDims(std::size_t axis) noexcept : axis_(axis) {}
  const char* name() const noexcept override { return "expand_dims"; }
  void infer(const Specs& in, SpecList& out) const override {
    std::vector<std::int64_t> sizes(in.shape(0).begin(), in.shape(0).end());
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(axis_), 1);
    out.add(Shape(sizes), in.dtype(0));
  }
  void run(const OpRun&) const noexcept override {}
  void gradient(GradientContext& c) const override { c.give(0, c.grad().squeeze({static_cast<std::int64_t>(axis_)})); }
  OpFacts facts() const noexcept override { return {.is_view = true, .overwrites = slot(0)}; }
  bool operator==(const ExpandDims&) const = default;

 private:
  std::size_t axis_;
};

class Squeeze final : public OpOf<Squeeze> {
 public:
  explicit Squeeze(std::uint32_t axes) noexcept : axes_(axes) {}
  const char* name() const noexcept override { return "squeeze"; }
  void infer(const Specs& in, SpecList& out) const override {
    std::vector<std::int64_t> sizes;
    for (std::size_t axis = 0; axis < in.shape(0).rank(); ++axis)
      if ((axes_ >> axis & 1) == 0) sizes.push_back(in.shape(0)[axis]);
    out.add(Shape(sizes), in.dtype(0));
  }
  void run(const OpRun&) const noexcept override {}
  void gradient(GradientContext& c) const override {
    Tensor gradient = c.grad();
    for (std::size_t axis = 0; axis < c.input_shape(0).rank(); ++axis)
      if (axes_ >> axis & 1) gradient = gradient.expand_dims(static_cast<std::int64_t>(axis));
    c.give(0, gradient);
  }
  OpFacts facts() const noexcept override { return {.is_view = true, .overwrites = slot(0)}; }
  bool operator==(const Squeeze&) const = default;

 private:
  std::uint32_t axes_;
};

}  // namespace

Tensor Tensor::reshape(const Shape& shape) const { return execute(Reshape(shape.or_scalar()), *this); }

Tensor Tensor::squeeze(const Axes& axes) const {
  const std::uint32_t mask = axes.mask(rank(), "squeeze");
  std::vector<std::int64_t> sizes;
  std::uint32_t left_out = 0;
  for (std::size_t axis = 0; axis < rank(); ++axis) {
    if ((mask >> axis & 1) == 0 || (axes.is_all() && shape()[axis] != 1)) {
      sizes.push_back(shape()[axis]);
    } else if (shape()[axis] != 1) {
      throw InvalidArgument(
          fmt::format("squeeze: axis {} of shape {} has size {}, not 1", axis, shape().to_string(), shape()[axis]));
    } else {
      left_out |= std::uint32_t{1} << axis;
    }
  }
  return unknown_sizes(shape()) < 2 ? reshape(Shape(sizes)) : execute(Squeeze(left_out), *this);
}

Tensor Tensor::expand_dims(std::int64_t axis) const {
  const std::size_t place = resolve_axis(axis, rank() + 1, "expand_dims");
  if (unknown_sizes(shape()) >= 2) return execute(ExpandDims(place), *this);
  std::vector<std::int64_t> sizes(shape().begin(), shape().end());
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(place), 1);
  return reshape(Shape(sizes));
}

}  // namespace plimsoll
