// transpose: the axes in another order.
#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/movement.h"
#include "plimsoll/ops/axis_list.h"
#include "plimsoll/ops/check_indices.h"
#include "plimsoll/ops/execute.h"
#include "plimsoll/ops/launch.h"
#include "plimsoll/ops/movement.h"

namespace plimsoll {
namespace {

class Transpose final : public OpOf<Transpose> {
 public:
  explicit Transpose(std::span<const std::int64_t> permutation) : permutation_(permutation) {}
  const char* name() const noexcept override { return "transpose"; }
  void infer(const Specs& in, SpecList& out) const override {
    const Shape& shape = in.shape(0);
    check(shape);
    SizeList sizes;
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) sizes.add(shape[source(axis, shape.rank())]);
    out.add(sizes.shape(), in.dtype(0));
  }
  void run(const OpRun& run) const noexcept override {
    std::int64_t permutation[kMaxRank];
    const std::size_t rank = run.in[0].rank();
    for (std::size_t axis = 0; axis < rank; ++axis) permutation[axis] = static_cast<std::int64_t>(source(axis, rank));
    internal::transpose(run.in[0], std::span<const std::int64_t>(permutation, rank), run.out[0]);
  }
  bool launch(KernelQueue& queue, const OpRun& run) const noexcept override {
    const std::size_t rank = run.in[0].rank();
    const BoxLayout dense = box_layout(run.in[0].shape(), {});
    BoxLayout from;
    for (std::size_t axis = 0; axis < rank; ++axis) from.strides[axis] = dense.strides[source(axis, rank)];
    return launch_box(queue, run.in[0], from, run.out[0]);
  }
  void gradient(GradientContext& c) const override {
    std::vector<std::int64_t> inverse(permutation_.size());
    for (std::size_t axis = 0; axis < inverse.size(); ++axis)
      inverse[source(axis, inverse.size())] = static_cast<std::int64_t>(axis);
    c.give(0, c.grad().transpose(inverse));
  }

  // Whether axes with more than one element keep their order, so that the elements need not move.
  bool moves_nothing(const Shape& shape) const noexcept {
    std::size_t last = 0;
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
      const std::size_t from = source(axis, shape.rank());
      if (shape[from] == 1) continue;
      if (from < last) return false;
      last = from;
    }
    return true;
  }
  bool operator==(const Transpose&) const = default;

 private:
  // The axis of x that becomes `axis`.
  std::size_t source(std::size_t axis, std::size_t rank) const noexcept {
    if (permutation_.size() == 0) return rank - 1 - axis;
    return static_cast<std::size_t>(permutation_[axis] < 0 ? permutation_[axis] + static_cast<std::int64_t>(rank)
                                                           : permutation_[axis]);
  }
  void check(const Shape& shape) const {
    if (permutation_.size() == 0) return;
    std::uint32_t seen = 0;
    bool valid = permutation_.size() == shape.rank();
    for (std::size_t axis = 0; valid && axis < shape.rank(); ++axis) {
      const std::size_t from = source(axis, shape.rank());  // A negative one is now too large.
      valid = from < shape.rank() && (seen >> from & 1) == 0;
      if (valid) seen |= std::uint32_t{1} << from;
    }
    if (!valid)
      throw InvalidArgument(fmt::format("transpose: {} does not order the {} axes of shape {}; name each once",
                                        permutation_.to_string(), shape.rank(), shape.to_string()));
  }

  AxisList permutation_;
};

}  // namespace

Tensor Tensor::transpose(const std::vector<std::int64_t>& permutation) const {
  require_tensor(*this, "transpose");
  const Transpose op(permutation);
  const SpecRef spec{&shape(), dtype()};
  SpecList result;
  op.infer(Specs({&spec, 1}), result);
  return shape().is_known() && op.moves_nothing(shape()) ? reshape(result[0].shape) : execute(op, *this);
}

}  // namespace plimsoll
