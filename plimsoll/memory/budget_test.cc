#include "plimsoll/memory/budget.h"

#include <gmock/gmock.h>

#include <optional>
#include <random>
#include <thread>

#include "plimsoll/memory/arena_testing.h"
#include "plimsoll/memory/budget_node.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

class BudgetTest : public testing::Test {
 protected:
  Block charged(const Budget& budget, std::size_t bytes) {
    const BudgetScope scope(budget);
    return host_->allocate(bytes);
  }
  bool fits(const Budget& budget, std::size_t bytes) {
    try {
      host_->deallocate(charged(budget, bytes));
      return true;
    } catch (const OutOfMemory&) {
      return false;
    }
  }
  HostArena host_{{.limit = 256_MiB}};
};

TEST(Budget, RequiresALimitAndSpillsOnlyWhereItEvicts) {
  EXPECT_THROW(Budget("none", 0), InvalidArgument);
  EXPECT_THROW(Budget("tight", 1_MiB, {.spill = "somewhere"}), InvalidArgument);
  EXPECT_THROW(Budget("tight", 1_MiB, {.evict = true, .spill = "not/there"}), Error);
  const Budget parent("parent", 1_MiB);
  EXPECT_THROW(Budget("none", 0, parent), InvalidArgument);
  EXPECT_THAT(parent.report(), testing::Not(HasSubstr("tight")));
}

TEST(Budget, EvictsOnlyWhereTheTensorLayerMakesEvictors) {
  set_evictor_factory(nullptr);  // Nothing else here evicts.
  EXPECT_THROW(Budget("tight", 1_MiB, {.evict = true}), FailedPrecondition);
}

