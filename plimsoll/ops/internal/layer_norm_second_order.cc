#include "plimsoll/ops/internal/layer_norm_second_order.h"

#include "plimsoll/ops/creation.h"
#include "plimsoll/ops/elementwise.h"

namespace plimsoll::internal {
namespace {

void add_to(Tensor& sum, const Tensor& more) { sum = sum.is_empty_handle() ? more : sum + more; }

}  // namespace

NormSecondOrder norm_second_order(const NormGrid& grid, const NormOperands& operands, const NormUpstream& upstream) {
  const auto as_grid = [&](const Tensor& tensor) { return tensor.reshape(grid.grid); };
  const auto average = [&](const Tensor& tensor) { return tensor.mean(grid.shared, {.keep_dims = true}); };
  const Tensor rstd = operands.rstd.reshape(grid.moments), dy = as_grid(operands.dy);
  const Tensor normal = (as_grid(operands.x) - operands.mean.reshape(grid.moments)) * rstd;
  const bool has_gamma = !operands.gamma.is_empty_handle();
  const Tensor gamma = has_gamma ? operands.gamma.reshape(grid.parameters) : Tensor();
  const auto project = [&](const Tensor& u) { return u - average(u) - normal * average(u * normal); };
  Tensor ddy, dx, dgamma, dnormal;
  if (!upstream.dx.is_empty_handle()) {
    const Tensor v = as_grid(upstream.dx), scaled = has_gamma ? dy * gamma : dy, back = project(v) * rstd;
    ddy = has_gamma ? back * gamma : back;
    if (has_gamma) dgamma = (back * dy).sum(grid.repeated).reshape(operands.gamma.shape());
    dnormal = -(v * average(scaled * normal) + scaled * average(v * normal)) * rstd;
    dx = -(average(v * project(scaled)) * square(rstd)) * normal;
  }
  if (!upstream.dgamma.is_empty_handle()) {
    const Tensor a = upstream.dgamma.reshape(grid.parameters);
    add_to(ddy, normal * a);
    add_to(dnormal, dy * a);
  }
  if (!upstream.dbeta.is_empty_handle()) add_to(ddy, broadcast_to(upstream.dbeta.reshape(grid.parameters), grid.grid));
  if (!dnormal.is_empty_handle()) add_to(dx, project(dnormal) * rstd);
  const auto back_to = [](const Tensor& tensor, const Tensor& like) {
    return tensor.is_empty_handle() ? tensor : tensor.reshape(like.shape());
  };
  return {back_to(dx, operands.x), back_to(ddy, operands.dy), dgamma};
}

void give_second_order(GradientContext& context, const NormGrid& grid, bool has_gamma) {
  const auto upstream = [&](std::size_t output) { return context.has_grad(output) ? context.grad(output) : Tensor(); };
  const NormSecondOrder result = norm_second_order(
      grid,
      {context.input(0), context.input(1), context.input(2), context.input(3), has_gamma ? context.input(4) : Tensor()},
      {upstream(0), upstream(1), upstream(2)});
  if (!result.x.is_empty_handle()) context.give(0, result.x);
  if (!result.dy.is_empty_handle()) context.give(1, result.dy);
  if (!result.gamma.is_empty_handle()) context.give(4, result.gamma);
}

Tensor moments_gradient(const NormGrid& grid, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                        const Tensor& dmean, const Tensor& drstd) {
  const Tensor from = x.reshape(grid.grid), scale = rstd.reshape(grid.moments);
  const Tensor count = ones_like(from).sum(grid.shared, {.keep_dims = true});  // Its size may not be known yet.
  Tensor dx;
  if (!dmean.is_empty_handle()) dx = dmean.reshape(grid.moments) / count + zeros_like(from);
  if (!drstd.is_empty_handle()) {
    const Tensor slope = drstd.reshape(grid.moments) * scale * scale * scale / count;
    add_to(dx, (mean.reshape(grid.moments) - from) * slope);
  }
  return dx.reshape(x.shape());
}

}  // namespace plimsoll::internal
