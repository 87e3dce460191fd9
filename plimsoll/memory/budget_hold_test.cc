#include "plimsoll/memory/budget_hold.h"

#include <gmock/gmock.h>

#include "plimsoll/base/error.h"

namespace plimsoll {
namespace {

TEST(BudgetHold, ChargesTheBudgetAndThoseAboveWhileItLives) {
  const Budget above("above", 1 << 20), budget("held", 1 << 16, above);
  {
    const BudgetHold hold(budget, 1000);
    EXPECT_EQ(budget.used(), 1000u);
    EXPECT_EQ(above.used(), 1000u);
    const BudgetHold more(budget, (1 << 16) - 1000);
    EXPECT_EQ(budget.used(), budget.limit());
  }
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(above.used(), 0u);
  EXPECT_EQ(budget.peak(), budget.limit());
}

TEST(BudgetHold, LeavesOutWhatTheScopeChargesAnyway) {
  const Budget process("process", 1 << 20), request("request", 1 << 16, process), session("session", 1 << 16, process);
  const BudgetScope scope(request);
  const BudgetHold hold(session, 4096);
  EXPECT_EQ(session.used(), 4096u);
  EXPECT_EQ(process.used(), 0u);
  EXPECT_EQ(request.used(), 0u);
  const BudgetHold nothing(process, 4096);
  EXPECT_EQ(process.used(), 0u);
}

TEST(BudgetHold, RefusesWhatDoesNotFitAndChargesNothing) {
  const Budget above("above", 3000), budget("held", 1 << 16, above);
  const BudgetHold some(budget, 1024);
  try {
    const BudgetHold hold(budget, 2048);
    FAIL() << "not refused";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("budget \"above\""));
    EXPECT_EQ(error.requested(), 2048u);
    EXPECT_EQ(error.in_use(), 1024u);
    EXPECT_EQ(error.limit(), 3000u);
    EXPECT_EQ(error.smallest_sufficient_limit(), 3072u);
  }
  EXPECT_EQ(budget.used(), 1024u);
  EXPECT_EQ(above.used(), 1024u);
  const BudgetHold rest(budget, 3000 - 1024);
  EXPECT_EQ(above.used(), above.limit());
}

}  // namespace
}  // namespace plimsoll
