#include "plimsoll/ops/optimizer_update.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

#include "plimsoll/base/error.h"
#include "plimsoll/kernels/elementwise.h"
#include "plimsoll/kernels/optimizer.h"
#include "plimsoll/ops/check_operands.h"
#include "plimsoll/ops/launch.h"

namespace plimsoll::internal {
namespace {

template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;

struct SlotList {
  OptimizerUpdate::SlotSpec slots[kMaxOptimizerSlots] = {};
  std::size_t size = 0;
  void add(const char* name, double initial = 0) { slots[size++] = {name, initial}; }
};

SlotList slots_of(const OptimizerOptions& options) noexcept {
  SlotList list;
  std::visit(Overload{
                 [&](const SGDOptions& o) {
                   if (o.momentum != 0) list.add("velocity");
                 },
                 [&](const RMSpropOptions& o) {
                   list.add("mean_square");
                   if (o.centered) list.add("mean_gradient");
                   if (o.momentum != 0) list.add("momentum");
                 },
                 [&](const AdagradOptions& o) { list.add("sum_of_squares", o.initial_accumulator_value); },
                 [&](const AdadeltaOptions&) {
                   list.add("mean_square");
                   list.add("mean_square_update");
                 },
                 [&](const AdamOptions&) {
                   list.add("m");
                   list.add("v");
                 },
                 [&](const AdamaxOptions&) {
                   list.add("m");
                   list.add("u");
                 },
             },
             options);
  return list;
}

void update(const SGDOptions& o, std::int64_t, const ConstTensorView& g, std::span<const TensorView> out) noexcept {
  if (o.momentum == 0) return update_sgd(o.learning_rate, g, out[0]);
  update_momentum({.learning_rate = o.learning_rate,
                   .momentum = o.momentum,
                   .nesterov = o.nesterov,
                   .rate_outside_velocity = o.tfjs},
                  g, out[0], out[1]);
}

void update(const RMSpropOptions& o, std::int64_t, const ConstTensorView& g, std::span<const TensorView> out) noexcept {
  const double epsilon = o.tfjs && o.centered ? -o.epsilon : o.epsilon;
  RmspropSlots slots = {.mean_square = out[1]};
  std::size_t next = 2;
  if (o.centered) slots.mean_gradient = out[next++];
  if (o.momentum != 0) slots.momentum = out[next];
  update_rmsprop({.learning_rate = o.learning_rate, .rho = o.rho, .momentum = o.momentum, .epsilon = epsilon}, g,
                 out[0], slots);
}

void update(const AdagradOptions& o, std::int64_t, const ConstTensorView& g, std::span<const TensorView> out) noexcept {
  update_adagrad({.learning_rate = o.learning_rate, .epsilon = o.epsilon}, g, out[0], out[1]);
}

void update(const AdadeltaOptions& o, std::int64_t, const ConstTensorView& g,
            std::span<const TensorView> out) noexcept {
  update_adadelta(
      {.learning_rate = o.learning_rate, .rho = o.rho, .epsilon = o.epsilon, .previous_mean_square = o.tfjs}, g, out[0],
      out[1], out[2]);
}

void update(const AdamOptions& o, std::int64_t step, const ConstTensorView& g,
            std::span<const TensorView> out) noexcept {
  update_adam({.learning_rate = o.learning_rate,
               .beta_1 = o.beta_1,
               .beta_2 = o.beta_2,
               .epsilon = o.epsilon,
               .weight_decay = o.weight_decay,
               .step = step,
               .corrected_epsilon = o.tfjs},
              g, out[0], out[1], out[2]);
}

void update(const AdamaxOptions& o, std::int64_t step, const ConstTensorView& g,
            std::span<const TensorView> out) noexcept {
  update_adamax(
      {.learning_rate = o.learning_rate, .beta_1 = o.beta_1, .beta_2 = o.beta_2, .epsilon = o.epsilon, .step = step}, g,
      out[0], out[1], out[2]);
}

}  // namespace

std::size_t OptimizerUpdate::num_slots(const OptimizerOptions& options) noexcept { return slots_of(options).size; }

OptimizerUpdate::SlotSpec OptimizerUpdate::slot_spec(const OptimizerOptions& options, std::size_t slot) noexcept {
  return slots_of(options).slots[slot];
}

const char* OptimizerUpdate::name() const noexcept {
  constexpr const char* kNames[] = {"sgd", "rmsprop", "adagrad", "adadelta", "adam", "adamax"};
  return kNames[options_.index()];
}

void OptimizerUpdate::infer(const Specs& in, SpecList& out) const {
  require_same_dtype(*this, in);
  if (in.dtype(0) != f32 && in.dtype(0) != f64) refuse_dtype(*this, in.dtype(0));
  if (in.size() != 2 + num_slots(options_))
    throw InvalidArgument(fmt::format("{}: {} operands; give the parameter, its gradient and {} more", name(),
                                      in.size(), num_slots(options_)));
  for (std::size_t i = 1; i < in.size(); ++i)
    if (!(in.shape(i) == in.shape(0)))
      throw InvalidArgument(fmt::format("{}: the parameter is {}, {} {}; they must agree", name(),
                                        in.shape(0).to_string(), input_name(i), in.shape(i).to_string()));
  out.add(in.shape(0), in.dtype(0));
  for (std::size_t i = 2; i < in.size(); ++i) out.add(in.shape(0), in.dtype(0));
}

void OptimizerUpdate::run(const OpRun& run) const noexcept {
  for (std::size_t i = 0; i < run.out.size(); ++i) {
    const ConstTensorView& from = run.in[i == 0 ? 0 : i + 1];
    if (from.bytes() != run.out[i].bytes()) copy(from, run.out[i]);
  }
  if (run.out[0].size() == 0) return;
  std::visit([&](const auto& options) { update(options, step_, run.in[1], run.out); }, options_);
}

namespace {

// A kernel and its factors, which are those of kernels/internal/optimizer_loops.cc.
struct Rule {
  const char* kernel;
  double factors[5];
};

Rule rule_of(const SGDOptions& o, std::int64_t) noexcept {
  const double rate = o.learning_rate;
  if (o.momentum == 0) return {"update.sgd", {-rate}};
  const double of_velocity = (o.tfjs ? -rate : 1) * (o.nesterov ? o.momentum : 1);
  return {"update.momentum", {o.momentum, o.tfjs ? 1 : -rate, of_velocity, o.nesterov ? -rate : 0}};
}
Rule rule_of(const RMSpropOptions& o, std::int64_t) noexcept {
  const double epsilon = o.tfjs && o.centered ? -o.epsilon : o.epsilon;
  const char* const kernel = o.centered
                                 ? (o.momentum != 0 ? "update.rmsprop_centered_momentum" : "update.rmsprop_centered")
                                 : (o.momentum != 0 ? "update.rmsprop_momentum" : "update.rmsprop");
  return {kernel, {o.rho, 1 - o.rho, o.learning_rate, epsilon, o.momentum}};
}
Rule rule_of(const AdagradOptions& o, std::int64_t) noexcept {
  return {"update.adagrad", {o.learning_rate, o.epsilon}};
}
Rule rule_of(const AdadeltaOptions& o, std::int64_t) noexcept {
  return {"update.adadelta", {o.rho, 1 - o.rho, o.learning_rate, o.epsilon, o.tfjs ? 1.0 : 0.0}};
}
Rule rule_of(const AdamOptions& o, std::int64_t step) noexcept {
  const auto t = static_cast<double>(step);
  const double root = std::sqrt(1 - std::pow(o.beta_2, t));
  return {"update.adam",
          {1 - o.beta_1, 1 - o.beta_2, o.learning_rate * root / (1 - std::pow(o.beta_1, t)),
           o.tfjs ? o.epsilon * root : o.epsilon, 1 - o.learning_rate * o.weight_decay}};
}
Rule rule_of(const AdamaxOptions& o, std::int64_t step) noexcept {
  const double rate = o.learning_rate / (1 - std::pow(o.beta_1, static_cast<double>(step)));
  return {"update.adamax", {1 - o.beta_1, o.beta_2, rate, o.epsilon}};
}

}  // namespace

bool OptimizerUpdate::launch(KernelQueue& queue, const OpRun& run) const noexcept {
  if (run.out[0].dtype() != f32) return false;
  for (std::size_t i = 0; i < run.out.size(); ++i) {
    const ConstTensorView& from = run.in[i == 0 ? 0 : i + 1];
    if (from.bytes() != run.out[i].bytes() && !launch_copy(queue, from, run.out[i])) return false;
  }
  const Rule rule = std::visit([&](const auto& options) { return rule_of(options, step_); }, options_);
  KernelCall call(rule.kernel);
  call.out(run.out[0].bytes()).in(run.in[1].bytes());
  for (std::size_t i = 1; i <= kMaxOptimizerSlots; ++i) call.out(i < run.out.size() ? run.out[i].bytes() : nullptr);
  call.integer(static_cast<std::int64_t>(run.out[0].size()));
  for (const double factor : rule.factors) call.number(factor);
  return queue.run(call.items((run.out[0].size() + 7) / 8));
}

std::string OptimizerUpdate::input_name(std::size_t input) const {
  if (input == 0) return "the parameter";
  if (input == 1) return "its gradient";
  return slot_spec(options_, input - 2).name;
}

}  // namespace plimsoll::internal
