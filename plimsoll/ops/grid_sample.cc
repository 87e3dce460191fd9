#include "plimsoll/ops/grid_sample.h"

#include <fmt/format.h>

#include "plimsoll/base/error.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/execute.h"

namespace plimsoll::internal {
namespace {

// Inputs x, grid, dy; outputs dx, dgrid.
class GridSampleGradient final : public OpOf<GridSampleGradient> {
 public:
  explicit GridSampleGradient(const GridRule& rule) noexcept : rule_(rule) {}
  const char* name() const noexcept override { return "grid_sample_gradient"; }
  void infer(const Specs& in, SpecList& out) const override {
    out.add(in.shape(0), in.dtype(0));
    out.add(in.shape(1), in.dtype(1));
  }
  void run(const OpRun& run) const noexcept override {
    grid_sample_gradient(rule_, run.in[0], run.in[1], run.in[2], {run.out[0], run.out[1]});
  }
  void gradient(GradientContext&) const override {
    throw Unsupported("grid_sample: has no second derivative; compute it with gather instead");
  }
  bool operator==(const GridSampleGradient&) const = default;

 private:
  GridRule rule_;
};

class GridSample final : public OpOf<GridSample> {
 public:
  explicit GridSample(const GridRule& rule) noexcept : rule_(rule) {}
  const char* name() const noexcept override { return "grid_sample"; }
  std::string input_name(std::size_t input) const override { return input == 0 ? "x" : "grid"; }
  void infer(const Specs& in, SpecList& out) const override;
  void run(const OpRun& run) const noexcept override { internal::grid_sample(rule_, run.in[0], run.in[1], run.out[0]); }
  SavedSlots saved(SlotMask) const override { return {.inputs = slot(0) | slot(1)}; }
  void gradient(GradientContext& c) const override {
    const Tensor* const inputs[] = {&c.input(0), &c.input(1), &c.grad(0)};
    std::vector<Tensor> gradients = execute_all(GridSampleGradient(rule_), inputs);
    c.give(0, std::move(gradients[0]));
    c.give(1, std::move(gradients[1]));
  }
  bool operator==(const GridSample&) const = default;

 private:
  GridRule rule_;
};

void GridSample::infer(const Specs& in, SpecList& out) const {
  const Shape &x = in.shape(0), &grid = in.shape(1);
  require_same_dtype(*this, in);
  if (in.dtype(0) != f32 && in.dtype(0) != f64) refuse_dtype(*this, in.dtype(0));
  const bool agrees = x.rank() >= 3 && x.rank() <= 5 && grid.rank() >= 2 && x[0] == grid[0] &&
                      grid.back() == static_cast<std::int64_t>(x.rank()) - 2;
  if (!agrees)
    throw InvalidArgument(fmt::format(
        "grid_sample: x {} and grid {} do not go together; give x [batch, places ..., channels] with one to three axes "
        "of places, and a grid [batch, points ..., as many coordinates]",
        x.to_string(), grid.to_string()));
  for (std::size_t axis = 1; axis + 1 < x.rank(); ++axis)
    if (x[axis] == 0) throw InvalidArgument(fmt::format("grid_sample: x {} has no places", x.to_string()));
  std::vector<std::int64_t> sizes(grid.begin(), grid.end());
  sizes.back() = x.back();
  out.add(Shape(sizes), in.dtype(0));
}

}  // namespace

Tensor grid_sample(const Tensor& x, const Tensor& grid, const GridRule& rule) {
  return execute(GridSample(rule), x, grid);
}

}  // namespace plimsoll::internal
