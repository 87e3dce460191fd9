// What the system says of a process that trains inside a budget: its resident memory grows by the budget at most, and
// by a stated overhead (plans, kernels, the pool's stacks).
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/sanitized_testing.h"
#include "plimsoll/device/device_memory.h"
#include "plimsoll/model/training/budget_models_testing.h"

namespace plimsoll {
namespace {

constexpr std::size_t kOverhead = 8_MiB;

// A line of /proc/self/status, in bytes; 0 when there is none.
std::size_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name + ":")) return std::stoull(line.substr(name.size() + 1)) * 1024;
  return 0;
}

// The most that was resident counts from now on. False where the system does not allow it.
bool reset_most_resident() {
  std::FILE* const file = std::fopen("/proc/self/clear_refs", "w");
  if (!file) return false;
  const bool is_written = std::fputs("5", file) >= 0;
  return std::fclose(file) == 0 && is_written;
}

// Trains in a child and gives what its most resident memory grew by; nothing when that cannot be known.
std::optional<std::size_t> growth_of_training(const BudgetModel& which, std::optional<std::size_t> budget) {
  int ends[2];
  if (::pipe(ends) != 0) return std::nullopt;
  const pid_t child = ::fork();
  if (child == 0) {
    std::size_t growth = 0;
    try {
      const Dataset data = which.batches(2);
      trim();  // Free pages that earlier tests of this program left would be reused without growth.
      malloc_trim(0);
      const std::size_t before = status_bytes("VmRSS");
      Model model = which.make();
      if (reset_most_resident() && before > 0) {
        model.fit(data, {.epochs = 2, .verbose = 0, .budget = budget});
        growth = status_bytes("VmHWM") - before;
      }
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    const bool is_told = ::write(ends[1], &growth, sizeof(growth)) == sizeof(growth);
    ::_exit(is_told ? 0 : 1);
  }
  ::close(ends[1]);
  std::size_t growth = 0;
  const bool is_read = child > 0 && ::read(ends[0], &growth, sizeof(growth)) == sizeof(growth);
  ::close(ends[0]);
  int status = 0;
  if (child > 0) ::waitpid(child, &status, 0);
  return is_read && growth > 0 ? std::optional(growth) : std::nullopt;
}

TEST(FitResident, AProcessGrowsByItsBudgetAndTheOverhead) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need memory of their own";
  const BudgetModel which = budget_mlp(24, 256, 1024);
  const std::size_t batch_bytes = 2 * which.batch * 257 * sizeof(float);  // Loaded before; counted by the budget.
  const std::size_t budget = 28_MiB;
  const std::optional<std::size_t> natural = growth_of_training(which, {});
  if (!natural) GTEST_SKIP() << "the system does not say what was resident";
  const std::optional<std::size_t> tight = growth_of_training(which, budget);
  ASSERT_TRUE(tight);
  EXPECT_LE(*tight, budget + kOverhead);
  EXPECT_GT(*natural + batch_bytes, budget + kOverhead) << "else it shows nothing";
}

}  // namespace
}  // namespace plimsoll
