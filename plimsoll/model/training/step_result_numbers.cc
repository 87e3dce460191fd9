#include "plimsoll/model/training/step_result_numbers.h"

namespace plimsoll::internal {
namespace {

template <class Result, class F>
void visit_numbers(Result& result, F&& f) {
  f(result.loss);
  f(result.recomputed);
  for (auto& loss : result.losses) f(loss);
  for (auto& sums : result.metrics)
    for (auto& sum : sums)
      for (auto& number : sum) f(number);
}

}  // namespace

std::vector<double> numbers_of(const StepResult& result) {
  std::vector<double> numbers = {static_cast<double>(result.examples), static_cast<double>(result.spilled_bytes)};
  visit_numbers(result, [&](double number) { numbers.push_back(number); });
  return numbers;
}

void set_numbers(StepResult& result, std::span<const double> numbers) {
  result.examples = static_cast<std::size_t>(numbers[0]);
  result.spilled_bytes = static_cast<std::size_t>(numbers[1]);
  std::size_t i = 2;
  visit_numbers(result, [&](double& number) { number = numbers[i++]; });
}

}  // namespace plimsoll::internal
