#include "plimsoll/observe/live/trace_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/observe/trace_maker_testing.h"

namespace plimsoll {
namespace {

TEST(TraceCounters, AreThoseOfTheLastEvent) {
  TraceMaker trace;
  trace.text("@budget {\"name\": \"all\", \"parent\": \"\", \"limit\": 100000}");
  trace.text("@budget {\"name\": \"fit\", \"parent\": \"all\", \"limit\": 50000}");
  trace.step(7);
  const auto gone = trace.allocate(4096);
  trace.allocate(1024, {.op = "relu", .scope = "net", .budget = "fit"});
  trace.free(gone);
  trace.commit(8192);
  const TraceHistory history = make_trace_history(trace.file);
  const LiveCounters counters = counters_at_end(history, summarize(history), "run.trace");
  EXPECT_TRUE(is_sound(counters));
  EXPECT_EQ(counters.used(), 1024u);
  EXPECT_EQ(counters.peak(), 5120u);
  EXPECT_EQ(counters.reserved(), 8192u);
  EXPECT_EQ(counters.step, 7u);
  EXPECT_EQ(counters.devices[0].allocations, 2u);
  EXPECT_EQ(text_of(counters.holders[0].scope), "net");
  ASSERT_EQ(counters.num_budgets, 2u);
  EXPECT_EQ(counters.budgets[0].used, 1024u);
  EXPECT_EQ(counters.budgets[1].used, 1024u);
  EXPECT_EQ(counters.budgets[1].parent, 0);
  EXPECT_THAT(metrics_text(counters), ::testing::HasSubstr("plimsoll_used_bytes{device=\"CPU:0\"} 1024\n"));
}

}  // namespace
}  // namespace plimsoll