TEST_F(BudgetTest, CountsBlocksWithTheirRoundingUntilTheyAreFreed) {
  const Budget budget("model", 1_MiB);
  EXPECT_EQ(budget.name(), "model");
  EXPECT_EQ(budget.limit(), 1_MiB);
  const Block first = charged(budget, 1), second = charged(budget, 100'000);
  EXPECT_EQ(budget.used(), 64 + LiveBlocks::rounded(100'000));
  host_->deallocate(first);
  EXPECT_EQ(budget.used(), LiveBlocks::rounded(100'000));
  host_->deallocate(second);
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(budget.peak(), 64 + LiveBlocks::rounded(100'000));
}

TEST_F(BudgetTest, ChargesNothingOutsideOfItsScope) {
  const Budget budget("model", 1_MiB);
  const Block outside = host_->allocate(5_MiB);
  EXPECT_EQ(budget.used(), 0u);
  const Block inside = charged(budget, 1000);
  const Block after = host_->allocate(5_MiB);
  EXPECT_EQ(budget.used(), 1024u);
  for (const Block& block : {outside, inside, after}) host_->deallocate(block);
  EXPECT_EQ(budget.used(), 0u);
}

TEST_F(BudgetTest, RefusesExactlyAtItsLimit) {
  const Budget budget("model", 1'000'000);
  const Block block = charged(budget, 999'936);
  EXPECT_TRUE(fits(budget, 64));
  EXPECT_FALSE(fits(budget, 65));
  EXPECT_EQ(budget.used(), 999'936u);
  host_->deallocate(block);
}

TEST_F(BudgetTest, OfOneByteRefusesEverything) {
  const Budget budget("byte", 1);
  EXPECT_FALSE(fits(budget, 1));
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(budget.peak(), 0u);
  const Budget line("line", 64);
  EXPECT_TRUE(fits(line, 64));
  EXPECT_FALSE(fits(line, 65));
}

TEST_F(BudgetTest, AcceptsLimitsFarAboveTheDevice) {
  const Budget budget("huge", INT64_MAX);
  EXPECT_TRUE(fits(budget, 200_MiB));
  EXPECT_THROW(charged(budget, 257_MiB), OutOfMemory);
  EXPECT_EQ(budget.used(), 0u);
}

TEST_F(BudgetTest, RefusesLimitsThatWereNegativeNumbers) {
  try {
    const Budget budget("b", static_cast<std::size_t>(-1));
    FAIL() << "accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("budget \"b\": the limit is 18446744073709551615 bytes, which is -1 "
                                                 "as a signed number"));
  }
  EXPECT_THROW(Budget("b", static_cast<std::size_t>(INT64_MAX) + 1), InvalidArgument);
}

TEST_F(BudgetTest, AsksWhetherASuspiciouslySmallLimitWasMeantInMebibytes) {
  const Budget budget("b", 1024);
  const OutOfMemory error = refusal_of([&] { charged(budget, 1_MiB); });
  EXPECT_THAT(error.what(), testing::HasSubstr("limits are in bytes: did you mean 1024_MiB?"));
  const Budget large("large", 1_MiB);
  EXPECT_THAT(refusal_of([&] { charged(large, 2_MiB); }).what(), testing::Not(testing::HasSubstr("did you mean")));
}

TEST_F(BudgetTest, IsChargedNoLongerForBlocksWhoseArenaIsGone) {
  const Budget process("process", 8_MiB), model("model", 6_MiB, process);
  const std::size_t listed = BudgetNode::trace_records().size();
  {
    const Budget passing("passing", 4_MiB, model);
    HostArena gone({.limit = 16_MiB});
    const BudgetScope scope(passing);
    static_cast<void>(gone->allocate(1_MiB));
    std::thread([&] {
      const BudgetScope other(model);
      static_cast<void>(gone->allocate(2_MiB));
    }).join();
    EXPECT_EQ(process.used(), 3_MiB);
  }
  EXPECT_EQ(process.used(), 0u);
  EXPECT_EQ(model.used(), 0u);
  EXPECT_EQ(BudgetNode::trace_records().size(), listed) << "the one that is gone is listed no longer";
}

TEST_F(BudgetTest, ChargesParentsToo) {
  const Budget process("process", 8_MiB), model("model", 6_MiB, process), layer("layer", 4_MiB, model);
  const Block block = charged(layer, 3_MiB);
  for (const Budget* budget : {&process, &model, &layer}) EXPECT_EQ(budget->used(), 3_MiB);
  const Block own = charged(model, 1_MiB);
  EXPECT_EQ(layer.used(), 3_MiB);
  EXPECT_EQ(model.used(), 4_MiB);
  EXPECT_EQ(process.used(), 4_MiB);
  host_->deallocate(block);
  host_->deallocate(own);
  for (const Budget* budget : {&process, &model, &layer}) EXPECT_EQ(budget->used(), 0u);
}

TEST_F(BudgetTest, LendsWhatOneChildLeavesUnusedToItsSibling) {
  const Budget process("process", 8_MiB), first("first", 8_MiB, process), second("second", 8_MiB, process);
  const Block large = charged(first, 6_MiB);
  EXPECT_FALSE(fits(second, 3_MiB));
  EXPECT_TRUE(fits(second, 2_MiB));
  host_->deallocate(large);
  EXPECT_TRUE(fits(second, 8_MiB));
  EXPECT_TRUE(fits(first, 8_MiB)) << "and back";
}

TEST_F(BudgetTest, LeavesTheChildUntouchedWhenTheParentRefuses) {
  const Budget process("process", 4_MiB), model("model", 64_MiB, process);
  const Block block = charged(model, 1_MiB);
  for (int i = 0; i < 3; ++i) {
    const OutOfMemory error = refusal_of([&] { charged(model, 4_MiB); });
    EXPECT_EQ(error.limit(), 4_MiB) << "the parent's";
    EXPECT_EQ(error.in_use(), 1_MiB);
    EXPECT_EQ(error.smallest_sufficient_limit(), 5_MiB);
    EXPECT_THAT(error.what(), HasSubstr("budget \"process\""));
  }
  EXPECT_EQ(model.used(), 1_MiB);
  EXPECT_EQ(model.peak(), 1_MiB);
  EXPECT_EQ(process.used(), 1_MiB);
  EXPECT_EQ(process.peak(), 1_MiB);
  EXPECT_EQ(host_->stats().bytes_in_use, 1_MiB);
  EXPECT_EQ(host_->stats().peak_bytes_in_use, 1_MiB);
  host_->deallocate(block);
}

TEST_F(BudgetTest, IsUntouchedWhenTheDeviceRefuses) {
  const Budget budget("large", 1_GiB);
  const Block block = charged(budget, 1_MiB);
  EXPECT_THROW(charged(budget, 256_MiB), OutOfMemory);
  EXPECT_EQ(budget.used(), 1_MiB);
  EXPECT_EQ(budget.peak(), 1_MiB);
  host_->deallocate(block);
}

TEST_F(BudgetTest, NestsScopesAndTheInnermostCounts) {
  const Budget outer("outer", 8_MiB), inner("inner", 8_MiB);
  Block a, b, c;
  {
    const BudgetScope use(outer);
    a = host_->allocate(1000);
    {
      const BudgetScope deeper(inner);
      b = host_->allocate(2000);
      const BudgetScope same(inner);
      c = host_->allocate(3000);
    }
    EXPECT_EQ(outer.used(), 1024u);
    EXPECT_EQ(inner.used(), 2048u + 3008u);
  }
  for (const Block& block : {a, b, c}) host_->deallocate(block);
  EXPECT_EQ(outer.used() + inner.used(), 0u);
}

TEST_F(BudgetTest, LivesAsLongAsABlockIsChargedToIt) {
  const Budget process("process", 8_MiB);
  Block block;
  {
    const Budget model("model", 4_MiB, process);
    block = charged(model, 1_MiB);
  }
  for (int i = 0; i < 100; ++i) Budget("other" + std::to_string(i), 1_MiB);  // Numbers are reused, but not this one's.
  EXPECT_EQ(process.used(), 1_MiB);
  host_->deallocate(block);
  EXPECT_EQ(process.used(), 0u);
}

TEST_F(BudgetTest, MayEndBeforeItsChildren) {
  std::optional<Budget> process(std::in_place, "process", 4_MiB);
  const Budget model("model", 64_MiB, *process);
  process.reset();
  EXPECT_FALSE(fits(model, 5_MiB)) << "the parent's limit still holds";
  EXPECT_TRUE(fits(model, 4_MiB));
}

TEST_F(BudgetTest, HandlesAreShared) {
  Budget first("model", 4_MiB);
  const Budget copy = first;
  first = Budget("other", 1_MiB);
  const Block block = charged(copy, 2_MiB);
  EXPECT_EQ(copy.used(), 2_MiB);
  EXPECT_EQ(first.used(), 0u);
  host_->deallocate(block);
}

TEST_F(BudgetTest, FormsDeepTrees) {
  std::vector<Budget> chain = {Budget("root", 64_MiB)};
  for (int i = 0; i < 500; ++i) chain.emplace_back("level", 64_MiB - static_cast<std::size_t>(i) * 4096, chain.back());
  const Block block = charged(chain.back(), 1_MiB);
  for (const Budget& budget : chain) ASSERT_EQ(budget.used(), 1_MiB);
  host_->deallocate(block);
  for (const Budget& budget : chain) ASSERT_EQ(budget.used(), 0u);
  EXPECT_THAT(chain.front().report(), HasSubstr("root"));
  chain.erase(chain.begin(), chain.end() - 1);
  EXPECT_FALSE(fits(chain.back(), 63_MiB)) << "ancestors live on";
}

TEST_F(BudgetTest, PeakIsExactWithOneThreadAndFallsToUseWhenReset) {
  Budget process("process", 64_MiB), model("model", 32_MiB, process);
  std::mt19937 random(2);
  std::vector<Block> live;
  std::size_t used = 0, peak = 0;
  for (int step = 0; step < 3000; ++step) {
    if (!live.empty() && random() % 2 == 0) {
      std::swap(live[random() % live.size()], live.back());
      used -= LiveBlocks::rounded(live.back().size());
      host_->deallocate(live.back());
      live.pop_back();
    } else if (used < 20_MiB) {
      live.push_back(charged(model, 1 + random() % 500'000));
      used += LiveBlocks::rounded(live.back().size());
    }
    peak = std::max(peak, used);
    if (step % 500 == 499) {
      model.reset_peak();
      process.reset_peak();
      peak = used;
    }
    ASSERT_EQ(model.used(), used);
    ASSERT_EQ(process.used(), used);
    ASSERT_EQ(model.peak(), peak);
    ASSERT_EQ(process.peak(), peak);
  }
  for (const Block& block : live) host_->deallocate(block);
}

TEST_F(BudgetTest, ReportIsATableOfTheTree) {
  const Budget process("process", 8_MiB), model("model", 4_MiB, process);
  const Block block = charged(model, 1_MiB);
  const std::string report = process.report();
  EXPECT_THAT(report, HasSubstr("\nprocess "));
  EXPECT_THAT(report, HasSubstr("\n  model "));
  EXPECT_THAT(report, testing::ContainsRegex("model +1.0 MiB +1.0 MiB +4.0 MiB"));
  host_->deallocate(block);
}

TEST_F(BudgetTest, CountsADeferredFreeUntilItIsFlushed) {
  const Budget budget("model", 4_MiB);
  host_->set_deferred_release(true);
  host_->deallocate(charged(budget, 3_MiB));
  EXPECT_EQ(budget.used(), 3_MiB);
  EXPECT_TRUE(fits(budget, 2_MiB)) << "flushed rather than refused";
  host_->set_deferred_release(false);
  host_->flush_deferred();
  EXPECT_EQ(budget.used(), 0u);
}

TEST_F(BudgetTest, IsChargedByItsThreadOnlyAndFreedByAny) {
  const Budget budget("model", 8_MiB);
  const BudgetScope scope(budget);
  Block there;
  std::thread([&] { there = host_->allocate(1_MiB); }).join();
  EXPECT_EQ(budget.used(), 0u) << "the scope is this thread's";
  const Block here = host_->allocate(2_MiB);
  std::thread([&] { host_->deallocate(here); }).join();
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(budget.peak(), 2_MiB);
  EXPECT_TRUE(fits(budget, 8_MiB));
  host_->deallocate(there);
}

}  // namespace
}  // namespace plimsoll
