// Measurements of budgets below the natural peak, as Markdown tables. `tools/bench_budget` runs it.
//
//   budget_bench runs LOG...       training runs, at a slack of .5 and .3
//   budget_bench public LOG...     the same at .5 and .3 of the natural peak
//   budget_bench steps LOG...      single training steps, at .7, .5 and .3 of what is above the given values; the gate
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "plimsoll/cli/replay/budget_run.h"
#include "plimsoll/cli/replay/operator_log.h"
#include "plimsoll/cli/table.h"

namespace plimsoll {
namespace {

std::string decimals(double value, int count) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", count, value);
  return text;
}

std::string median_and_worst(std::vector<double> values) {
  if (values.empty()) return "-";
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
  return decimals(median, 3) + " / " + decimals(values.back(), 3);
}

// The bytes that exist before the first training step.
std::size_t given_bytes(const OperatorLog& log) {
  std::size_t sum = 0;
  for (std::size_t step = 0; step < log.program.steps.size() && log.round[step] == 0; ++step)
    for (const int value : log.program.steps[step].writes) sum += log.program.values[value].bytes;
  return sum;
}

class Report {
 public:
  Report(std::string mode, std::vector<double> shares, double spill)
      : mode_(std::move(mode)), shares_(std::move(shares)), spill_(spill) {
    std::vector<std::string> header = {"log", "steps", "peak, MB", "floor, MB"};
    for (const double share : shares_) {
      header.push_back(decimals(share, 1));
      header.push_back("bound");
      header.push_back("+ " + decimals(spill_ / 1e9, 2) + " GB/s");
      slowdowns_.emplace_back();
    }
    header.push_back("plan, ms");
    if (mode_ == "steps") header.push_back("gate / floor");
    header_ = std::move(header);
    rows_.push_back(header_);
  }

  void add(const std::string& path) {
    const OperatorLog log = read_operator_log(path);
    const Floors floors = floors_of(log.program);
    std::vector<std::string> row = {log.name.substr(0, log.name.find('.')), std::to_string(log.operators.size()),
                                    decimals(static_cast<double>(log.peak_bytes) / 1e6, 1),
                                    decimals(static_cast<double>(floors.recompute.bytes) / 1e6, 1)};
    double milliseconds = 0;
    for (std::size_t k = 0; k < shares_.size(); ++k) {
      const std::clock_t begin = std::clock();  // Processor time: other work does not count.
      const BudgetRun run = run_budget(log, {.limit = limit(log, floors.recompute.bytes, shares_[k])});
      milliseconds = std::max(milliseconds, 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
      if (run.completed) slowdowns_[k].push_back(run.slowdown());
      row.push_back(run.completed ? decimals(run.slowdown(), 3) : "-");
      row.push_back(
          run.completed ? decimals(1 + static_cast<double>(run.bound_ns) / static_cast<double>(run.base_ns), 3) : "-");
      const BudgetRun spilled =
          run_budget(log, {.limit = limit(log, floors.recompute.bytes, shares_[k]), .spill_bytes_per_second = spill_});
      row.push_back(spilled.completed ? decimals(spilled.slowdown(), 3) : "-");
    }
    row.push_back(decimals(milliseconds, 0));
    if (mode_ == "steps") {
      const Front front = recompute_front(log.program);
      const double gate = static_cast<double>(front.smallest_peak()) / static_cast<double>(floors.recompute.bytes);
      gates_.push_back(gate);
      row.push_back(decimals(gate, 3));
    }
    rows_.push_back(row);
  }

  void print() const {
    Table table(header_);
    for (std::size_t k = 1; k < rows_.size(); ++k) table.add(rows_[k]);
    std::printf("%s\n", table.markdown().c_str());
    for (std::size_t k = 0; k < shares_.size(); ++k)
      std::printf("at %s: %zu of %zu fit, median / worst %s\n", decimals(shares_[k], 1).c_str(), slowdowns_[k].size(),
                  rows_.size() - 1, median_and_worst(slowdowns_[k]).c_str());
    if (!gates_.empty())
      std::printf("smallest budget over floor, median / worst %s\n", median_and_worst(gates_).c_str());
    std::printf("\n");
  }

 private:
  std::size_t limit(const OperatorLog& log, std::size_t floor, double share) const {
    const std::size_t base = mode_ == "runs" ? floor : mode_ == "steps" ? given_bytes(log) : 0;
    return base + static_cast<std::size_t>(share * static_cast<double>(log.peak_bytes - base));
  }

  const std::string mode_;
  const std::vector<double> shares_;
  const double spill_;  // Bytes per second.
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::vector<double>> slowdowns_;
  std::vector<double> gates_;
};

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode != "runs" && mode != "public" && mode != "steps") {
    std::printf("budget_bench: run by tools/bench_budget\n");  // Without logs there is nothing to measure.
    return 0;
  }
  std::vector<double> shares = {0.5, 0.3};
  if (mode == "steps") shares = {0.7, 0.5, 0.3};
  plimsoll::Report report(mode, shares, mode == "runs" ? 150e6 : mode == "steps" ? 1.5e9 : 12e9);
  for (int k = 2; k < argc; ++k) report.add(argv[k]);
  report.print();
}
