#include "plimsoll/model/training/result_exchange.h"

#include <span>

#include "plimsoll/distributed/collectives.h"

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

void append_numbers(const StepResult& result, std::vector<double>& numbers) {
  numbers.push_back(static_cast<double>(result.examples));
  numbers.push_back(static_cast<double>(result.spilled_bytes));
  visit_numbers(result, [&](double number) { numbers.push_back(number); });
}

void set_numbers(StepResult& result, std::span<const double> numbers) {
  result.examples = static_cast<std::size_t>(numbers[0]);
  result.spilled_bytes = static_cast<std::size_t>(numbers[1]);
  std::size_t i = 2;
  visit_numbers(result, [&](double& number) { number = numbers[i++]; });
}

}  // namespace

std::vector<StepResult> exchange_results(distributed::Job& job, const std::vector<StepResult>& own, std::size_t most,
                                         const StepResult& blank) {
  std::vector<double> mine;
  append_numbers(blank, mine);
  const std::size_t each = mine.size(), number = static_cast<std::size_t>(job.size()) * most;
  mine.clear();
  for (const StepResult& result : own) append_numbers(result, mine);
  mine.resize(most * each);
  std::vector<double> all(number * each);
  distributed::exchange(job, std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), "results");
  std::vector<StepResult> results(number, blank);
  for (std::size_t i = 0; i < number; ++i) set_numbers(results[i], std::span(all).subspan(i * each, each));
  return results;
}

}  // namespace plimsoll::internal
