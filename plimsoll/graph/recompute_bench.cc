// Training steps below their natural peak: predicted and measured slowdown, the smallest budget, and what planning
// costs.
//
//   build-bench/recompute_bench [--rounds N] [--only NAME]
//
// Each step is a function with a budget of so many parts of its natural extent, beside one without; all are interleaved
// in one process and must give the same losses. Times are CPU times with one thread: of steps the least of all rounds.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/autograd/step_models_testing.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/graph/function.h"

namespace plimsoll {
namespace {

using step_bench::OurModel;

struct Case {
  const char* name;
  std::function<std::unique_ptr<OurModel>()> make;
};

template <class Model, class... Arguments>
Case make_case(const char* name, Arguments... arguments) {
  return {name, [=] { return std::make_unique<Model>(arguments...); }};
}

std::vector<Case> all_cases() {
  using namespace step_bench;
  std::vector<std::int64_t> deep(25, 256);
  deep.push_back(1);
  return {
      make_case<OurMlp>("MLP 24 x 256, batch 1024", deep, 1024),
      make_case<OurResnet>("small ResNet 3-32-32-64, 32x32, batch 64", 64),
      make_case<OurTransformer>("transformer, 2 layers d256, batch 8", 2, 256, 4, 1024, 128, 8),
      make_case<OurTransformer>("transformer, 6 layers d256, batch 8", 6, 256, 4, 1024, 128, 8),
  };
}

double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// A model of its own, and a function that trains it.
class Step {
 public:
  Step(const Case& which, double share, std::optional<std::size_t> budget)
      : share_(share), model_(which.make()), warm_([this] { return model_->traced_step(); }, {}) {
    warm_();  // The optimizer's state is not part of the budget.
    lean_ = std::make_unique<Function<Callable>>([this] { return model_->traced_step(); },
                                                 FunctionOptions{.budget = budget});
  }
  double share() const { return share_; }
  MemoryPlan plan() const { return warm_.memory_plan(); }
  double best_ms() const { return best_; }
  float run() {
    const double start = cpu_ms();
    const float loss = (*lean_)().item<float>();
    best_ = std::min(best_, cpu_ms() - start);
    return loss;
  }

 private:
  using Callable = std::function<Tensor()>;
  const double share_;
  std::unique_ptr<OurModel> model_;
  Function<Callable> warm_;
  std::unique_ptr<Function<Callable>> lean_;
  double best_ = 1e9;
};

double predicted(const MemoryPlan& plan, std::size_t budget) {
  for (const BudgetPoint& point : plan.front)
    if (point.bytes <= budget) return point.slowdown;
  return 0;
}

void compare(const Case& which, int rounds) {
  std::vector<std::unique_ptr<Step>> steps;
  steps.push_back(std::make_unique<Step>(which, 1, std::nullopt));
  const double start = cpu_ms();
  const MemoryPlan plan = steps[0]->plan();
  const double planning = cpu_ms() - start;
  const std::size_t natural = plan.front[0].bytes;
  for (const double share : {0.7, 0.5, 0.3}) {
    const auto budget = static_cast<std::size_t>(share * static_cast<double>(natural));
    if (budget >= plan.smallest_bytes) steps.push_back(std::make_unique<Step>(which, share, budget));
  }
  for (int round = 0; round < rounds; ++round) {
    const float loss = steps[0]->run();
    for (std::size_t i = 1; i < steps.size(); ++i)
      if (steps[i]->run() != loss) std::printf("DIFFERENT RESULTS in %s\n", which.name);
  }
  std::printf("| %s | %zu | %.2f | %.3f | %.3f |", which.name, plan.order.size(), static_cast<double>(natural) / 1e6,
              static_cast<double>(plan.floor_bytes) / static_cast<double>(natural),
              static_cast<double>(plan.smallest_bytes) / static_cast<double>(natural));
  for (std::size_t i = 1; i < 4; ++i) {
    if (i >= steps.size()) {
      std::printf(" - |");
      continue;
    }
    const auto budget = static_cast<std::size_t>(steps[i]->share() * static_cast<double>(natural));
    std::printf(" %.3f / %.3f |", predicted(plan, budget), steps[i]->best_ms() / steps[0]->best_ms());
  }
  std::printf(" %.0f |\n", planning);
  std::fflush(stdout);
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  int rounds = 9;
  std::string only;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--only") == 0) only = argv[i + 1];
  }
  plimsoll::set_num_threads(1);
  std::printf(
      "| step | steps | extent, MB | floor | gate | 0.7 | 0.5 | 0.3 | plan, ms "
      "|\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  for (const auto& which : plimsoll::all_cases())
    if (std::string(which.name).find(only) != std::string::npos) plimsoll::compare(which, rounds);
}
