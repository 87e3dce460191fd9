// Eager training steps in budgets that evict, compared with the same steps without: processor time of the fastest step
// of each, interleaved, one thread. A share of the extent is the share of what a step takes beside what is held between
// steps.
//
//   build-bench/eviction_bench [rounds]
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plimsoll/autograd/step_models_testing.h"
#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/thread_pool.h"
#include "plimsoll/memory/budget.h"

namespace plimsoll {
namespace {

using step_bench::OurModel;
using MakeModel = std::function<std::unique_ptr<OurModel>()>;

double processor_seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Side {
  double share;  // 0: without a limit.
  Budget budget;
  std::unique_ptr<OurModel> model = {};
  double best = 1e9;
  std::vector<double> losses = {};
  std::string refused = {};

  void step(const MakeModel& make) {
    if (!refused.empty()) return;
    const BudgetScope use(budget);
    try {
      if (!model) {
        model = make();
        model->step();
        budget.reset_peak();
      }
      const double start = processor_seconds();
      losses.push_back(model->step());
      best = std::min(best, processor_seconds() - start);
    } catch (const OutOfMemory& error) {
      refused = error.what();
      model.reset();
    }
  }
};

void compare(const char* name, const MakeModel& make, int rounds) {
  std::size_t peak = 0, held = 0;
  {
    Budget probe("probe", 64_GiB);
    const BudgetScope use(probe);
    const auto model = make();
    model->step();
    held = probe.used();
    probe.reset_peak();
    model->step();
    peak = probe.peak();
  }
  std::printf("%s: %s held, %s more in a step\n", name, format_bytes(held).c_str(), format_bytes(peak - held).c_str());
  std::vector<Side> sides;
  for (const double share : {0.0, 4.0, 0.7, 0.5, 0.4}) {
    const auto room = static_cast<std::size_t>(share * static_cast<double>(peak - held));
    sides.push_back({share, Budget("step", share == 0 ? 64_GiB : held + room, {.evict = share > 0})});
  }
  for (int round = 0; round < rounds; ++round)
    for (Side& side : sides) side.step(make);
  for (const Side& side : sides) {
    if (!side.refused.empty())
      std::printf("  %.1f of the extent   refused\n", side.share);
    else
      std::printf("  %.1f of the extent %8.2f ms  %.3f x  %s, peak %.3f of the budget\n", side.share, side.best * 1e3,
                  side.best / sides[0].best, side.losses == sides[0].losses ? "same losses" : "OTHER LOSSES",
                  static_cast<double>(side.budget.peak()) / static_cast<double>(side.budget.limit()));
  }
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  using namespace plimsoll;
  using namespace plimsoll::step_bench;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 11;
  set_num_threads(1);
  std::vector<std::int64_t> sizes(25, 256);
  sizes.back() = 10;
  compare(
      "MLP 24 x 256, batch 1024", [&] { return std::make_unique<OurMlp>(sizes, 1024); }, rounds);
  compare(
      "small ResNet, batch 16", [] { return std::make_unique<OurResnet>(16); }, rounds);
  compare(
      "transformer 4 x 128, batch 8", [] { return std::make_unique<OurTransformer>(4, 128, 4, 512, 64, 8); }, rounds);
}
