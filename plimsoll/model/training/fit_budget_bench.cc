// What training inside budgets below the natural peak costs: real steps, measured and compared with the predicted
// factor.
//
//   fit_budget_bench [--rounds N] [--spill DIRECTORY] [PART...]      only models whose name contains one of the words
//
// For each model it trains one copy without a budget and one at each share of the extent (what a step takes above
// parameters, optimizer state and batch), one step each in turn, with one thread. Times are the least CPU time of a
// step, so that other load on the machine hardly shows. With a directory it trains at .5 and .3 of the extent and at
// the smallest budget, storing values and variables there; times then are those of the clock, since waiting for the
// disk counts. It prints Markdown for docs/budgets.md, and fails when results differ in a bit.
#include <fmt/format.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "plimsoll/base/bytes.h"
#include "plimsoll/device/config.h"
#include "plimsoll/model/internal/network.h"
#include "plimsoll/model/model_testing.h"
#include "plimsoll/model/training/budget_models_testing.h"
#include "plimsoll/model/training/step_budget.h"

namespace plimsoll {
namespace {

constexpr double kShares[] = {0.7, 0.5, 0.3};

double seconds_of(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}
double cpu_seconds() { return seconds_of(CLOCK_PROCESS_CPUTIME_ID); }

// A copy of the model, training inside its budget.
class Trainer {
 public:
  Trainer(const BudgetModel& which, const Dataset& data, std::optional<std::size_t> budget,
          const std::string& spill = {}, clockid_t clock = CLOCK_PROCESS_CPUTIME_ID)
      : model_(which.make()),
        data_(data),
        batch_(*data.begin()),
        clock_(clock),
        memory_(model_.network(), "bench", {.bytes = budget, .spill = spill}) {
    plan_ = model_.network().training.plans.get(StepKind::kTrain, batch_, "bench");
    memory_.admit(plan_, batch_, *data_.node());
  }
  void step() {
    const double begin = seconds_of(clock_);
    loss_ = memory_.run(*plan_, batch_).loss;
    best_ = std::min(best_, seconds_of(clock_) - begin);
  }
  double seconds() const { return best_; }
  double loss() const { return loss_; }
  double predicted() const { return memory_.predicted_slowdown(); }
  std::size_t peak() const { return memory_.peak_bytes(); }
  const Model& model() const { return model_; }

