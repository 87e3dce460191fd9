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
  std::size_t bytes = 0;
  if (!back || plan.num_remade() > 0)
    for (const std::int64_t steps : {plan.segment_steps(), plan.time % plan.segment_steps()})
      bytes = std::max(bytes, matmul_scratch_bytes({plan.batch * steps, plan.inputs}, {plan.inputs, plan.width()},
                                                   kTypeOf<T>, {.part_of_rows = plan.steps()}));
  if (!back) return bytes;
  return std::max({bytes, product_bytes_back(plan, plan.chunk_rows()),
                   product_bytes_back(plan, plan.time % plan.chunk_steps() * plan.batch)});
}

std::int64_t gates_of(RecurrentCell cell) noexcept {
  return cell == RecurrentCell::simple ? 1 : cell == RecurrentCell::lstm ? 4 : 3;
}

// What is kept of segments that the gradient reads as they are, and of the others.
template <class T>
void carve_workspace(RecurrentPlan<T>& plan, Carver& workspace) noexcept {
  const std::int64_t segments = plan.num_segments(), state = plan.batch * plan.units;
  const std::int64_t kept = (segments - plan.num_remade()) * plan.batch * plan.segment_steps();
  plan.kept_values = workspace.take<T>(kept * plan.width());
  if (!plan.options.keep_for_gradient) return;
  plan.kept_h = workspace.take<T>(plan.keeps_h() ? kept * plan.units : 0);
  plan.kept_c = workspace.take<T>(plan.is_lstm() ? kept * plan.units : 0);
  plan.kept_extra = workspace.take<T>(plan.is_gru() ? kept * plan.units : 0);
  if (!plan.has_starts()) return;
  plan.start_h = workspace.take<T>(segments * state);
  plan.start_c = workspace.take<T>(plan.is_lstm() ? segments * state : 0);
  plan.kept_bias = workspace.take<T>(plan.width() * (plan.has_bias_pair() ? 2 : 1));
}

// Of what is not kept.
template <class T>
void carve_made(RecurrentPlan<T>& plan, bool back, Carver& scratch) noexcept {
  const bool keep = plan.options.keep_for_gradient, makes = plan.num_remade() > 0;
  const std::int64_t state = plan.batch * plan.units, rows = makes ? plan.batch * plan.segment_steps() : 0;
  plan.made_values = scratch.take<T>(rows * plan.width());
  plan.segment_x = scratch.take<T>(plan.num_segments() > 1 ? rows * plan.inputs : 0);
  // Where no step is looked at again one state will do.
  const std::int64_t one = back && !makes ? 0 : state, all = keep ? rows * plan.units : one;
  plan.made_h = scratch.take<T>(plan.keeps_h() && keep ? all : one);
  plan.made_c = scratch.take<T>(plan.is_lstm() ? all : 0);
  plan.made_extra = scratch.take<T>(plan.is_gru() ? all : 0);
  if (!keep && plan.has_starts()) {
    plan.start_h = scratch.take<T>(state);
    plan.start_c = scratch.take<T>(plan.is_lstm() ? state : 0);
  }
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
    if (plan.num_remade() == 0) return;
    plan.forward_panels = scratch.take<T>(units * round_up(first, columns));
    plan.forward_third_panels = scratch.take<T>(plan.is_gru() ? units * round_up(units, columns) : 0);
  }
  plan.bias = scratch.take<T>(plan.width());
  plan.final_h = scratch.take<T>(state);
  plan.final_c = scratch.take<T>(plan.is_lstm() ? state : 0);
}

}  // namespace

template <class T>
void RecurrentPlan<T>::select(std::int64_t number) noexcept {
  const std::int64_t length = segment_steps(), remaining = num_segments() - number;
  segment = number;
  low = std::max<std::int64_t>(0, time - remaining * length);
  high = time - (remaining - 1) * length;
  const std::int64_t steps = high - low, first = std::min(place(low), place(high - 1));
  const bool is_kept = number >= num_remade();
  const std::int64_t before = (number - num_remade()) * batch * length;  // Rows of those kept before it.
  const auto rows = [&](T* kept, T* made, std::int64_t columns) -> StepRows<T> {
    return {is_kept ? kept + before * columns : made, steps * columns, columns, first};
  };
  const auto states = [&](T* kept, T* made, bool is_held) -> StepRows<T> {
    return is_held ? rows(kept, made, units) : StepRows<T>{made, units, 0};
  };
  const bool keep = options.keep_for_gradient;
  values = rows(kept_values, made_values, width());
  h = states(kept_h, made_h, keep && keeps_h());
  c = states(kept_c, made_c, keep);
  extra = states(kept_extra, made_extra, keep);
}

template <class T>
RecurrentPlan<T> plan_recurrent(const RecurrentRule& options, const RecurrentSizes& sizes, bool back,
                                std::byte* workspace_memory, std::byte* scratch_memory) noexcept {
  RecurrentPlan<T> plan = {};
  plan.options = options;
  plan.batch = sizes.batch, plan.time = sizes.time, plan.inputs = sizes.inputs, plan.units = sizes.units;
  plan.gates = gates_of(options.cell);
  Carver workspace(workspace_memory), scratch(scratch_memory);
  carve_workspace(plan, workspace);
  carve_made(plan, back, scratch);
  carve_scratch(plan, back, scratch);
  const std::size_t bytes = product_bytes(plan, back);
  plan.products = scratch.take<std::byte>(static_cast<std::int64_t>(bytes));
  plan.workspace_bytes = workspace.used();
  plan.scratch_bytes = scratch.used();
  return plan;
}

template struct RecurrentPlan<float>;
template struct RecurrentPlan<double>;
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
