#include "plimsoll/kernels/recurrent.h"

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/internal/recurrent_forward.h"

namespace plimsoll::internal {
namespace {

template <class T>
void run_forward(const RecurrentRule& options, const RecurrentInputs& in, const RecurrentResults<TensorView>& out,
                 std::span<std::byte> workspace, std::span<std::byte> scratch) noexcept {
  const RecurrentSizes sizes = recurrent_sizes(in);
  RecurrentForward<T> forward = {plan_recurrent<T>(options, sizes, false, workspace.data(), scratch.data()),
                                 recurrent_loops_of<T>(),
                                 nullptr,
                                 nullptr,
                                 data_or_null<T>(in.initial_h),
                                 data_or_null<T>(in.initial_c),
                                 data_or_null<bool>(in.mask),
                                 data_or_null<T>(out.sequence),
                                 data_or_null<T>(out.last),
                                 data_or_null<T>(out.final_h),
                                 data_or_null<T>(out.final_c)};
  const RecurrentPlan<T>& plan = forward.plan;
  PLIMSOLL_CHECK(workspace.size() >= plan.workspace_bytes && scratch.size() >= plan.scratch_bytes);
  if (!forward.final_h) forward.final_h = plan.final_h;
  if (!forward.final_c) forward.final_c = plan.final_c;
  const T* const bias = data_or_null<T>(in.bias);
  forward.prepare(in, bias);
  if (plan.kept_bias) {  // Where there is none, what changes no bit when it is added.
    const std::int64_t count = plan.width() * (plan.has_bias_pair() ? 2 : 1);
    bias ? copy_row(plan.kept_bias, bias, count) : static_cast<void>(std::fill_n(plan.kept_bias, count, T(-0.0)));
  }
  forward.run(in, {plan.products, scratch.data() + scratch.size()});
}

}  // namespace

std::size_t recurrent_workspace_bytes(const RecurrentRule& options, const RecurrentSizes& sizes, DType dtype) noexcept {
  return dtype == f32 ? plan_recurrent<float>(options, sizes, false, nullptr, nullptr).workspace_bytes
                      : plan_recurrent<double>(options, sizes, false, nullptr, nullptr).workspace_bytes;
}

std::size_t recurrent_scratch_bytes(const RecurrentRule& options, const RecurrentSizes& sizes, DType dtype) noexcept {
  return dtype == f32 ? plan_recurrent<float>(options, sizes, false, nullptr, nullptr).scratch_bytes
                      : plan_recurrent<double>(options, sizes, false, nullptr, nullptr).scratch_bytes;
}

void recurrent(const RecurrentRule& options, const RecurrentInputs& in, const RecurrentResults<TensorView>& out,
               std::span<std::byte> workspace, std::span<std::byte> scratch) noexcept {
  if (in.x.dtype() == f32)
    run_forward<float>(options, in, out, workspace, scratch);
  else
    run_forward<double>(options, in, out, workspace, scratch);
}

}  // namespace plimsoll::internal
