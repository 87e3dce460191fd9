#include "plimsoll/plan/internal/portfolio.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "plimsoll/plan/internal/exact.h"

namespace plimsoll::internal {
namespace {

constexpr int kRound = 8;  // Searches per round.

constexpr Preorder kOrders[] = {
    {Key::kTotal, Key::kDuration, Key::kArea}, {Key::kTotal, Key::kArea, Key::kDuration},
    {Key::kDuration, Key::kArea, Key::kTotal}, {Key::kArea, Key::kDuration, Key::kTotal},
    {Key::kTotal, Key::kSize, Key::kDuration},
};
// The first three do best on known hard instances, so they come more often.
constexpr int kOrderOfTask[] = {0, 1, 2, 0, 1, 2, 3, 4};
constexpr int kStartersOfTask[] = {3, 3, 3, 1, 7};
constexpr double kNoiseOfTask[] = {0.3, 1.0, 0.1};
// Where between the lower bound and the largest useful peak the searches of a round aim: a plan found halfway halves
// what is left, and tighter is sometimes faster.
constexpr double kAims[] = {0, 0.5, 0.75, 0.25, 0.875, 0.5, 0.9375, 0.125};
constexpr double kAimsWithinCapacity[] = {1, 1, 0.5, 1, 0.75, 1, 0.875, 1};

struct Task {
  Strategy strategy;
  std::size_t capacity = 0;
  std::uint64_t node_limit = 0;
  Outcome outcome = Outcome::kStopped;
  std::uint64_t nodes = 0;
  std::vector<Units> offsets;
};

// Restart limits as in Luby, Sinclair and Zuckerman: 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ...
std::uint64_t luby(std::uint64_t i) {
  for (std::uint64_t size = 1;; size = 2 * size + 1) {
    if (i == size) return (size + 1) / 2;
    if (i > size && i < 2 * size + 1) return luby(i - size);
  }
}

class Portfolio {
 public:
  Portfolio(const Instance& instance, Incumbent& best)
      : instance_(instance),
        best_(best),
        problem_(instance),
        base_limit_(std::max<std::uint64_t>(1000, 3 * instance.items.size())) {}

  void run_round() {
    prepare();
    next_ = 0;
    const StopToken::Clock::time_point limit = best_.time_limit();
    for (Task& task : tasks_) task.outcome = Outcome::kStopped, task.nodes = 0;
    for (auto& stop : stops_) stop = std::make_unique<StopToken>(limit);
    std::vector<std::thread> helpers;
    for (int t = 1; t < std::min(best_.deadline().threads, kRound); ++t) helpers.emplace_back([this] { work(); });
    work();
    for (std::thread& helper : helpers) helper.join();
    conclude();
  }

 private:
  void prepare() {
    const std::size_t low = best_.bound(), high = std::max(low, best_.largest_useful_peak());
    const std::uint64_t share = best_.nodes_left() / kRound;
    const double aim = best_.has_capacity() ? kAimsWithinCapacity[round_ % 8] : kAims[round_ % 8];
    const std::size_t capacity = low + static_cast<std::size_t>(aim * static_cast<double>(high - low));
    const std::uint64_t luby_factor = luby(round_ / 8 + 1);
    for (int t = 0; t < kRound; ++t) {
      const std::uint64_t number = round_ * kRound + t;
      Strategy& strategy = tasks_[t].strategy;
      strategy.keys = kOrders[kOrderOfTask[number % std::size(kOrderOfTask)]];
      strategy.most_starters = kStartersOfTask[(number / 3) % std::size(kStartersOfTask)];
      strategy.noise = number < 3 ? 0 : kNoiseOfTask[(number / 5) % std::size(kNoiseOfTask)];
      strategy.seed = 3 * number + 1;
      tasks_[t].capacity = capacity;
      tasks_[t].node_limit = std::min(share, base_limit_ * luby_factor);
    }
    ++round_;
  }

  void work() {
    for (int t = next_++; t < kRound; t = next_++) {
      ExactSearch search(problem_, tasks_[t].strategy, tasks_[t].capacity);
      tasks_[t].outcome = search.run(tasks_[t].node_limit, *stops_[t]);
      tasks_[t].nodes = search.nodes();
      if (tasks_[t].outcome != Outcome::kFound) continue;
      tasks_[t].offsets = search.offsets();
      for (int later = t + 1; later < kRound; ++later) stops_[later]->request();
    }
  }

  void conclude() {
    for (Task& task : tasks_) {
      best_.spend(task.nodes);
      if (task.outcome == Outcome::kExhausted && !instance_.has_windows)
        best_.raise_bound(next_peak_bytes(instance_, task.capacity));
      if (task.outcome != Outcome::kFound) continue;
      best_.offer(std::move(task.offsets));
      return;
    }
  }

  const Instance& instance_;
  Incumbent& best_;
  const SearchProblem problem_;
  const std::uint64_t base_limit_;
  std::uint64_t round_ = 0;
  std::array<Task, kRound> tasks_;
  std::array<std::unique_ptr<StopToken>, kRound> stops_;
  std::atomic<int> next_ = 0;
};

}  // namespace

void search_portfolio(const Instance& instance, Incumbent& best, const std::function<void()>& notify) {
  if (best.done() || best.nodes_left() < kRound) return;
  Portfolio portfolio(instance, best);
  while (!best.done() && best.nodes_left() >= kRound) {
    portfolio.run_round();
    notify();
  }
}

}  // namespace plimsoll::internal
