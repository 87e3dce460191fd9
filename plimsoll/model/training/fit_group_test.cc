// A process in a control group whose limit is its budget and a stated overhead: it trains there, and is not killed.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"
#include "plimsoll/base/sanitized_testing.h"
#include "plimsoll/memory/spill/spill_testing.h"
#include "plimsoll/model/training/budget_models_testing.h"

namespace plimsoll {
namespace {

constexpr std::size_t kOverhead = 12_MiB;  // Plans, kernels, stacks, the page tables' and the heap's own.

// A group of version 1 or 2 with this limit, removed at the end; none where it cannot be made.
class MemoryGroup {
 public:
  explicit MemoryGroup(std::size_t limit) {
    const std::string name = "plimsoll_fit_" + std::to_string(getpid());
    for (const auto& [parent, file] :
         {std::pair{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, std::pair{"/sys/fs/cgroup", "memory.max"}}) {
      std::error_code error;
      const std::string folder = std::string(parent) + "/" + name;
      if (!std::filesystem::exists(parent) || !std::filesystem::create_directory(folder, error)) continue;
      if (std::filesystem::exists(folder + "/" + file) && write(folder + "/" + file, std::to_string(limit))) {
        folder_ = folder;
        return;
      }
      ::rmdir(folder.c_str());
    }
  }
  ~MemoryGroup() {
    for (int i = 0; i < 50 && !folder_.empty() && ::rmdir(folder_.c_str()) != 0; ++i) ::usleep(20'000);
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;
  bool is_made() const { return !folder_.empty(); }
  bool enter() const { return write(folder_ + "/cgroup.procs", std::to_string(getpid())); }

 private:
  static bool write(const std::string& file, const std::string& text) {
    std::ofstream out(file);
    out << text << std::flush;
    return out.good();
  }
  std::string folder_;
};

// Whether the work was done by a child in such a group; false when it was killed or failed.
bool is_done_within(std::size_t limit, const std::function<void()>& work) {
  const MemoryGroup group(limit);
  const pid_t child = ::fork();
  if (child == 0) {
    if (!group.enter()) ::_exit(3);
    try {
      work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      ::_exit(2);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(FitGroup, TrainsInAGroupOfItsBudgetAndTheOverhead) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need memory of their own";
  if (!MemoryGroup(64_MiB).is_made()) GTEST_SKIP() << "no control group with a limit can be made here";
  const BudgetModel which = budget_mlp(24, 256, 2048);
  const Dataset data = which.batches(2);  // Before: not the child's.
  const std::size_t natural = which.make().forecast({.batch_size = which.batch}).peak_bytes;
  const std::size_t budget = 40_MiB;
  ASSERT_GT(natural, budget + kOverhead) << "else it shows nothing";
  const auto train = [&](const FitOptions& options) { which.make().fit(data, options); };
  EXPECT_TRUE(is_done_within(budget + kOverhead, [&] { train({.epochs = 2, .verbose = 0, .budget = budget}); }));
  EXPECT_FALSE(is_done_within(budget + kOverhead, [&] { train({.epochs = 2, .verbose = 0}); }));
}

TEST(FitGroup, TrainsWithItsVariablesOnADisk) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need memory of their own";
  if (!MemoryGroup(64_MiB).is_made()) GTEST_SKIP() << "no control group with a limit can be made here";
  const BudgetModel which = budget_mlp(12, 640, 128);  // Weights take 19 MiB, with their state three times that.
  const Dataset data = which.batches(2);
  const SpillFolder folder;
  const std::string directory = folder.path().string();
  std::size_t gate = 0;
  try {
    gate = which.make().forecast({.batch_size = which.batch, .spill = directory}).smallest_budget;
  } catch (const InvalidArgument&) {
    GTEST_SKIP() << "the tests' directory is kept in memory";
  }
  Model model = which.make();  // Its weights are in memory at first.
  const std::size_t weights = std::size_t{12} * 640 * 640 * sizeof(float);
  ASSERT_LT(gate, weights);
  const auto train = [&](std::optional<std::size_t> budget, const std::string& spill) {
    model.fit(data, {.epochs = 2, .verbose = 0, .budget = budget, .spill = spill});
  };
  EXPECT_TRUE(is_done_within(weights + kOverhead, [&] { train(gate, directory); }));
  EXPECT_FALSE(is_done_within(weights + kOverhead, [&] { train({}, ""); }));
}

}  // namespace
}  // namespace plimsoll
