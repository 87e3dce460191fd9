// The program of the README: two budgets in one process, and a refusal that explains itself.
#include <plimsoll/plimsoll.h>

#include <iostream>

namespace pl = plimsoll;
using namespace pl::literals;

int main() {
  pl::Budget process("process", 64_MiB), ranker("ranker", 24_MiB, process), search("search", 48_MiB, process);
  pl::BudgetScope use(ranker);  // what this thread allocates is charged to "ranker" and to "process"
  pl::OwnedBlock weights(20_MiB, {.tag = "weights"});
  try {
    pl::OwnedBlock too_much(8_MiB, {.tag = "activations"});
  } catch (const pl::OutOfMemory& error) {
    std::cout << error.what() << "\n\n";
  }
  std::cout << process.report();
}
