// Budgets: a tree of limits inside one process. A model at its limit never makes another one fail.
#include <plimsoll/plimsoll.h>

#include <iostream>

#include "check.h"

namespace pl = plimsoll;
using namespace pl::literals;

int main() {
  const pl::Budget process("process", 64_MiB), ranker("ranker", 24_MiB, process), search("search", 48_MiB, process);
  pl::OwnedBlock weights;
  {
    const pl::BudgetScope use(ranker);  // What this thread allocates here is charged to "ranker" and to "process".
    weights = pl::OwnedBlock(20_MiB, {.tag = "weights"});
    try {
      const pl::OwnedBlock more(8_MiB);
      check(false, "ranker is refused at its limit");
    } catch (const pl::OutOfMemory& error) {
      std::cout << error.what() << "\n";
    }
  }
  {
    const pl::BudgetScope use(search);
    const pl::OwnedBlock index(40_MiB, {.tag = "index"});
    check(process.used() == 60_MiB, "search uses what ranker leaves");
    std::cout << process.report();
  }
  check(search.used() == 0 && search.peak() == 40_MiB, "deallocated memory is no longer charged");

  int alerts = 0;
  const auto handle = pl::on_memory_alert(0.001, [&](const pl::MemoryAlert& alert) {
    ++alerts;
    std::cout << alert.device << " is above " << alert.fraction * 100 << " % of its limit\n";
  });
  const auto limit = pl::memory_stats().bytes_limit;
  weights.reset();
  { const pl::OwnedBlock crossing(limit / 500); }
  check(alerts >= 1, "an alert reports when a device fills up");

  std::string full;
  const auto of_search = search.on_alert(0.8, [&](const pl::MemoryAlert& alert) { full = alert.budget; });
  {
    const pl::BudgetScope use(search);
    const pl::OwnedBlock most(search.limit() * 9 / 10);
  }
  check(full == "search", "a budget has alerts of its own");
  return 0;
}
