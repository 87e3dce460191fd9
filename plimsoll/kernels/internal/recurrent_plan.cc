#include "plimsoll/kernels/internal/recurrent_plan.h"

#include "plimsoll/base/error.h"
#include "plimsoll/base/rounding.h"
#include "plimsoll/kernels/matmul.h"

namespace plimsoll::internal {
namespace {

constexpr DType kTypes[] = {f32, f64};

template <class T>
constexpr DType kTypeOf = kTypes[sizeof(T) == 8];

// The largest of the products that go back from so many rows.
template <class T>
std::size_t product_bytes_back(const RecurrentPlan<T>& plan, std::int64_t rows) noexcept {
  const Shape x = {rows, plan.inputs}, h = {rows, plan.units}, z = {rows, plan.width()};
  const DType dtype = kTypeOf<T>;
  return std::max({matmul_scratch_bytes(z, {plan.inputs, plan.width()}, dtype, {.transpose_b = true}),
                   matmul_scratch_bytes(x, z, dtype, {.transpose_a = true}),
                   matmul_scratch_bytes(h, z, dtype, {.transpose_a = true}),
                   matmul_scratch_bytes(h, h, dtype, {.transpose_a = true})});
}

// The largest of the products that the call will make; the last chunk may be shorter.
template <class T>
std::size_t product_bytes(const RecurrentPlan<T>& plan, bool back) noexcept {
  if (!back) return matmul_scratch_bytes({plan.steps(), plan.inputs}, {plan.inputs, plan.width()}, kTypeOf<T>, {});
  return std::max(product_bytes_back(plan, plan.chunk_rows()),
                  product_bytes_back(plan, plan.time % plan.chunk_steps() * plan.batch));
}

std::int64_t gates_of(RecurrentCell cell) noexcept {
  return cell == RecurrentCell::simple ? 1 : cell == RecurrentCell::lstm ? 4 : 3;
}

template <class T>
void carve_scratch(RecurrentPlan<T>& plan, bool back, Carver& scratch) noexcept {
  const std::int64_t columns = recurrent_loops_of<T>().columns, units = plan.units, state = plan.batch * units;
  const std::int64_t first = plan.first_columns();
  plan.panels = scratch.take<T>(back ? first * round_up(units, columns) : units * round_up(first, columns));
  if (plan.is_gru()) plan.third_panels = scratch.take<T>(units * round_up(units, columns));
  if (back) {
    const std::int64_t rows = plan.chunk_rows(), group = plan.group_rows();
    plan.bias_sums = scratch.take<T>(divide_up(plan.batch, group) * 2 * plan.bias_columns());
    plan.slopes = scratch.take<T>(rows * plan.width());
    plan.chunk_x = scratch.take<T>(rows * plan.inputs);
    plan.chunk_dx = scratch.take<T>(rows * plan.inputs);
    plan.chunk_h = scratch.take<T>(rows * units);
    plan.extra_slopes = scratch.take<T>(plan.is_gru() ? rows * units : 0);
    plan.chunk_extra = scratch.take<T>(plan.is_gru() ? rows * units : 0);
    plan.dh = scratch.take<T>(state);
    plan.dc = scratch.take<T>(plan.is_lstm() ? state : 0);
    plan.dreset = scratch.take<T>(plan.is_gru() ? state : 0);
    plan.third = scratch.take<T>(plan.is_gru() ? units * units : 0);
  } else {
    plan.bias = scratch.take<T>(plan.width());
    plan.final_h = scratch.take<T>(state);
    plan.final_c = scratch.take<T>(plan.is_lstm() ? state : 0);
  }
}

}  // namespace

template <class T>
RecurrentPlan<T> plan_recurrent(const RecurrentRule& options, const RecurrentSizes& sizes, bool back,
                                std::byte* workspace_memory, std::byte* scratch_memory) noexcept {
  RecurrentPlan<T> plan = {};
  plan.options = options;
  plan.batch = sizes.batch, plan.time = sizes.time, plan.inputs = sizes.inputs, plan.units = sizes.units;
  plan.gates = gates_of(options.cell);
  Carver workspace(workspace_memory), scratch(scratch_memory);
  const std::int64_t width = plan.width(), units = plan.units;
  plan.values = {workspace.take<T>(plan.steps() * width), plan.time * width, width};
  const bool keep = options.keep_for_gradient || back;
  const auto rows = [&](bool needed, bool kept) -> StepRows<T> {
    if (!needed || (back && !kept)) return {};
    if (kept) return {workspace.take<T>(plan.steps() * units), plan.time * units, units};
    return {scratch.take<T>(plan.batch * units), units, 0};
  };
  plan.h = rows(true, keep && plan.keeps_h());
  plan.c = rows(plan.is_lstm(), keep);
  plan.extra = rows(plan.is_gru(), keep);
  carve_scratch(plan, back, scratch);
  const std::size_t bytes = product_bytes(plan, back);
  plan.products = scratch.take<std::byte>(static_cast<std::int64_t>(bytes));
  plan.workspace_bytes = workspace.used();
  plan.scratch_bytes = scratch.used();
  return plan;
}

template RecurrentPlan<float> plan_recurrent<float>(const RecurrentRule&, const RecurrentSizes&, bool, std::byte*,
                                                    std::byte*) noexcept;
template RecurrentPlan<double> plan_recurrent<double>(const RecurrentRule&, const RecurrentSizes&, bool, std::byte*,
                                                      std::byte*) noexcept;

RecurrentSizes recurrent_sizes(const RecurrentInputs& in) noexcept {
  PLIMSOLL_CHECK(in.x.rank() == 3 && in.kernel.rank() == 2 && in.recurrent_kernel.rank() == 2);
  PLIMSOLL_CHECK(in.kernel.shape()[0] == in.x.shape()[2] && in.kernel.shape()[1] == in.recurrent_kernel.shape()[1]);
  return {in.x.shape()[0], in.x.shape()[1], in.x.shape()[2], in.recurrent_kernel.shape()[0]};
}

}  // namespace plimsoll::internal
