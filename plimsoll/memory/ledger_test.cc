#include "plimsoll/memory/ledger.h"

#include <optional>

#include "plimsoll/memory/arena_testing.h"
#include "plimsoll/memory/budget.h"
#include "plimsoll/memory/refusal.h"

namespace plimsoll {
namespace {

BlockLabel labelled(const char* op, const char* scope, Category category) {
  BlockLabel label;
  label.op = op;
  label.scope = scope;
  label.category = category;
  return label;
}

TEST(Ledger, GroupsHoldersByOperationScopeAndCategoryMostBytesFirst) {
  HostArena host({.limit = 16_MiB});
  const auto add = [&](std::size_t bytes, const char* op, const char* scope, Category category) {
    static_cast<void>(host->allocate(bytes, 64, labelled(op, scope, category)));
  };
  add(1000, "relu", "a", Category::kActivations);
  add(2000, "relu", "a", Category::kActivations);
  add(5000, "relu", "b", Category::kActivations);
  add(100, "relu", "b", Category::kGradients);
  add(64, "adam", "", Category::kOptimizer);
  const std::vector<MemoryHolder> holders = find_holders(*host, nullptr);
  ASSERT_EQ(holders.size(), 4u);
  EXPECT_EQ(holders[0].scope, "b");
  EXPECT_EQ(holders[0].bytes, LiveBlocks::rounded(5000));
  EXPECT_EQ(holders[1].bytes, LiveBlocks::rounded(1000) + LiveBlocks::rounded(2000));
  EXPECT_EQ(holders[1].count, 2u);
  EXPECT_EQ(holders[2].category, "gradients");
  EXPECT_EQ(holders[3].op, "adam");
  std::size_t sum = 0;
  for (const MemoryHolder& holder : holders) sum += holder.bytes;
  EXPECT_EQ(sum, host->stats().bytes_in_use);
}

TEST(Ledger, TellsTheShapeOfTheLargestBlock) {
  HostArena host({.limit = 16_MiB});
  BlockLabel label = labelled("matmul", "", Category::kActivations);
  label.has_shape = 1;
  label.rank = 2;
  label.sizes[0] = 8;
  label.sizes[1] = 16;
  static_cast<void>(host->allocate(512, 64, label));
  label.sizes[0] = 32;
  static_cast<void>(host->allocate(2048, 64, label));
  EXPECT_EQ(find_holders(*host, nullptr)[0].shape, "[32, 16]");
  label.rank = 5;
  static_cast<void>(host->allocate(4096, 64, label));
  EXPECT_EQ(find_holders(*host, nullptr)[0].shape, "[32, 16, 0, 0, ...]");
  label.rank = 0;
  static_cast<void>(host->allocate(8192, 64, label));
  EXPECT_EQ(find_holders(*host, nullptr)[0].shape, "[]") << "a scalar has a shape";
}

TEST(Ledger, TellsTheTenLargestGroups) {
  static constexpr const char* kOps[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
  HostArena host({.limit = 16_MiB});
  for (std::size_t i = 0; i < 12; ++i)
    static_cast<void>(host->allocate((i + 1) * 64, 64, labelled(kOps[i], "", Category::kOther)));
  const std::vector<MemoryHolder> holders = find_holders(*host, nullptr);
  ASSERT_EQ(holders.size(), 10u);
  EXPECT_EQ(holders.front().op, "l");
  EXPECT_EQ(holders.back().op, "c");
}

TEST(Ledger, HoldersOfABudgetAreWhatIsChargedToItOrBelowIt) {
  HostArena host({.limit = 16_MiB});
  const Budget process("process", 8_MiB), model("model", 4_MiB, process), other("other", 4_MiB, process);
  const auto add = [&](const Budget* budget, const char* op) {
    std::optional<BudgetScope> scope;
    if (budget) scope.emplace(*budget);
    static_cast<void>(host->allocate(1000, 64, labelled(op, "", Category::kOther)));
  };
  add(nullptr, "outside");
  add(&process, "process");
  add(&model, "model");
  add(&other, "other");
  EXPECT_EQ(find_holders(*host, process.node().get()).size(), 3u);
  ASSERT_EQ(find_holders(*host, model.node().get()).size(), 1u);
  EXPECT_EQ(find_holders(*host, model.node().get())[0].op, "model");
}

TEST(Ledger, HoldersInABudgetsRefusalComeFromEveryDevice) {
  HostArena first({.name = "CPU:0", .limit = 16_MiB}), second({.name = "CPU:1", .limit = 16_MiB});
  const Budget budget("both", 4_MiB);
  const BudgetScope scope(budget);
  const Block there = first->allocate(3_MiB, 64, labelled("weights", "", Category::kParameters));
  const OutOfMemory error = refusal_of([&] { static_cast<void>(second->allocate(2_MiB)); });
  ASSERT_EQ(error.holders().size(), 1u);
  EXPECT_EQ(error.holders()[0].op, "weights");
  EXPECT_EQ(error.holders()[0].bytes, 3_MiB);
  first->deallocate(there);
}

TEST(Ledger, HoldersAreNamedInTheWordsOfARefusal) {
  OutOfMemoryDetails details;
  details.requested = 64_MiB;
  details.in_use = 480_MiB;
  details.limit = 512_MiB;
  details.smallest_sufficient_limit = 544_MiB;
  details.holders = {{"conv2d", "encoder", "activations", "[8, 32]", 400_MiB, 12}};
  details.tried = {{"empty caches", 1_MiB}};
  const std::string text = describe_refusal("budget \"train\"", labelled("matmul", "head", Category::kOther), details);
  EXPECT_EQ(
      text,
      "budget \"train\": cannot allocate 64.0 MiB (67108864 bytes) for \"matmul\" in scope \"head\"; used 480.0 MiB of "
      "512.0 MiB (536870912 bytes); held by 12 x \"conv2d\" in \"encoder\" 400.0 MiB; tried to empty caches (1.0 MiB); "
      "it takes a limit of at least 544.0 MiB (570425344 bytes)");
}

}  // namespace
}  // namespace plimsoll
