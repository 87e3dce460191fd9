// What training inside budgets below the natural peak costs: real steps, measured beside the predicted factor.
//
//   fit_budget_bench [--rounds N] [PART...]      only models whose name contains one of the words
//
// For each model it trains one copy without a budget and one at each share of the extent (what a step takes above
// parameters, optimizer state and batch), one step each in turn, with one thread. Times are the least CPU time of a
// step, so that other load on the machine hardly shows. It prints Markdown for docs/budgets.md, and fails when results
// differ in a bit.
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

double cpu_seconds() {
  timespec now = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// A copy of the model, training inside its budget.
class Trainer {
 public:
  Trainer(const BudgetModel& which, const Dataset& data, std::optional<std::size_t> budget)
      : model_(which.make()),
        data_(data),
        batch_(*data.begin()),
        memory_(model_.network(), "bench", {.bytes = budget}) {
    plan_ = model_.network().training.plans.get(StepKind::kTrain, batch_, "bench");
    memory_.admit(plan_, batch_, *data_.node());
  }
  void step() {
    const double begin = cpu_seconds();
    loss_ = memory_.run(*plan_, batch_).loss;
    best_ = std::min(best_, cpu_seconds() - begin);
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
  StepBudget memory_;
  std::shared_ptr<StepPlan> plan_;
  double best_ = 1e300, loss_ = 0;
};

double megabytes(std::size_t bytes) { return static_cast<double>(bytes) / 1e6; }

bool measure(const BudgetModel& which, int rounds) {
  const Dataset data = which.batches(1);
  const double planning = cpu_seconds();
  const MemoryForecast forecast = which.make().forecast({.batch_size = which.batch});
  const double planned = cpu_seconds() - planning;
  std::size_t held = forecast.by_category.at("inputs");
  for (const char* category : {"parameters", "optimizer", "other"}) held += forecast.by_category.at(category);
  const std::size_t extent = forecast.peak_bytes - held;
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
    same = same && trainer->loss() == trainers[0]->loss() &&
           values_of(trainer->model()) == values_of(trainers[0]->model());
    if (trainer->peak() > budgets[i]) {
      std::fprintf(stderr, "%s: peak %zu above the budget %zu\n", which.name.c_str(), trainer->peak(), budgets[i]);
      same = false;
    }
  }
  std::printf("%s %.1f ms | %.0f ms |\n", row.c_str(), 1e3 * trainers[0]->seconds(), 1e3 * planned);
  std::fflush(stdout);
  if (!same) std::fprintf(stderr, "%s: results differ\n", which.name.c_str());
  return same;
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  using namespace plimsoll;
  int rounds = 9;
  std::vector<std::string> parts;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--rounds" && i + 1 < argc)
      rounds = std::atoi(argv[++i]);
    else
      parts.emplace_back(argv[i]);
  }
  config::set_threads(1);
  std::printf("| step | extent, MB | floor / extent | gate / floor | .7 | .5 | .3 | natural step | forecast |\n");
  std::printf("|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  bool same = true;
  for (const BudgetModel& which :
       {budget_mlp(24, 256, 1024), budget_resnet(3, 16, 32, 32), budget_transformer(2, 256, 64, 8),
        budget_transformer(6, 256, 64, 8), budget_resnet(1, 32, 32, 64), budget_lstm(64, 48, 128)}) {
    bool chosen = parts.empty();
    for (const std::string& part : parts) chosen = chosen || which.name.find(part) != std::string::npos;
    if (chosen) same = measure(which, rounds) && same;
  }
  return same ? 0 : 1;
}
