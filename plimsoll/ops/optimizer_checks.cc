#include "plimsoll/ops/optimizer_checks.h"

#include <fmt/format.h>

#include <cmath>
#include <mutex>
#include <set>

#include "plimsoll/base/error.h"
#include "plimsoll/base/log.h"

namespace plimsoll::internal {

void require(bool holds, const char* what, double value, const char* wanted) {
  if (!holds) throw InvalidArgument(fmt::format("optimizer: {} is {}; give {}", what, value, wanted));
}
void require_factor(const char* what, double value) {
  require(std::isfinite(value) && value >= 0, what, value, "a finite number of 0 or more");
}

namespace {

void require_share(const char* what, double value) {
  require(value >= 0 && value < 1, what, value, "0 or more, and less than 1");
}

// Whether this variable has not been named before.
bool is_first_time(std::uint64_t variable) {
  constexpr std::size_t kMost = 4096;  // Beyond this, names may repeat.
  static std::mutex mutex;
  static std::set<std::uint64_t> named;
  const std::lock_guard lock(mutex);
  if (named.size() >= kMost) named.clear();
  return named.insert(variable).second;
}

}  // namespace

void check_optimizer(const OptimizerOptions& options) {
  std::visit(
      [](const auto& o) {
        require_factor("learning_rate", o.learning_rate);
        if constexpr (requires { o.epsilon; }) require_factor("epsilon", o.epsilon);
        if constexpr (requires { o.momentum; }) require_share("momentum", o.momentum);
        if constexpr (requires { o.rho; }) require_share("rho", o.rho);
        if constexpr (requires { o.beta_1; }) require_share("beta_1", o.beta_1);
        if constexpr (requires { o.beta_2; }) require_share("beta_2", o.beta_2);
        if constexpr (requires { o.weight_decay; }) require_factor("weight_decay", o.weight_decay);
        if constexpr (requires { o.initial_accumulator_value; })
          require_factor("initial_accumulator_value", o.initial_accumulator_value);
      },
      options);
}

void require_gradients(const char* where, std::span<const Variable> parameters, std::span<const Tensor> gradients) {
  const auto is_left_out = [&](std::size_t i) { return gradients[i].is_empty_handle() && parameters[i].trainable(); };
  std::size_t left_out = 0, trainable = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    left_out += is_left_out(i);
    trainable += parameters[i].trainable();
  }
  if (left_out == 0) return;
  if (left_out == parameters.size() && left_out == trainable)
    throw FailedPrecondition(fmt::format(
        "{}: no trainable variable has a gradient (the first is \"{}\"); does the loss depend on them, and by "
        "operations that have gradients?",
        where, parameters[0].name()));
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (is_left_out(i) && is_first_time(parameters[i].id()))
      log_message(LogLevel::warning,
                  fmt::format("{}: variable \"{}\" has no gradient and does not change; use it in the loss, or make it "
                              "not trainable",
                              where, parameters[i].name()));
}

}  // namespace plimsoll::internal
