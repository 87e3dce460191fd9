// tile, repeat: repeat elements.
#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/movement.h"
#include "plimsoll/ops/axis_list.h"
#include "plimsoll/ops/check_indices.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll {
namespace {

// Uses an axis for the copies and one for the elements of each, where there are both, so that one copy does it all.
// False when there are more axes than shapes keep without the heap.
bool tile_box(const ConstTensorView& x, const TensorView& out) noexcept {
  const Strides from = row_major_strides(x.shape()), to = row_major_strides(out.shape());
  BoxLayout source, target;
  std::int64_t sizes[Shape::kInlineRank];
  std::size_t rank = 0;
  const auto append = [&](std::int64_t size, std::int64_t from_stride, std::int64_t to_stride) {
    if (size == 1) return true;
    if (rank == Shape::kInlineRank) return false;
    source.strides[rank] = from_stride, target.strides[rank] = to_stride, sizes[rank++] = size;
    return true;
  };
  for (std::size_t axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t size = x.shape()[axis], copies = out.shape()[axis] / size;
    if (!append(copies, 0, to[axis] * size) || !append(size, from[axis], to[axis])) return false;
  }
  copy_box(x, source, out, target, Shape(std::span<const std::int64_t>(sizes, rank)));
  return true;
}

class Tile final : public OpOf<Tile> {
 public:
  explicit Tile(std::span<const std::int64_t> multiples) : multiples_(multiples) {}
  const char* name() const noexcept override { return "tile"; }
  void infer(const Specs& in, SpecList& out) const override {
    const Shape& shape = in.shape(0);
    bool fits = multiples_.size() == shape.rank();
    SizeList sizes(shape);
    for (std::size_t axis = 0; fits && axis < shape.rank(); ++axis) {
      fits = multiples_[axis] >= 0;
      if (multiples_[axis] == 0)
        sizes[axis] = 0;
      else if (fits && shape[axis] != kUnknownSize)
        fits = !__builtin_mul_overflow(shape[axis], multiples_[axis], &sizes[axis]);
    }
    if (!fits)
      throw InvalidArgument(fmt::format("tile: multiples {} for shape {}; give a number, 0 or more, for each axis",
                                        multiples_.to_string(), shape.to_string()));
    out.add(sizes.shape(), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    if (run.out[0].size() > 0 && !tile_box(run.in[0], run.out[0])) internal::tile(run.in[0], run.out[0]);
  }
  // The sum over the copies, with a separate axis for the copies of each axis.
  void gradient(GradientContext& c) const override {
    const Shape& shape = c.input_shape(0);
    std::vector<std::int64_t> sizes, copies;
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
      if (multiples_[axis] != 1) {
        copies.push_back(static_cast<std::int64_t>(sizes.size()));
        sizes.push_back(multiples_[axis]);
      }
      sizes.push_back(shape[axis]);
    }
    c.give(0, copies.empty() ? c.grad() : c.grad().reshape(Shape(sizes)).sum(copies));
  }
  bool operator==(const Tile&) const = default;

 private:
  AxisList multiples_;
};

}  // namespace

Tensor tile(const Tensor& x, const std::vector<std::int64_t>& multiples) { return execute(Tile(multiples), x); }

Tensor repeat(const Tensor& x, std::int64_t repeats, std::int64_t axis) {
  require_tensor(x, "repeat");
  const std::size_t along = resolve_axis(axis, x.rank(), "repeat");
  if (repeats < 0)
    throw InvalidArgument(fmt::format("repeat: {} times for shape {}; give 0 or more", repeats, x.shape().to_string()));
  std::vector<std::int64_t> multiples(x.rank() + 1, 1), sizes(x.shape().begin(), x.shape().end());
  multiples[along + 1] = repeats;
  const Tensor copies = tile(x.expand_dims(static_cast<std::int64_t>(along) + 1), multiples);
  if (sizes[along] != kUnknownSize) sizes[along] *= repeats;
  return copies.reshape(Shape(sizes));
}

}  // namespace plimsoll