 private:
  Model model_;
  const Dataset data_;
  const Example batch_;
  const clockid_t clock_;
  StepBudget memory_;
  std::shared_ptr<StepPlan> plan_;
  double best_ = 1e300, loss_ = 0;
};

double megabytes(std::size_t bytes) { return static_cast<double>(bytes) / 1e6; }

std::size_t held_bytes(const MemoryForecast& forecast) {
  std::size_t held = 0;
  for (const char* category : {"inputs", "parameters", "optimizer", "other"}) held += forecast.by_category.at(category);
  return held;
}

bool is_same(const Trainer& trainer, const Trainer& natural, std::size_t budget) {
  if (trainer.peak() <= budget && trainer.loss() == natural.loss() &&
      values_of(trainer.model()) == values_of(natural.model()))
    return true;
  std::fprintf(stderr, "results differ, or peak %zu is above the budget %zu\n", trainer.peak(), budget);
  return false;
}

bool measure_spilling(const BudgetModel& which, int rounds, const std::string& spill) {
  const Dataset data = which.batches(1);
  const std::size_t recomputing = which.make().forecast({.batch_size = which.batch}).smallest_budget;
  const MemoryForecast forecast = which.make().forecast({.batch_size = which.batch, .spill = spill});
  const std::size_t held = held_bytes(forecast), extent = forecast.peak_bytes - held;
  std::vector<std::size_t> budgets = {SIZE_MAX};
  for (const double share : {0.5, 0.3})
    budgets.push_back(held + static_cast<std::size_t>(share * static_cast<double>(extent)));
  budgets.push_back(forecast.smallest_budget);
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (const std::size_t budget : budgets) {
    const bool is_natural = budget == SIZE_MAX;
    trainers.push_back(forecast.fits(budget)
                           ? std::make_unique<Trainer>(which, data, is_natural ? std::nullopt : std::optional(budget),
                                                       is_natural ? "" : spill, CLOCK_MONOTONIC)
                           : nullptr);
  }
  for (int round = 0; round < rounds; ++round)
    for (const auto& trainer : trainers)
      if (trainer) trainer->step();
  std::string row =
      fmt::format("| {}, batch {} | {:.1f} | {:.1f} | {:.1f} | {:.2f} |", which.name, which.batch,
                  megabytes(forecast.peak_bytes), megabytes(recomputing), megabytes(forecast.smallest_budget),
                  static_cast<double>(forecast.smallest_budget) / static_cast<double>(forecast.floor_bytes));
  bool same = true;
  for (std::size_t i = 1; i < trainers.size(); ++i) {
    row += trainers[i] ? fmt::format(" {:.2f} ({:.2f}) |", trainers[i]->seconds() / trainers[0]->seconds(),
                                     trainers[i]->predicted())
                       : " – |";
    same = same && (!trainers[i] || is_same(*trainers[i], *trainers[0], budgets[i]));
  }
  std::printf("%s\n", row.c_str());
  std::fflush(stdout);
  return same;
}

bool measure(const BudgetModel& which, int rounds) {
  const Dataset data = which.batches(1);
  const double planning = cpu_seconds();
  const MemoryForecast forecast = which.make().forecast({.batch_size = which.batch});
  const double planned = cpu_seconds() - planning;
  const std::size_t held = held_bytes(forecast), extent = forecast.peak_bytes - held;
  const double floor = static_cast<double>(forecast.floor_bytes - held) / static_cast<double>(extent);
  std::vector<std::unique_ptr<Trainer>> trainers;
  std::vector<std::size_t> budgets;
  trainers.push_back(std::make_unique<Trainer>(which, data, std::nullopt));
  for (const double share : kShares) {
    budgets.push_back(held + static_cast<std::size_t>(share * static_cast<double>(extent)));
    trainers.push_back(forecast.fits(budgets.back()) ? std::make_unique<Trainer>(which, data, budgets.back())
                                                     : nullptr);
  }
  bool same = true;
  for (int round = 0; round < rounds; ++round)
    for (const auto& trainer : trainers)
      if (trainer) trainer->step();
  std::string row =
      fmt::format("| {}, batch {} | {:.2f} | {:.2f} | {:.3f} |", which.name, which.batch, megabytes(extent), floor,
                  static_cast<double>(forecast.smallest_budget) / static_cast<double>(forecast.floor_bytes));
  for (std::size_t i = 0; i < std::size(kShares); ++i) {
    const Trainer* const trainer = trainers[i + 1].get();
    if (!trainer) {
      row += " – |";
      continue;
    }
    row += fmt::format(" {:.3f} ({:.3f}) |", trainer->seconds() / trainers[0]->seconds(), trainer->predicted());
    same = is_same(*trainer, *trainers[0], budgets[i]) && same;
  }
  std::printf("%s %.1f ms | %.0f ms |\n", row.c_str(), 1e3 * trainers[0]->seconds(), 1e3 * planned);
  std::fflush(stdout);
  return same;
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  using namespace plimsoll;
  int rounds = 9;
  std::string spill;
  std::vector<std::string> parts;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--rounds" && i + 1 < argc)
      rounds = std::atoi(argv[++i]);
    else if (std::string(argv[i]) == "--spill" && i + 1 < argc)
      spill = argv[++i];
    else
      parts.emplace_back(argv[i]);
  }
  config::set_threads(1);
  if (spill.empty()) {
    std::printf("| step | extent, MB | floor / extent | gate / floor | .7 | .5 | .3 | natural step | forecast |\n");
    std::printf("|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  } else {
    std::printf("| step | peak, MB | gate, recomputing | gate, spilling | gate / floor | .5 | .3 | at the gate |\n");
    std::printf("|---|--:|--:|--:|--:|--:|--:|--:|\n");
  }
  bool same = true;
  for (const BudgetModel& which :
       {budget_mlp(24, 256, 1024), budget_resnet(3, 16, 32, 32), budget_transformer(2, 256, 64, 8),
        budget_transformer(6, 256, 64, 8), budget_resnet(1, 32, 32, 64), budget_lstm(64, 48, 128),
        budget_lstm(64, 50, 32, 1), budget_lstm(128, 50, 32, 1), budget_words(20'000, 128, 64, 8)}) {
    bool chosen = parts.empty();
    for (const std::string& part : parts) chosen = chosen || which.name.find(part) != std::string::npos;
    if (chosen) same = (spill.empty() ? measure(which, rounds) : measure_spilling(which, rounds, spill)) && same;
  }
  return same ? 0 : 1;
}
